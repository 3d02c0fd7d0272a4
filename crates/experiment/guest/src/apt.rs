//! Downloads packages of any suite of Debian, on a machine with apt. It uses package lists of its
//! own and this machine's mirror. Where Debian's keys are installed, it verifies the packages with
//! them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Debian's keys, of the package `debian-archive-keyring`.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// The package lists of one suite and its security updates.
pub(crate) struct Suite {
    state: PathBuf,
}

impl Suite {
    /// Reads the lists into `state`.
    pub(crate) fn read(suite: &str, state: &Path) -> Result<Self, String> {
        let archive = archive().ok_or(
            "this machine's package sources name no archive of Debian; \
             set WAKEAI_DEBIAN_MIRROR to the URL of one, which ends in /debian",
        )?;
        let keys =
            if Path::new(KEYS).exists() { format!("[signed-by={KEYS}] ") } else { String::new() };
        let mut sources = vec![format!("deb {keys}{archive} {suite} main\n")];
        if !suite.contains('-') {
            sources.push(format!("deb {keys}{archive}-security {suite}-security main\n"));
        }
        for directory in ["lists/partial", "archives/partial"] {
            fs::create_dir_all(state.join(directory)).unwrap();
        }
        fs::write(state.join("sources.list"), sources.concat()).unwrap();
        let read = Self { state: state.to_owned() };
        // An error is ignored, because one of the two sources (suite and security updates) may be
        // missing. If the other one does not have the kernel, the check of its version fails.
        let _ = read.apt("apt-get").args(["-qq", "update"]).status();
        Ok(read)
    }

    /// Downloads, into `directory`, the first package on which the package `name` depends, if `is`
    /// accepts that package's name.
    pub(crate) fn download_dependency(
        &self,
        name: &str,
        is: impl Fn(&str) -> bool,
        directory: &Path,
    ) -> Result<PathBuf, String> {
        let shown = self.apt("apt-cache").args(["depends", name]).output().unwrap();
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        let mut depends = shown.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
        let found =
            depends.next().ok_or_else(|| format!("the mirror has no {name} of that suite"))?;
        if !is(found) {
            return Err(format!("in that suite {name} depends on {found}"));
        }
        fs::create_dir_all(directory).unwrap();
        let mut download = self.apt("apt-get");
        download.args(["-qq", "download", found]).current_dir(directory);
        let package = super::succeeds(&mut download).then(|| package_in(directory)).flatten();
        package.ok_or_else(|| format!("{found} cannot be downloaded"))
    }

    fn apt(&self, tool: &str) -> Command {
        let mut command = Command::new(tool);
        let state = self.state.display();
        for option in [
            "APT::Sandbox::User=".to_owned(),
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
        ] {
            command.args(["-o", &option]);
        }
        command.env("LC_ALL", "C").stdin(Stdio::null());
        command
    }
}

fn package_in(directory: &Path) -> Option<PathBuf> {
    let mut paths = fs::read_dir(directory).unwrap().flatten().map(|entry| entry.path());
    paths.find(|path| path.extension().is_some_and(|extension| extension == "deb"))
}

/// Returns the URL of Debian's archive, without a slash at its end. It is the URL in
/// `WAKEAI_DEBIAN_MIRROR`, or else the one in this machine's package sources. Where these name only
/// Ubuntu's archive, it is `/debian` on the same server.
fn archive() -> Option<String> {
    if let Ok(asked) = std::env::var("WAKEAI_DEBIAN_MIRROR") {
        return Some(asked.trim_end_matches('/').to_owned());
    }
    let targets = Command::new("apt-get")
        .args(["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"])
        .output()
        .ok()?;
    archive_among(&String::from_utf8_lossy(&targets.stdout))
}

fn archive_among(uris: &str) -> Option<String> {
    let root = |name| uris.lines().find_map(|uri| uri.trim_end_matches('/').strip_suffix(name));
    let root = root("/debian").or_else(|| root("/debian-security")).or_else(|| root("/ubuntu"));
    root.map(|root| format!("{root}/debian"))
}

#[cfg(test)]
mod tests {
    use super::*;

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
