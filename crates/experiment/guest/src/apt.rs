//! Kernels of Debian's archive: finds their packages and downloads them with apt, in this machine's own lists or in
//! private ones. Nothing is installed, and no list of the machine is changed. apt verifies every list and package.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::release::Release;
use crate::{GuestError, which};

/// Debian's keys, of the package `debian-archive-keyring`.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// The environment variable that names another archive.
const MIRROR: &str = "WAKEAI_DEBIAN_MIRROR";
/// The archive where this machine's package sources name none of Debian's.
const ARCHIVE: &str = "http://deb.debian.org/debian";
/// The start of the name of each kernel's package.
const PACKAGE: &str = "linux-image-";
/// The start of the names of the packages in which newer kernels (Debian's 7.2, for example) have their image and their
/// modules. Then the package above has neither.
const PARTS: [&str; 2] = ["linux-binary-", "linux-modules-"];

/// Package lists.
#[derive(Debug)]
pub(crate) enum Lists {
    /// Those of this machine.
    Own,
    /// Those of some suites, read into a directory.
    Private {
        state: PathBuf,
        archive: String,
        /// The first error that apt reported when it read them.
        reason: Option<String>,
    },
}

/// Whether the user wants kernels of another archive than the machine's package sources name.
pub(crate) fn names_a_mirror() -> bool {
    std::env::var_os(MIRROR).is_some()
}

/// Returns an error if apt or Debian's keys are not installed.
pub(crate) fn check() -> Result<(), GuestError> {
    for (program, package) in [("apt-get", "apt"), ("apt-cache", "apt"), ("dpkg-deb", "dpkg")] {
        if which(program).is_none() {
            return Err(GuestError::program(program, package));
        }
    }
    if Path::new(KEYS).exists() {
        return Ok(());
    }
    Err(GuestError::Missing {
        what: format!("Debian's keys ({KEYS})"),
        remedy: "install the package debian-archive-keyring; without it no kernel can be verified"
            .to_owned(),
    })
}

impl Lists {
    /// Reads the lists of these suites into `state`.
    pub(crate) fn read(suites: &[&str], state: &Path) -> Result<Self, GuestError> {
        check()?;
        let archive = archive();
        let line = |archive: &str, suite: &str| {
            format!("deb [signed-by={KEYS} arch=amd64] {archive} {suite} main\n")
        };
        let mut sources = String::new();
        for suite in suites {
            sources += &line(&archive, suite);
            if !suite.contains('-') {
                sources += &line(&format!("{archive}-security"), &format!("{suite}-security"));
            }
        }
        for directory in ["lists/partial", "archives/partial"] {
            let path = state.join(directory);
            fs::create_dir_all(&path)
                .map_err(GuestError::file(format!("make {}", path.display())))?;
        }
        let file = state.join("sources.list");
        fs::write(&file, sources).map_err(GuestError::file(format!("write {}", file.display())))?;
        let read =
            Self::Private { state: state.to_owned(), archive: archive.clone(), reason: None };
        // The exit status is no matter, because one of the sources (such as security updates or backports) may be
        // missing. If the others do not have the kernel, the first error is the reason.
        let updated = output(read.apt("apt-get").args(["-qq", "update"]))?;
        Ok(Self::Private { state: state.to_owned(), archive, reason: first_error(&updated) })
    }

    /// The releases of the kernels in these lists, in no order.
    pub(crate) fn kernels(&self) -> Result<Vec<Release>, GuestError> {
        let names = output(self.apt("apt-cache").args(["pkgnames", PACKAGE]))?;
        let names = String::from_utf8_lossy(&names.stdout).into_owned();
        let releases = names.lines().filter_map(|name| name.strip_prefix(PACKAGE));
        Ok(releases.filter_map(Release::of_image).collect())
    }

    /// Downloads the packages of a kernel into `directory`, which has no others.
    pub(crate) fn download(
        &self,
        release: &Release,
        directory: &Path,
    ) -> Result<Vec<PathBuf>, GuestError> {
        let name = format!("{PACKAGE}{release}");
        let names = output(self.apt("apt-cache").args(["pkgnames", "linux-"]))?;
        let names = String::from_utf8_lossy(&names.stdout).into_owned();
        let mut wanted = vec![name.clone()];
        wanted.extend(PARTS.iter().map(|part| format!("{part}{release}")));
        wanted.retain(|wanted| *wanted == name || names.lines().any(|known| known == wanted));
        let mut download = self.apt("apt-get");
        download.args(["-qq", "download"]).args(&wanted);
        let done = output(download.current_dir(directory))?;
        let packages = fs::read_dir(directory).into_iter().flatten().flatten();
        let mut packages: Vec<_> = packages.map(|entry| entry.path()).collect();
        packages.retain(|path| path.extension().is_some_and(|end| end == "deb"));
        if done.status.success() && packages.len() == wanted.len() {
            return Ok(packages);
        }
        Err(self.failed(&name, first_error(&done)))
    }

    /// The error for something that these lists do not have, or that cannot be fetched, if apt gave a reason.
    pub(crate) fn reason(&self, what: &str) -> Option<GuestError> {
        match self {
            Self::Private { reason: Some(reason), .. } => {
                Some(self.failed(what, Some(reason.clone())))
            }
            _ => None,
        }
    }

    fn failed(&self, what: &str, reason: Option<String>) -> GuestError {
        let reason = reason.unwrap_or_else(|| "apt gave no reason".to_owned());
        let full = ["No space left", "enough free space", "Disk quota"];
        if full.iter().any(|word| reason.contains(word)) {
            let source = io::Error::new(io::ErrorKind::StorageFull, reason);
            return GuestError::File { action: format!("keep {what}"), source };
        }
        let remedy = if OF_SIGNATURES.iter().any(|word| reason.contains(word)) {
            "the archive is not what Debian has signed, so nothing of it is used: name another one in \
             WAKEAI_DEBIAN_MIRROR"
        } else {
            "check the network, name another archive in WAKEAI_DEBIAN_MIRROR, or give --kernel the path of an image"
        };
        let from = match self {
            Self::Own => "this machine's package sources".to_owned(),
            Self::Private { archive, .. } => archive.clone(),
        };
        GuestError::Fetch { what: what.to_owned(), from, reason, remedy: remedy.to_owned() }
    }

    fn apt(&self, tool: &str) -> Command {
        let mut command = Command::new(tool);
        let mut options = vec![
            "APT::Sandbox::User=".to_owned(),
            "Acquire::Retries=1".to_owned(),
            "Acquire::http::Timeout=20".to_owned(),
        ];
        if let Self::Private { state, .. } = self {
            let state = state.display();
            options.extend([
                "Acquire::Languages=none".to_owned(),
                // A suite that is no longer updated has signed lists whose last valid date has passed.
                "Acquire::Check-Valid-Until=false".to_owned(),
                "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false".to_owned(),
                format!("Dir::State={state}"),
                "Dir::State::status=/dev/null".to_owned(),
                format!("Dir::Cache={state}"),
                format!("Dir::Etc::sourcelist={state}/sources.list"),
                "Dir::Etc::sourceparts=/dev/null".to_owned(),
                "Dir::Etc::preferences=/dev/null".to_owned(),
                "Dir::Etc::preferencesparts=/dev/null".to_owned(),
            ]);
        }
        for option in options {
            command.args(["-o", &option]);
        }
        command.env("LC_ALL", "C").stdin(Stdio::null());
        command
    }
}

fn output(command: &mut Command) -> Result<Output, GuestError> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.output().map_err(|_| GuestError::program(&name, "apt"))
}

/// The words of apt about lists and packages that are not what their owner has signed.
const OF_SIGNATURES: [&str; 6] =
    ["BADSIG", "NO_PUBKEY", "signatures", "not signed", "no longer signed", "Hash Sum"];

/// The first error about a signature in apt's output, or else the first error, or else the first warning of a list or file
/// that it could not fetch.
fn first_error(of: &Output) -> Option<String> {
    let said = String::from_utf8_lossy(&of.stderr).into_owned();
    let marked = |mark: &str, words: &[&str]| {
        let mut lines = said.lines().filter_map(|line| line.strip_prefix(mark));
        let found = lines.find(|line| {
            let is_of = words.is_empty() || words.iter().any(|word| line.contains(word));
            is_of && !line.contains("unsandboxed")
        });
        found.map(|line| line.trim().trim_end_matches('.').to_owned())
    };
    let signatures = ["W: ", "E: "].into_iter().find_map(|mark| marked(mark, &OF_SIGNATURES));
    signatures.or_else(|| ["E: ", "W: ", "Err:"].into_iter().find_map(|mark| marked(mark, &[])))
}

/// Returns the URL of Debian's archive, without a slash at its end. It is the URL in
/// `WAKEAI_DEBIAN_MIRROR`, or else the one in this machine's package sources. Where these name only
/// Ubuntu's archive, it is `/debian` on the same server.
fn archive() -> String {
    if let Ok(asked) = std::env::var(MIRROR) {
        return asked.trim_end_matches('/').to_owned();
    }
    let targets = Command::new("apt-get")
        .args(["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"])
        .output();
    let uris = targets.map(|targets| String::from_utf8_lossy(&targets.stdout).into_owned());
    uris.ok().and_then(|uris| archive_among(&uris)).unwrap_or_else(|| ARCHIVE.to_owned())
}

fn archive_among(uris: &str) -> Option<String> {
    let root = |name| uris.lines().find_map(|uri| uri.trim_end_matches('/').strip_suffix(name));
    let root = root("/debian").or_else(|| root("/debian-security")).or_else(|| root("/ubuntu"));
    root.map(|root| format!("{root}/debian"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops where something fails")]

    use super::*;

    #[test]
    fn an_error_of_a_signature_is_told_before_others() {
        let said = |text: &str| {
            let status = std::process::ExitStatus::default();
            first_error(&Output { status, stdout: Vec::new(), stderr: text.into() })
        };
        let text = "E: The repository 'x Release' does not have a Release file.\n\
                    W: GPG error: y InRelease: The following signatures were invalid: BADSIG 1\n";
        assert!(said(text).unwrap().starts_with("GPG error: y"));
        assert_eq!(said("W: one\nE: two.\n").as_deref(), Some("two"));
        assert_eq!(said("Reading package lists...\n"), None);
    }

    #[test]
    fn the_archive_is_the_machine_s_own_or_beside_it() {
        let found = |uris| archive_among(uris);
        let own = Some("http://mirror.example/debian".to_owned());
        assert_eq!(found("http://other.example/apt/\nhttp://mirror.example/debian/\n"), own);
        assert_eq!(found("http://mirror.example/debian-security/\n"), own);
        assert_eq!(found("http://mirror.example/ubuntu/\n"), own);
        assert_eq!(found("http://other.example/apt/\n"), None);
    }
}
