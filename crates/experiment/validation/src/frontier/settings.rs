//! The settings with a frontier.

use crate::law::{self, Setting};

/// The kind of a setting, which decides the least goodput beside `default`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// Stations that do not aggregate frames: with stock CUBIC the access point drops ACKs, and
    /// their airtime carries data.
    SingleFrames,
    /// All others.
    Aggregates,
}

impl FrameKind {
    /// The kind of a setting.
    pub fn of(setting: &Setting) -> Self {
        let radios = setting.scenario.stations.iter().filter_map(|group| group.radio);
        let mut longest = radios.map(|radio| radio.standard.longest_ampdu().get());
        if longest.any(|bytes| bytes > 0) { Self::Aggregates } else { Self::SingleFrames }
    }

    /// The least goodput of the law as a part of that of `default`.
    pub const fn least_part(self) -> f64 {
        match self {
            Self::SingleFrames => 0.91,
            Self::Aggregates => 0.98,
        }
    }
}

/// The settings of the law's matrix that have a frontier: all stations are under agents, windows
/// can be bounded, and nothing changes during the run.
pub fn settings() -> Vec<Setting> {
    law::matrix().into_iter().filter(Setting::has_frontier).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_with_changes_downloads_or_strangers_have_no_frontier() {
        let names: Vec<&str> = settings().iter().map(|setting| setting.name).collect();
        for name in ["n-10", "n-1-tsq", "g-30", "n-20-tsq", "ac-beside-n", "n-6-by-4"] {
            assert!(names.contains(&name), "{name}");
        }
        for name in ["n-rate-falls", "n-down", "n-3-and-3", "n-half-agents", "g-20-sized"] {
            assert!(!names.contains(&name), "{name}");
        }
    }

    #[test]
    fn only_a_and_g_may_carry_less_than_stock() {
        for setting in settings() {
            let single = setting.name.starts_with("a-") || setting.name.starts_with("g-");
            assert_eq!(
                FrameKind::of(&setting) == FrameKind::SingleFrames,
                single,
                "{}",
                setting.name
            );
        }
    }
}
