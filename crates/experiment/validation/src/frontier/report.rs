//! The frontier of each setting, and where the law and others are beside it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::point::Point;

/// What `frontier --json` prints, and `--baseline` reads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FrontierReport {
    /// The seeds of each run: 1 to this number.
    pub seeds: u32,
    /// The settings.
    pub settings: Vec<FrontierRow>,
}

/// One setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FrontierRow {
    /// The setting's name.
    pub setting: String,
    /// The number of stations.
    pub stations: u32,
    /// Whether its stations do not aggregate frames.
    pub single_frames: bool,
    /// With downloads, the least goodput as a part of `default`'s, and the least index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiving: Option<(f64, f64)>,
    /// The scenario without conditions. Figures of another report are comparable only if it has the
    /// same.
    pub scenario: String,
    /// The law.
    pub law: Point,
    /// Other conditions by name: `default`, the papers' tables, and those of the lab.
    pub others: BTreeMap<String, Point>,
    /// Fixed windows, ascending.
    pub windows: Vec<Window>,
}

/// Fixed windows and what they reach.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// The window of the fastest group and, in parentheses, those of others where they differ.
    pub label: String,
    /// What they reach.
    pub point: Point,
}

/// The condition without a law.
pub const DEFAULT: &str = "default";

impl FrontierRow {
    /// Of the fixed windows with at least .99 of the law's goodput, that with the shortest queueing
    /// delay.
    pub fn shortest(&self) -> Option<&Window> {
        let enough = |window: &&Window| window.point.goodput >= 0.99 * self.law.goodput;
        let windows = self.windows.iter().filter(enough);
        windows.min_by(|a, b| a.point.p95_ms.total_cmp(&b.point.p95_ms))
    }

    /// Of the fixed windows with at most 1.1 times the law's queueing delay, that with the highest
    /// goodput.
    pub fn best(&self) -> Option<&Window> {
        let short = |window: &&Window| window.point.p95_ms <= 1.1 * self.law.p95_ms;
        let windows = self.windows.iter().filter(short);
        windows.max_by(|a, b| a.point.goodput.total_cmp(&b.point.goodput))
    }
}

impl FrontierReport {
    /// The row of the same setting in this report, if that setting is unchanged.
    pub fn same(&self, row: &FrontierRow) -> Option<&FrontierRow> {
        self.settings.iter().find(|one| one.setting == row.setting && one.scenario == row.scenario)
    }
}
