//! Reads a recording back. Parts are loaded when they are needed.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wakeai_units::Instant;

use super::{ReplayError, SCHEMA, columns, each_row};
use crate::reading::{Reading, Texts};

/// The largest number of parts in memory. It suffices for the parts of one minute and some more.
const PARTS: usize = 24;

/// A recording that is being read.
#[derive(Debug)]
pub(super) struct Recording {
    directory: PathBuf,
    /// The time and the part of each reading.
    index: Vec<(Instant, String)>,
    /// The parts in memory. The most recently used part is the last one.
    loaded: VecDeque<(String, BTreeMap<Instant, Arc<Reading>>)>,
    texts: Texts,
}

impl Recording {
    /// Opens the recording in `directory`; `None` if there is none.
    pub(super) fn open(directory: &Path) -> Result<Option<Self>, ReplayError> {
        let entries = fs::read_dir(directory)
            .map_err(|source| ReplayError::Directory { path: directory.to_owned(), source })?;
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut parts: Vec<_> = names
            .filter_map(|name| {
                Some(name.strip_prefix("readings-")?.strip_suffix(".parquet")?.to_owned())
            })
            .collect();
        parts.sort();
        let mut index = Vec::new();
        for part in parts {
            let path = directory.join(format!("readings-{part}.parquet"));
            each_row(&path, SCHEMA, |group, row| {
                index.push((columns::reading(group, row)?.at, part.clone()));
                Ok(())
            })?;
        }
        index.sort_by_key(|(at, _)| *at);
        let recording = Self {
            directory: directory.to_owned(),
            index,
            loaded: VecDeque::new(),
            texts: Texts::default(),
        };
        Ok((!recording.index.is_empty()).then_some(recording))
    }

    pub(super) fn times(&self) -> impl Iterator<Item = Instant> + '_ {
        self.index.iter().map(|(at, _)| *at)
    }

    /// The reading with this index. Panics beyond the last one.
    pub(super) fn reading(&mut self, index: usize) -> Result<Arc<Reading>, ReplayError> {
        let (at, part) = self.index[index].clone();
        let known = self.loaded.iter().position(|(name, _)| *name == part);
        let loaded = match known.and_then(|position| self.loaded.remove(position)) {
            Some(loaded) => loaded,
            None => (part.clone(), self.load(&part)?),
        };
        let found = loaded.1.get(&at).cloned().unwrap_or_default();
        self.loaded.push_back(loaded);
        if self.loaded.len() > PARTS {
            self.loaded.pop_front();
        }
        Ok(found)
    }

    fn load(&mut self, part: &str) -> Result<BTreeMap<Instant, Arc<Reading>>, ReplayError> {
        let file = |name: &str| self.directory.join(format!("{name}-{part}.parquet"));
        let mut readings = BTreeMap::new();
        each_row(&file("readings"), SCHEMA, |group, row| {
            let reading = columns::reading(group, row)?;
            readings.insert(reading.at, reading);
            Ok(())
        })?;
        let texts = &mut self.texts;
        each_row(&file("connections"), SCHEMA, |group, row| {
            let (at, connection) = columns::connection(group, row, texts)?;
            if let Some(reading) = readings.get_mut(&at) {
                reading.connections.push(connection);
            }
            Ok(())
        })?;
        Ok(readings.into_iter().map(|(at, reading)| (at, Arc::new(reading))).collect())
    }
}
