//! The runs of ns-3: `validation/ns3/reference.json`.

use std::path::Path;

use serde::Deserialize;

use crate::files;
use crate::transfers::{StationTransfer, Transfers};

/// All runs.
#[derive(Clone, Debug, Deserialize)]
pub struct Reference {
    /// The version of ns-3.
    pub ns3: String,
    /// The rows, one for each run.
    pub rows: Vec<Ns3Run>,
}

/// One run of `validation/ns3`.
#[derive(Clone, Debug, Deserialize)]
pub struct Ns3Run {
    /// The command of the run.
    pub command: String,
    /// `g`, `n` or `ac`.
    pub standard: String,
    /// `udp` or `tcp`.
    pub traffic: String,
    /// The parameters that the run shares with those of other seeds.
    #[serde(flatten)]
    pub case: Case,
    /// Whether the stations use RTS/CTS.
    pub rts: bool,
    /// `hidden` where no two stations hear each other, `row` where neighbours in a row do; `None` where all do.
    pub topology: Option<String>,
    /// The longest A-MSDU in bytes; `None` where ns-3 has A-MPDUs of 65,535 bytes alone.
    pub amsdu: Option<u32>,
    /// The size of each station's transfer, MB; zero if it is endless.
    pub megabytes: f64,
    /// The run's seed.
    pub seed: u32,
    /// The goodput of endless traffic, Mbit/s of payload.
    pub goodput_mbps: Option<f64>,
    /// Data frames (or RTS, if they are used) that stations sent.
    pub attempted: Option<u64>,
    /// Those of the `attempted` frames that were not answered.
    pub failed: Option<u64>,
    /// Packets that the access point dropped because its queue was full.
    pub access_point_drops: u64,
    /// The transfer of each station; empty for UDP.
    #[serde(default)]
    pub flows: Vec<StationTransfer>,
}

/// The congestion control in ns-3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Congestion {
    /// The CUBIC of ns-3, without RFC 9438's Reno-friendly region.
    Cubic,
    /// CUBIC with that region, as in Linux.
    RfcCubic,
    /// Reno as in Linux.
    Reno,
}

/// The parameters that are equal in all runs of a case; only the seed differs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Case {
    /// `up` or `down`.
    pub direction: String,
    /// The congestion control.
    pub congestion: Congestion,
    /// The number of stations.
    pub stations: u32,
    /// The access point's queue, packets.
    pub buffer: u32,
}

impl Reference {
    /// Reads the file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is not as `make ns3-reference` writes it.
    pub fn load(path: &Path) -> anyhow::Result<Self> {
        files::load(path, "as `make ns3-reference` writes it")
    }

    /// The runs of saturated uplinks, with RTS/CTS or without, in the order of the file.
    pub fn saturated(&self, rts: bool) -> impl Iterator<Item = &Ns3Run> {
        let plain = |row: &&Ns3Run| row.topology.is_none() && row.amsdu.is_none();
        let saturated = move |row: &&Ns3Run| row.traffic == "udp" && row.rts == rts;
        self.rows.iter().filter(plain).filter(saturated)
    }

    /// The goodput of one endless connection, Mbit/s, for each run.
    pub fn single(&self, standard: &str, rts: bool, direction: &str) -> Vec<f64> {
        let wanted = |row: &&Ns3Run| {
            row.traffic == "tcp"
                && row.megabytes == 0.0
                && (row.standard.as_str(), row.rts, row.case.direction.as_str())
                    == (standard, rts, direction)
        };
        self.rows.iter().filter(wanted).filter_map(|row| row.goodput_mbps).collect()
    }

    /// The cases of sized transfers, in the order of the file.
    pub fn cases(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for row in self.rows.iter().filter(|row| row.sized()) {
            if !cases.contains(&row.case) {
                cases.push(row.case.clone());
            }
        }
        cases
    }

    /// The runs of one case.
    pub fn of<'a>(&'a self, case: &'a Case) -> impl Iterator<Item = &'a Ns3Run> {
        self.rows.iter().filter(move |row| row.sized() && row.case == *case)
    }
}

impl Ns3Run {
    fn sized(&self) -> bool {
        self.traffic == "tcp" && self.megabytes > 0.0
    }

    /// The sized transfers of the run, in the form in which they are compared.
    pub fn transfers(&self) -> Transfers {
        Transfers { flows: self.flows.clone(), access_point_drops: self.access_point_drops }
    }

    /// The share of attempts that failed.
    pub fn failed_share(&self) -> Option<f64> {
        let attempted = self.attempted.filter(|attempted| *attempted > 0)?;
        Some(self.failed? as f64 / attempted as f64)
    }
}
