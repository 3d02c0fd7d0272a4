//! The runs that were made so far, on disk, so that the same command goes on where it was cut.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::plan::random;
use super::raw::RawRun;
use crate::error::FieldError;
use crate::station::is_session;

/// The file that tells which command the runs belong to.
const COMMAND: &str = "command.json";
/// The file of what the stations reach alone.
const SOLOS: &str = "solos.json";

/// The random bytes of a session's name.
const SESSION_BYTES: usize = 8;
/// The file of the session's name.
const SESSION: &str = "session.json";

/// The directory of the runs of a command that keeps its result; nothing is kept without one.
pub(super) struct Journal {
    directory: Option<PathBuf>,
}

/// What makes two commands the same: what they run, and on which machines.
pub(super) type Command = BTreeMap<String, String>;

impl Journal {
    /// The journal of the command whose result goes into `out`: a directory beside it. An earlier one of the same command is
    /// taken up.
    pub(super) fn open(out: Option<&Path>, command: &Command) -> Result<Self, FieldError> {
        let Some(out) = out else { return Ok(Self { directory: None }) };
        let mut name = out.file_name().unwrap_or(out.as_os_str()).to_owned();
        name.push(".runs");
        let directory = out.with_file_name(name);
        let journal = Self { directory: Some(directory.clone()) };
        match journal.read::<Command>(COMMAND) {
            Some(before) if before == *command => Ok(journal),
            Some(before) => {
                let differs = |key: &&String| before.get(*key) != command.get(*key);
                let what: Vec<&str> = command.keys().filter(differs).map(String::as_str).collect();
                Err(FieldError::OtherSession { path: directory, what: what.join(", ") })
            }
            None => {
                fs::create_dir(&directory)
                    // An empty one was cut before it had written anything.
                    .or_else(|error| if is_empty(&directory) { Ok(()) } else { Err(error) })
                    .map_err(|source| FieldError::Keep { path: directory, source })?;
                journal.write(COMMAND, command)?;
                Ok(journal)
            }
        }
    }

    /// The name of the session with the helpers. It stays the same when the command is taken up, so that helpers that still run
    /// belong to it.
    pub(super) fn session(&self) -> Result<String, FieldError> {
        if let Some(name) = self.read(SESSION).filter(|name: &String| is_session(name)) {
            return Ok(name);
        }
        let name = random(SESSION_BYTES);
        self.write(SESSION, &name)?;
        Ok(name)
    }

    /// The runs that were made before, by block and condition.
    pub(super) fn runs(&self) -> BTreeMap<(u32, usize), RawRun> {
        let Some(directory) = &self.directory else { return BTreeMap::new() };
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let names = names.filter(|name| name.starts_with("run-"));
        let runs = names.filter_map(|name| self.read::<RawRun>(&name));
        runs.map(|run| ((run.block, run.condition), run)).collect()
    }

    pub(super) fn keep_run(&self, run: &RawRun) -> Result<(), FieldError> {
        self.write(&format!("run-{}-{}.json", run.block, run.condition), run)
    }

    /// What the stations reach alone, by station and direction.
    pub(super) fn solos(&self) -> BTreeMap<String, f64> {
        self.read(SOLOS).unwrap_or_default()
    }

    pub(super) fn keep_solos(&self, solos: &BTreeMap<String, f64>) -> Result<(), FieldError> {
        self.write(SOLOS, solos)
    }

    /// Removes the runs: the result has them.
    pub(super) fn remove(self) {
        if let Some(directory) = self.directory {
            let _ = fs::remove_dir_all(directory); // what stays can be removed by hand
        }
    }

    /// Where the runs are, for the user.
    pub(super) fn path(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let text = fs::read(self.directory.as_ref()?.join(name)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Writes a file, completely or not at all.
    fn write(&self, name: &str, value: &impl Serialize) -> Result<(), FieldError> {
        let Some(directory) = &self.directory else { return Ok(()) };
        let path = directory.join(name);
        let temporary = path.with_extension("new");
        let write = || -> io::Result<()> {
            fs::write(&temporary, serde_json::to_vec(value)?)?;
            fs::rename(&temporary, &path)
        };
        write().map_err(|source| {
            let _ = fs::remove_file(&temporary);
            FieldError::Keep { path: path.clone(), source }
        })
    }
}

fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(seed: &str) -> Command {
        BTreeMap::from([("seed".to_owned(), seed.to_owned())])
    }

    #[test]
    fn the_same_command_finds_its_runs_and_another_one_is_refused() {
        let base = std::env::temp_dir().join(format!("wakeai-journal-{}", std::process::id()));
        fs::create_dir(&base).unwrap();
        let out = base.join("out");
        let journal = Journal::open(Some(&out), &command("1")).unwrap();
        assert!(journal.runs().is_empty() && journal.solos().is_empty());
        let run = RawRun { condition: 1, block: 2, wall_s: 3.5, ..RawRun::default() };
        journal.keep_run(&run).unwrap();
        journal.keep_solos(&BTreeMap::from([("a up".to_owned(), 5.0)])).unwrap();
        let session = journal.session().unwrap();
        let again = Journal::open(Some(&out), &command("1")).unwrap();
        assert_eq!(again.session().unwrap(), session, "helpers that still run belong to it");
        let none = Journal::open(None, &command("1")).unwrap();
        assert_ne!(none.session().unwrap(), none.session().unwrap(), "nothing is kept");
        assert_eq!(again.runs(), BTreeMap::from([((2, 1), run)]));
        assert_eq!(again.solos(), BTreeMap::from([("a up".to_owned(), 5.0)]));
        let other = Journal::open(Some(&out), &command("2")).err().unwrap().to_string();
        assert!(other.contains("out.runs: it has runs of another command: seed"), "{other}");
        again.remove();
        assert_eq!(fs::read_dir(&base).unwrap().count(), 0);
        fs::remove_dir(&base).unwrap();
    }
}
