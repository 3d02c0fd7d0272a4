//! Packet captures: a directory for each run, and in it a file for each host.
//!
//! The captures are moved into place together with the other records. Each write opens its file and
//! closes it again, because a thousand stations in several runs at once would need more open files
//! than a process may have.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;

use super::pcapng::{self, Way};
use super::{RecordsError, cannot};

/// The bytes that are collected for a host before they are appended to its file.
const BUFFER: usize = 1 << 16;

/// The captures of a command.
#[derive(Clone, Debug)]
pub struct Captures {
    directory: PathBuf,
    application: String,
}

impl Captures {
    /// Captures into `directory`, which exists.
    pub(super) fn create(directory: PathBuf, version: &str) -> Self {
        Self { directory, application: format!("wakeai {version}") }
    }

    /// Begins the captures of a run: a file for the server, and one for each of these stations.
    ///
    /// # Errors
    ///
    /// The directory or a file in it cannot be made.
    pub fn run<'a>(
        &self,
        condition: &str,
        repeat: u32,
        stations: impl IntoIterator<Item = &'a str>,
    ) -> Result<RunCaptures, RecordsError> {
        let directory = self.directory.join(format!("{condition}-{repeat}"));
        fs::create_dir_all(&directory).map_err(|error| cannot(&directory, &error))?;
        let begin = |name: &str| {
            let mut kept = Vec::new();
            let comment = format!(
                "{name}, condition {condition}, repeat {repeat}; payloads of zeros are left out"
            );
            pcapng::begin(&mut kept, &self.application, name, &comment);
            let path = directory.join(format!("{name}.pcapng"));
            File::create(&path).map_err(|error| cannot(&path, &error))?;
            Ok(HostFile { path, kept })
        };
        // The name is free, because no station is named `server`.
        let server = begin("server")?;
        let stations = stations.into_iter().map(begin).collect::<Result<_, _>>()?;
        Ok(RunCaptures { server, stations, failed: None })
    }
}

/// The host whose packets a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// The server.
    Server,
    /// A station.
    Station(u32),
}

/// The captures of one run.
#[derive(Debug)]
pub struct RunCaptures {
    server: HostFile,
    stations: Vec<HostFile>,
    /// The first failure to write; [`RunCaptures::finish`] returns it.
    failed: Option<RecordsError>,
}

#[derive(Debug)]
struct HostFile {
    path: PathBuf,
    kept: Vec<u8>,
}

impl RunCaptures {
    /// Adds a packet of `length` bytes whose first bytes are `captured`. Panics for a station that
    /// the run does not have.
    pub fn packet(&mut self, host: Host, at_ns: u64, way: Way, captured: &[u8], length: u32) {
        if self.failed.is_some() {
            return;
        }
        let file = match host {
            Host::Server => &mut self.server,
            Host::Station(station) => &mut self.stations[station as usize],
        };
        pcapng::packet(&mut file.kept, at_ns, way, captured, length);
        if file.kept.len() >= BUFFER {
            self.failed = file.write().err();
        }
    }

    /// Writes the remaining packets.
    ///
    /// # Errors
    ///
    /// A file could not be written, now or before.
    pub fn finish(mut self) -> Result<(), RecordsError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        for file in std::iter::once(&mut self.server).chain(&mut self.stations) {
            let written = file.write()?;
            written.sync_all().map_err(|error| cannot(&file.path, &error))?;
        }
        Ok(())
    }
}

impl HostFile {
    fn write(&mut self) -> Result<File, RecordsError> {
        let append = || {
            let mut file = OpenOptions::new().append(true).open(&self.path)?;
            file.write_all(&self.kept)?;
            Ok(file)
        };
        let file = append().map_err(|error: io::Error| cannot(&self.path, &error))?;
        self.kept.clear();
        Ok(file)
    }
}
