//! How often each term of the law begins to act although nothing is wrong: all stations have agents, and
//! nothing changes during the run.

use std::collections::BTreeMap;

use wakeai_control::{Direction, Event, Phase};
use wakeai_scenario::Scenario;
use wakeai_sim::Observer;
use wakeai_units::Duration;
use wakeai_world::{Asked, KnownSolos};

use super::table::{lines_in_markdown, lines_in_text};
use crate::detailed;

/// The law decides once in this time.
const TICK_S: f64 = 0.5;
/// The first ticks of a station's sending: rates and paths are only becoming known. What begins then is
/// counted apart.
const FIRST_TICKS: u64 = 20;
/// A target that grows from one tick to the next by this factor has another cause than the announced
/// figures: a contest, or another bottleneck.
const LONGER: f64 = 1.25;

/// The ticks of stations under the law, and how often terms began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Terms {
    /// The ticks of sending stations, after the first ones of each.
    ticks: u64,
    /// The stations.
    stations: u64,
    /// The ticks in each phase, after the first ones of each station.
    within: BTreeMap<String, u64>,
    /// The begins of each phase but `steady`, and of a longer target, after the first ticks.
    begins: BTreeMap<String, u64>,
    /// The same within the first ticks.
    at_the_start: BTreeMap<String, u64>,
}

/// The name of a target that has become longer at once.
const LONGER_TARGET: &str = "longer target";

impl Terms {
    /// The counts of several runs together.
    pub fn sum<'a>(runs: impl Iterator<Item = &'a Self>) -> Self {
        let mut sum = Self::default();
        for run in runs {
            sum.ticks += run.ticks;
            sum.stations += run.stations;
            for (to, from) in [
                (&mut sum.within, &run.within),
                (&mut sum.begins, &run.begins),
                (&mut sum.at_the_start, &run.at_the_start),
            ] {
                for (name, count) in from {
                    *to.entry(name.clone()).or_default() += count;
                }
            }
        }
        sum
    }

    /// The begins of a term per minute of a station, after its first ticks.
    fn per_minute(&self, name: &str) -> f64 {
        let count = self.begins.get(name).copied().unwrap_or(0);
        count as f64 / (self.ticks as f64 * TICK_S / 60.0)
    }

    /// The begins of a term in the first ticks of a station.
    fn of_a_start(&self, name: &str) -> f64 {
        self.at_the_start.get(name).copied().unwrap_or(0) as f64 / self.stations as f64
    }

    /// The part of the ticks in a phase, percent.
    fn percent(&self, name: &str) -> f64 {
        100.0 * self.within.get(name).copied().unwrap_or(0) as f64 / self.ticks as f64
    }
}

/// What was seen of one station.
#[derive(Clone, Debug, Default)]
struct TermsOfStation {
    ticks: u64,
    last: Option<(Phase, Duration)>,
}

/// Counts the decisions of all stations of a run.
#[derive(Debug, Default)]
struct Counter {
    stations: BTreeMap<(u32, Direction), TermsOfStation>,
    terms: Terms,
}

impl Counter {
    fn decided(&mut self, station: (u32, Direction), phase: Phase, target: Duration) {
        let Self { stations, terms } = self;
        let station = stations.entry(station).or_insert_with(|| {
            terms.stations += 1;
            TermsOfStation::default()
        });
        station.ticks += 1;
        let is_first = station.ticks <= FIRST_TICKS;
        if !is_first {
            terms.ticks += 1;
            *terms.within.entry(phase.to_string()).or_default() += 1;
        }
        let last = station.last.replace((phase, target));
        let begins = if is_first { &mut terms.at_the_start } else { &mut terms.begins };
        if phase != Phase::Steady && last.is_none_or(|(before, _)| before != phase) {
            *begins.entry(phase.to_string()).or_default() += 1;
        }
        let longer = |before: Duration| target.as_secs_f64() > LONGER * before.as_secs_f64();
        if last.is_some_and(|(_, before)| longer(before)) {
            *begins.entry(LONGER_TARGET.to_owned()).or_default() += 1;
        }
    }
}

impl Observer for Counter {
    const LOOKS: bool = false;
    const HEARS: bool = true;

    fn on_event(&mut self, _: Duration, station: u32, event: &Event) {
        let Event::Decision(decision) = event else { return };
        for direction in Direction::BOTH {
            if let Some(state) = decision.airtime(direction) {
                self.decided((station, direction), state.phase, state.target);
            }
        }
    }
}

/// Counts in the only condition of `scenario`.
///
/// # Errors
///
/// The run fails.
pub(super) fn run(scenario: &Scenario, seed: u64) -> anyhow::Result<Terms> {
    let conditions = scenario.conditions();
    let asked = Asked { scenario, conditions, seed, repeat: 1, known: KnownSolos::new() };
    let runs = detailed::run::<Counter>(1, &asked, Duration::ZERO)?;
    Ok(Terms::sum(runs.iter().map(|run| &run.observer.terms)))
}

/// The counts of each setting and of all together.
pub fn table(rows: &[(&str, &Terms)], in_markdown: bool) -> String {
    let all = Terms::sum(rows.iter().map(|(_, terms)| *terms));
    let others = || Phase::ALL.iter().copied().filter(|phase| *phase != Phase::Steady);
    let names = || others().map(|phase| phase.to_string()).chain([LONGER_TARGET.to_owned()]);
    let heading = ["setting".to_owned(), "station minutes".to_owned()].into_iter();
    let mut lines: Vec<Vec<String>> = vec![heading.chain(names()).collect()];
    let of = |(name, terms): (&str, &Terms)| {
        let minutes = format!("{:.1}", terms.ticks as f64 * TICK_S / 60.0);
        let cells = names().map(|name| {
            let percent = terms.percent(&name);
            let within = if name == LONGER_TARGET || percent < 0.05 {
                String::new()
            } else {
                format!(" ({percent:.1} %)")
            };
            format!("{:.2}{within}, {:.2}", terms.per_minute(&name), terms.of_a_start(&name))
        });
        [name.to_owned(), minutes].into_iter().chain(cells).collect::<Vec<_>>()
    };
    lines.extend(rows.iter().copied().map(of));
    lines.push(of(("all", &all)));
    let text = if in_markdown { lines_in_markdown(&lines) } else { lines_in_text(&lines) };
    text + EXPLAINED
}

const EXPLAINED: &str = "
Of each term: how often it begins per minute of a sending station (and the part of the time in that phase),
and how often in the first ten seconds of a station, in which it does not count to the first figure.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_is_counted_when_it_begins_and_the_start_apart() {
        let mut counter = Counter::default();
        let short = Duration::from_millis(20);
        let mut decide = |ticks: u64, phase, target| {
            for _ in 0..ticks {
                counter.decided((1, Direction::Up), phase, target);
            }
        };
        decide(5, Phase::Probing, short);
        decide(15, Phase::Steady, short);
        decide(100, Phase::Steady, short);
        decide(3, Phase::Draining, short);
        decide(10, Phase::Steady, Duration::from_millis(75));
        decide(5, Phase::Draining, short);
        decide(2, Phase::Steady, Duration::from_millis(25));
        let terms = &counter.terms;
        assert_eq!((terms.ticks, terms.stations), (120, 1), "a minute");
        assert!((terms.per_minute("draining") - 2.0).abs() < 1e-9);
        assert!((terms.percent("draining") - 100.0 * 8.0 / 120.0).abs() < 1e-9);
        assert!((terms.per_minute(LONGER_TARGET) - 1.0).abs() < 1e-9, "1.25 times is no jump");
        assert!((terms.of_a_start("probing") - 1.0).abs() < 1e-9);
        assert!(
            terms.per_minute("probing").abs() < 1e-9 && terms.per_minute("released").abs() < 1e-9
        );
        let text = table(&[("n-6", terms)], true);
        assert!(
            text.contains("| n-6 | 1.0 |") && text.contains("| 2.00 (6.7 %), 0.00 |"),
            "{text}"
        );
    }
}
