//! Changes single keys in a configuration file. Everything else stays as it is: comments, order and
//! blanks.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, Item, TableLike, Value};

use super::{ConfigError, Examined};

/// A measured value for a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Measured {
    /// `access_point.buffer`, in packets.
    Buffer(u32),
    /// `max`: the goodput that the station reaches alone.
    Max(wakeai_units::Rate),
}

/// A change of one key.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Changed {
    /// The dotted key.
    pub key: &'static str,
    /// The value before the change, as TOML. It is `None` if the key was not in the file.
    pub before: Option<String>,
    /// The value after the change, as TOML.
    pub after: String,
}

/// The reason why the file was not changed.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The configuration is not valid, either before or after the change.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The file is not TOML.
    #[error("{path}: {source}")]
    Toml {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: toml_edit::TomlError,
    },
    /// The file cannot be replaced.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
}

impl Measured {
    /// The table, the key in it, the dotted key, and the value.
    fn entry(&self) -> (Option<&'static str>, &'static str, &'static str, Value) {
        match self {
            Self::Buffer(packets) => {
                (Some("access_point"), "buffer", "access_point.buffer", i64::from(*packets).into())
            }
            Self::Max(rate) => (None, "max", "max", rate.to_string().into()),
        }
    }
}

/// Writes measured values into the configuration at `path`, and keeps its comments. The new file
/// has the mode and owner of the old file. It replaces the old file in one step.
///
/// # Errors
/// [`EditError`] if the file is not a valid configuration, or cannot be replaced. The file then
/// stays as it was.
pub fn write_measured(path: &Path, measured: &[Measured]) -> Result<Vec<Changed>, EditError> {
    let read = |source| ConfigError::Read { path: path.to_owned(), source };
    let text = fs::read_to_string(path).map_err(read)?;
    Examined::parse(&text, Some(path)).into_config()?;
    let toml = |source| EditError::Toml { path: path.to_owned(), source };
    let (edited, changed) = edit(&text, measured).map_err(toml)?;
    Examined::parse(&edited, Some(path)).into_config()?;
    let write = |source| EditError::Write { path: path.to_owned(), source };
    if changed.iter().any(|changed| changed.before.as_ref() != Some(&changed.after)) {
        replace(path, &edited).map_err(write)?;
    }
    Ok(changed)
}

fn edit(text: &str, measured: &[Measured]) -> Result<(String, Vec<Changed>), toml_edit::TomlError> {
    let mut document: DocumentMut = text.parse()?;
    let mut changed = Vec::new();
    for one in measured {
        let (table, name, key, value) = one.entry();
        let table: &mut dyn TableLike = match table {
            None => document.as_table_mut(),
            Some(table) => {
                let item = document.entry(table).or_insert(toml_edit::table());
                let Some(table) = item.as_table_like_mut() else { continue }; // `Config::parse` has refused it already
                table
            }
        };
        let before = table.get(name).and_then(Item::as_value).cloned();
        changed.push(Changed::new(key, before.as_ref(), &value));
        match table.get_mut(name) {
            Some(Item::Value(old)) => set(old, value),
            _ => drop(table.insert(name, Item::Value(value))),
        }
    }
    Ok((document.to_string(), changed))
}

/// Sets a value and keeps the blanks and the comment around it.
fn set(old: &mut Value, mut new: Value) {
    *new.decor_mut() = old.decor().clone();
    *old = new;
}

impl Changed {
    fn new(key: &'static str, before: Option<&Value>, after: &Value) -> Self {
        let shown = |value: &Value| value.to_string().trim().to_owned();
        let bare = |value: &Value| {
            let mut value = value.clone();
            value.decor_mut().clear();
            shown(&value)
        };
        Self { key, before: before.map(bare), after: bare(after) }
    }
}

fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let path = fs::canonicalize(path)?; // a symbolic link stays a link
    let metadata = fs::metadata(&path)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = path.with_file_name(name);
    let write = || {
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(text.as_bytes())?;
        fchown(&file, Some(metadata.uid()), Some(metadata.gid()))?;
        file.set_permissions(metadata.permissions())?;
        file.sync_all()?;
        fs::rename(&new, &path)
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(&new);
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use wakeai_units::Rate;

    use super::*;
    use crate::config::Config;

    const FILE: &str = "# my station\ninterface = \"wlan0\"   # on the left\nkey_file = \"/k\"\n\n\
                        max = \"1Mbit/s\"      # guessed\n\n[access_point] # in the hall\nbuffer = 300   # default\n\n\
                        [log]\nlevel = \"info\"\n";

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("agent.toml");
        fs::write(&path, text).unwrap();
        (directory, path)
    }

    #[test]
    fn values_change_and_comments_order_and_mode_stay() {
        let (_directory, path) = file(FILE);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let measured = [Measured::Buffer(75), Measured::Max(Rate::from_bps(26_400_000))];
        let changed = write_measured(&path, &measured).unwrap();
        let expected = FILE.replace("300", "75").replace("1Mbit/s", "26.4Mbit/s");
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        let shown: Vec<_> = changed
            .iter()
            .map(|one| (one.key, one.before.as_deref(), one.after.as_str()))
            .collect();
        let max = ("max", Some("\"1Mbit/s\""), "\"26.4Mbit/s\"");
        assert_eq!(shown, [("access_point.buffer", Some("300"), "75"), max]);
    }

    #[test]
    fn missing_keys_and_tables_are_added() {
        let base = "interface = \"wlan0\"\nkey_file = \"/k\"\n# the end of the keys\n\n[log]\nlevel = \"info\"\n";
        let (_directory, path) = file(base);
        let measured = [Measured::Buffer(75), Measured::Max(Rate::from_mbps(26))];
        let changed = write_measured(&path, &measured).unwrap();
        assert!(changed.iter().all(|one| one.before.is_none()));
        let text = fs::read_to_string(&path).unwrap();
        assert!(base.lines().all(|line| text.contains(line)), "{text}");
        let config = Config::parse(&text).unwrap();
        assert_eq!((config.access_point.buffer, config.max), (75, Some(Rate::from_mbps(26))));
    }

    #[test]
    fn an_inline_table_stays_one() {
        let base = "interface = \"wlan0\"\nkey_file = \"/k\"\naccess_point = { buffer = 9, basic_rate = \"6Mbit/s\" } # here\n";
        let (_directory, path) = file(base);
        write_measured(&path, &[Measured::Buffer(75)]).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), base.replace("buffer = 9", "buffer = 75"));
    }

    #[test]
    fn a_file_that_is_no_configuration_is_not_touched() {
        for text in ["not toml", "interface = \"wlan0\"\nkey_file = \"/k\"\nspeed = 9\n"] {
            let (_directory, path) = file(text);
            assert!(write_measured(&path, &[Measured::Buffer(75)]).is_err());
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        let (_directory, path) = file(FILE);
        assert!(write_measured(&path, &[Measured::Buffer(0)]).is_err(), "0 is not allowed");
        assert_eq!(fs::read_to_string(&path).unwrap(), FILE);
    }
}
