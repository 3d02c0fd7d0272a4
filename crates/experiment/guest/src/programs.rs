//! Programs of this machine in a guest: their files, their shared libraries and their loaders.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Archive, GuestError, elf, which};

/// A program of this machine, or one that was built for the guest.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program's path on this machine.
    pub from: PathBuf,
    /// The program's path in the guest.
    pub to: PathBuf,
}

impl Program {
    /// This machine's program `name`, of Debian's package `package`, which the guest has in `/usr/bin`.
    ///
    /// # Errors
    ///
    /// [`GuestError::Missing`].
    pub fn of(name: &str, package: &str) -> Result<Self, GuestError> {
        let from = which(name).ok_or_else(|| GuestError::program(name, package))?;
        Ok(Self { from, to: Path::new("/usr/bin").join(name) })
    }

    /// This machine's program `name`, which the guest has in `/usr/bin`.
    ///
    /// # Errors
    ///
    /// [`GuestError::Missing`].
    pub fn tool(name: &str) -> Result<Self, GuestError> {
        Self::of(name, name)
    }
}

/// The directories of this machine's shared libraries.
pub fn library_directories() -> Vec<PathBuf> {
    let all = [
        "/lib/x86_64-linux-gnu",
        "/usr/lib/x86_64-linux-gnu",
        "/lib64",
        "/usr/lib64",
        "/lib",
        "/usr/lib",
    ];
    all.map(PathBuf::from).into()
}

/// Adds programs to a guest's file system, without what no loader reads, and the libraries of `directories` that they
/// and these libraries need, in `/lib`.
///
/// # Errors
///
/// A program or library that cannot be read, or a library that is in none of the directories.
pub fn add_programs(
    archive: &mut Archive,
    programs: &[Program],
    directories: &[PathBuf],
) -> Result<(), GuestError> {
    archive.directory("lib");
    archive.link("lib64", "lib");
    let mut unread: Vec<(PathBuf, String)> = Vec::new();
    for program in programs {
        unread.push((program.from.clone(), program.to.display().to_string()));
    }
    let mut known = std::collections::BTreeSet::new();
    while let Some((from, to)) = unread.pop() {
        let failed = GuestError::file(format!("read {}", from.display()));
        let file = fs::read(&from).map_err(failed)?;
        let (libraries, loader) = elf::needs(&file);
        archive.executable(&to, elf::stripped(file));
        let loader =
            loader.and_then(|path| Some(Path::new(&path).file_name()?.to_str()?.to_owned()));
        for name in libraries.into_iter().chain(loader) {
            if !known.insert(name.clone()) {
                continue;
            }
            let mut places = directories.iter().map(|directory| directory.join(&name));
            let place = places.find(|place| place.exists()).ok_or_else(|| GuestError::Missing {
                what: format!("the library {name}, which {} needs", from.display()),
                remedy: "install the package that has it".to_owned(),
            })?;
            unread.push((place, format!("lib/{name}")));
        }
    }
    Ok(())
}
