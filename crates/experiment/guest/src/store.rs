//! Kernels: found by version in Debian's archive and kept in the user's cache, or given as the path of an image.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::apt::{self, Lists};
use crate::error::Place;
use crate::modules::{Modules, wanted};
use crate::release::Release;
use crate::{GuestError, which};

/// The suites that are searched where this machine's own package lists do not have the kernel.
const SUITES: [&str; 2] = ["stable", "stable-backports"];
/// The file that a complete kernel in the cache has. It lists the modules that were looked for.
const COMPLETE: &str = "complete";
/// The start of the names of directories in which kernels are unpacked.
const PARTIAL: &str = ".partial-";

/// A kernel's image and modules.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The release, such as `6.12.117+deb12-amd64`.
    pub release: Release,
    /// The path of the image.
    pub image: PathBuf,
    /// The modules.
    pub modules: Modules,
    /// A directory that exists as long as the modules are needed.
    _held: Option<std::sync::Arc<tempfile::TempDir>>,
}

impl Kernel {
    /// The digest of the image, BLAKE3 in hexadecimal.
    ///
    /// # Errors
    ///
    /// [`GuestError::File`].
    pub fn digest(&self) -> Result<String, GuestError> {
        let image = fs::read(&self.image)
            .map_err(GuestError::file(format!("read {}", self.image.display())))?;
        Ok(blake3::hash(&image).to_hex().to_string())
    }
}

/// The user's kernels.
#[derive(Clone, Debug)]
pub struct Store {
    directory: PathBuf,
}

impl Store {
    /// The kernels in `directory`, which is made when it is needed.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// The kernels of this user: `wakeai/kernels` below `XDG_CACHE_HOME` or `~/.cache`, and for a user without a home
    /// a directory of their own below `TMPDIR`.
    ///
    /// # Errors
    ///
    /// No such directory can be made, or another user has made it.
    pub fn of_user() -> Result<Self, GuestError> {
        let own = std::env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty());
        let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
        if let Some(path) = own.clone().map(PathBuf::from).or_else(home) {
            let directory = path.join("wakeai/kernels");
            match make_private(&directory) {
                Ok(()) => return Ok(Self { directory }),
                Err(error) if own.is_some() => {
                    return Err(GuestError::file(format!("make {}", directory.display()))(error));
                }
                Err(_) => {} // such as /nonexistent, the home of nobody
            }
        }
        private_temporary().map(|directory| Self { directory: directory.join("kernels") })
    }

    /// The kernel that `asked` names: a path of an image, with its modules in `modules` or beside it; `latest`, the
    /// highest release of Debian's archive; or a version. Of a version the highest release is taken that is in the
    /// cache, else in this machine's package lists, else in Debian's stable suite and its backports. `say` is told what takes long.
    ///
    /// # Errors
    ///
    /// [`GuestError`], with what was found instead.
    pub fn kernel(
        &self,
        asked: &str,
        modules: Option<&Path>,
        say: &dyn Fn(&str),
    ) -> Result<Kernel, GuestError> {
        if asked.contains('/') {
            return given(asked, modules);
        }
        if modules.is_some() {
            return Err(unknown(
                asked,
                "--modules belongs to the path of an image",
                "leave it out",
            ));
        }
        let is_version = asked.starts_with(|c: char| c.is_ascii_digit());
        if !is_version && asked != "latest" {
            return Err(unknown(
                asked,
                "this is neither a version, nor `latest`, `host` or a path",
                "give it one such as 6.12, or ./vmlinuz",
            ));
        }
        if is_version && let Some(kept) = self.kept(&|release| release.is(asked))? {
            return Ok(kept);
        }
        self.in_own_lists(asked, say)?.map_or_else(|| self.in_suites(asked, &SUITES, say), Ok)
    }

    /// The highest kernel of a version in a suite of Debian and its security updates.
    ///
    /// # Errors
    ///
    /// [`GuestError`].
    pub fn kernel_of_suite(
        &self,
        version: &str,
        suite: &str,
        say: &dyn Fn(&str),
    ) -> Result<Kernel, GuestError> {
        match self.kept(&|release| release.is(version))? {
            Some(kept) => Ok(kept),
            None => self.in_suites(version, &[suite], say),
        }
    }

    /// The highest kernel in the cache that `is` accepts.
    fn kept(&self, is: &dyn Fn(&Release) -> bool) -> Result<Option<Kernel>, GuestError> {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| Release::of_image(entry.file_name().to_str()?));
        let mut releases: Vec<_> = names.filter(|release| is(release)).collect();
        releases.sort();
        while let Some(release) = releases.pop() {
            if let Some(kernel) = self.complete(&release)? {
                return Ok(Some(kernel));
            }
        }
        Ok(None)
    }

    /// The kernel of this release, if the cache has it with all modules.
    fn complete(&self, release: &Release) -> Result<Option<Kernel>, GuestError> {
        let directory = self.directory.join(release.as_str());
        if fs::read_to_string(directory.join(COMPLETE)).ok() != Some(listed()) {
            return Ok(None);
        }
        let modules = Modules::read(&directory)?;
        let image = directory.join("vmlinuz");
        Ok(Some(Kernel { release: release.clone(), image, modules, _held: None }))
    }

    fn in_own_lists(&self, asked: &str, say: &dyn Fn(&str)) -> Result<Option<Kernel>, GuestError> {
        apt::check()?;
        // The newest kernel is not looked for in lists that may be old.
        if apt::names_a_mirror() || asked == "latest" {
            return Ok(None);
        }
        let own = Lists::Own;
        let mut found = own.kernels()?;
        found.retain(|release| release.is(asked));
        let Some(highest) = found.into_iter().max() else { return Ok(None) };
        // The lists may be old, and name a package that the archive no longer has.
        match self.fetched(&own, &highest, say) {
            Ok(kernel) => Ok(Some(kernel)),
            Err(GuestError::Fetch { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn in_suites(
        &self,
        asked: &str,
        suites: &[&str],
        say: &dyn Fn(&str),
    ) -> Result<Kernel, GuestError> {
        let state = temporary("apt")?;
        say(&format!("looking for Linux {asked} in Debian's {}", suites.join(" and ")));
        let lists = Lists::read(suites, state.path())?;
        let found = lists.kernels()?;
        let is = |release: &&Release| asked == "latest" || release.is(asked);
        let Some(highest) = found.iter().filter(is).max().cloned() else {
            let what = format!("Linux {asked} of {}", suites.join(" and "));
            return Err(lists.reason(&what).unwrap_or_else(|| {
                let mut known: Vec<_> = found.iter().map(ToString::to_string).collect();
                known.sort();
                known.dedup();
                unknown(
                    asked,
                    &format!("Debian's {} have {}", suites.join(" and "), known.join(", ")),
                    "give one of these, or the path of an image",
                )
            }));
        };
        match self.complete(&highest)? {
            Some(kernel) => Ok(kernel),
            None => self.fetched(&lists, &highest, say),
        }
    }

    /// Downloads and unpacks a kernel. Of several processes that want it, one does, and the others wait.
    fn fetched(
        &self,
        lists: &Lists,
        release: &Release,
        say: &dyn Fn(&str),
    ) -> Result<Kernel, GuestError> {
        let here = self.directory.display();
        make_private(&self.directory).map_err(GuestError::file(format!("make {here}")))?;
        let lock = File::create(self.directory.join("lock"))
            .map_err(GuestError::file(format!("write into {here}")))?;
        if lock.try_lock().is_err() {
            say("another process fetches a kernel: waiting for it");
            lock.lock().map_err(GuestError::file(format!("lock {here}")))?;
        }
        if let Some(kernel) = self.complete(release)? {
            return Ok(kernel);
        }
        self.remove_partial();
        let partial = tempfile::Builder::new()
            .prefix(PARTIAL)
            .tempdir_in(&self.directory)
            .map_err(GuestError::file(format!("write into {here}")))?;
        // Packages of newer kernels need it, and it is named before the long way.
        which("xz").ok_or_else(|| GuestError::program("xz", "xz-utils"))?;
        say(&format!("fetching Linux {release}, once: about 110 MB, into {here}"));
        let packages = lists.download(release, partial.path())?;
        let ready = partial.path().join("ready");
        unpack(&packages, release, partial.path(), &ready)?;
        let complete = ready.join(COMPLETE);
        fs::write(&complete, listed())
            .map_err(GuestError::file(format!("write {}", complete.display())))?;
        let place = self.directory.join(release.as_str());
        let _ = fs::remove_dir_all(&place); // an earlier version of wakeai has made it, with other modules
        fs::rename(&ready, &place)
            .map_err(GuestError::file(format!("make {}", place.display())))?;
        self.complete(release)?.ok_or_else(|| {
            GuestError::file(format!("read {}", place.display()))(io::Error::other(
                "it is incomplete",
            ))
        })
    }

    /// Removes what processes have left that were killed while they unpacked a kernel.
    fn remove_partial(&self) {
        for entry in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(PARTIAL) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

/// The modules that a kernel in the cache was searched for.
fn listed() -> String {
    wanted().collect::<Vec<_>>().join(" ")
}

/// Puts the image and the modules of a kernel's packages into `ready`.
fn unpack(
    packages: &[PathBuf],
    release: &Release,
    work: &Path,
    ready: &Path,
) -> Result<(), GuestError> {
    let all = work.join("all");
    for package in packages {
        let unpacked = Command::new("dpkg-deb")
            .arg("-x")
            .args([package, &all])
            .env("LC_ALL", "C")
            .output()
            .map_err(|_| GuestError::program("dpkg-deb", "dpkg"))?;
        if !unpacked.status.success() {
            let said = String::from_utf8_lossy(&unpacked.stderr).trim().to_owned();
            let full = said.contains("No space left");
            let kind = if full { io::ErrorKind::StorageFull } else { io::ErrorKind::Other };
            let reason = said.lines().next().unwrap_or_default().to_owned();
            return Err(GuestError::file(format!(
                "unpack {} in {}",
                package.display(),
                work.display()
            ))(io::Error::new(kind, reason)));
        }
    }
    // The packages of Debian 13 have everything in /usr.
    let trees =
        ["lib/modules", "usr/lib/modules"].map(|tree| all.join(tree).join(release.as_str()));
    let tree = trees.iter().find(|tree| tree.is_dir()).unwrap_or(&trees[0]);
    Modules::take(tree, ready)?;
    // Newer packages have the image beside the modules.
    let images = [all.join("boot").join(format!("vmlinuz-{release}")), tree.join("vmlinuz")];
    let image = images.iter().find(|image| image.is_file()).unwrap_or(&images[0]);
    fs::rename(image, ready.join("vmlinuz"))
        .map_err(GuestError::file(format!("take {}", image.display())))
}

/// The kernel whose image has this path.
fn given(asked: &str, modules: Option<&Path>) -> Result<Kernel, GuestError> {
    let image = PathBuf::from(asked);
    let release = Release::in_image(&image)
        .map_err(GuestError::file(format!("read the kernel {asked}")))?
        .ok_or_else(|| {
            unknown(
                asked,
                "the file is no image of Linux for x86-64 (bzImage)",
                "give the path of one",
            )
        })?;
    let beside = image.parent().unwrap_or(Path::new("")).join("lib/modules");
    let above = image.parent().and_then(Path::parent).unwrap_or(Path::new("")).join("lib/modules");
    let own = image.parent().unwrap_or(Path::new("")).to_owned();
    let places = if let Some(directory) = modules {
        vec![directory.join(release.as_str()), directory.to_owned()]
    } else {
        vec![beside.join(release.as_str()), above.join(release.as_str()), own]
    };
    let Some(tree) = places.iter().find(|place| place.join("kernel").is_dir()) else {
        let looked: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
        return Err(unknown(
            asked,
            &format!("its modules are in none of {}", looked.join(", ")),
            "name their directory with --modules",
        ));
    };
    let held = temporary("modules")?;
    let modules = Modules::take(tree, held.path())?;
    Ok(Kernel { release, image, modules, _held: Some(held.into()) })
}

fn unknown(asked: &str, found: &str, remedy: &str) -> GuestError {
    GuestError::Kernel {
        asked: asked.to_owned(),
        found: found.to_owned(),
        remedy: remedy.to_owned(),
    }
}

/// A directory that is removed when it is no longer used.
fn temporary(what: &str) -> Result<tempfile::TempDir, GuestError> {
    let made = tempfile::Builder::new().prefix(&format!("wakeai-{what}-")).tempdir();
    made.map_err(GuestError::file(format!(
        "make a directory in {}",
        std::env::temp_dir().display()
    )))
}

/// Makes a directory, and those above it, for this user alone.
fn make_private(directory: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// The directory of this user below `TMPDIR`.
fn private_temporary() -> Place {
    let user = rustix::process::geteuid().as_raw();
    let directory = std::env::temp_dir().join(format!("wakeai-{user}"));
    let failed = || GuestError::file(format!("make {}", directory.display()));
    make_private(&directory).map_err(failed())?;
    // Another user may have made it first, and could then change the kernels in it.
    let found = fs::symlink_metadata(&directory).map_err(failed())?;
    if found.is_dir() && found.uid() == user && found.mode() & 0o022 == 0 {
        return Ok(directory);
    }
    Err(failed()(io::Error::other("it belongs to another user, or others may write into it")))
}
