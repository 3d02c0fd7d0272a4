//! Goodput of the stations over time: how fast shares are reached, and how steady they are.

use std::collections::BTreeMap;

use wakeai_results::result::Run;
use wakeai_sim::FlowDetail;

/// The seconds over which a newcomer's goodput is averaged. A shorter average is noisy, and a
/// longer one hides the newcomer's wait.
const SLIDING_S: f64 = 1.0;
/// Seconds from one value of that sliding average to the next.
const LOOK_S: f64 = 0.1;
/// Seconds at the end of a run over which the final shares are measured.
const SETTLED_S: f64 = 30.0;
/// The seconds over which the shares after a change are averaged. A shorter average is noisy.
const JUDGED_S: f64 = 10.0;
/// The seconds over which each of the means under steady load is taken.
const STEADY_S: f64 = 5.0;

/// Bytes that the stations of one run received over time.
#[derive(Clone, Debug)]
pub struct Timeline {
    end_s: f64,
    warmup_s: f64,
    stations: Vec<ReceivedBytes>,
    /// The last completion of a transfer that has a size, if there is any.
    last_completion_s: Option<f64>,
}

/// Bytes that a station received over time.
#[derive(Clone, Debug)]
struct ReceivedBytes {
    name: String,
    /// Whether the station has an endless flow.
    stays: bool,
    /// For each flow, the time in seconds and the bytes received until then.
    flows: Vec<Vec<(f64, f64)>>,
}

impl Timeline {
    /// Makes the timeline of a run whose flows' progress was kept.
    pub fn new(run: &Run, flows: &[FlowDetail], warmup_s: f64, starts_s: &[f64]) -> Self {
        let mut stations = Vec::<ReceivedBytes>::new();
        let mut last_completion_s = None::<f64>;
        for ((flow, detail), start_s) in run.flows.iter().zip(flows).zip(starts_s) {
            let progress = detail.progress.iter();
            let progress = progress.map(|(at, bytes)| (at.as_secs_f64(), bytes.get() as f64));
            let at =
                stations.iter().position(|one| one.name == flow.station).unwrap_or_else(|| {
                    let name = flow.station.clone();
                    stations.push(ReceivedBytes { name, stays: false, flows: Vec::new() });
                    stations.len() - 1
                });
            stations[at].flows.push(progress.collect());
            stations[at].stays |= flow.completion_s.is_none();
            if let Some(after_s) = flow.completion_s {
                let done_s = start_s + after_s;
                last_completion_s = Some(last_completion_s.map_or(done_s, |last| last.max(done_s)));
            }
        }
        Self { end_s: run.simulated_s, warmup_s, stations, last_completion_s }
    }

    /// The station `name` begins to send at `start_s`. Returns the seconds from then until it has
    /// had `part` of its share for a second, or infinity if it never has. Its share is an equal
    /// part of the goodput of all stations at the end of the run.
    pub fn until(&self, name: &str, start_s: f64, part: f64) -> f64 {
        let looks = (1..).map(|look| f64::from(look) * LOOK_S);
        let mut looks = looks.take_while(|after| start_s + after <= self.end_s);
        let has = |after: &f64| {
            let until = start_s + after;
            self.part_of_equal(name, (until - SLIDING_S, until)) >= part
        };
        looks.find(has).unwrap_or(f64::INFINITY)
    }

    /// The part of its share that the station has in the 10 s from `from_s` on.
    pub fn kept(&self, name: &str, from_s: f64) -> f64 {
        self.part_of_equal(name, (from_s, from_s + JUDGED_S))
    }

    fn part_of_equal(&self, name: &str, span: (f64, f64)) -> f64 {
        let total: f64 = self.stations.iter().map(|one| one.mean(self.settled())).sum();
        let share = total / self.stations.len() as f64;
        let station = self.stations.iter().find(|one| one.name == name);
        station.map_or(0.0, |station| station.mean(span) / share)
    }

    /// For each station that still sends, its goodput as a part of its share, measured `wait_s`
    /// after the change at `change_s` or, if transfers end, after the end of the last one. Shares
    /// are proportional to the stations' solo goodputs, which `alone` has.
    pub fn shares_after(
        &self,
        change_s: f64,
        wait_s: f64,
        alone: &BTreeMap<String, f64>,
    ) -> BTreeMap<String, f64> {
        let from = self.last_completion_s.unwrap_or(change_s) + wait_s;
        self.shares((from, from + JUDGED_S), alone)
    }

    /// The parts of [`Self::shares_after`] at the end of the run.
    pub fn shares_at_the_end(&self, alone: &BTreeMap<String, f64>) -> BTreeMap<String, f64> {
        self.shares(self.settled(), alone)
    }

    fn shares(&self, span: (f64, f64), alone: &BTreeMap<String, f64>) -> BTreeMap<String, f64> {
        let staying = self.stations.iter().filter(|one| one.stays && span.1 <= self.end_s);
        let parts = staying.map(|one| {
            let alone = alone.get(&one.name).copied().unwrap_or(f64::NAN);
            (one.name.clone(), one.mean(span) / alone)
        });
        let mut parts: BTreeMap<String, f64> = parts.collect();
        let mean = parts.values().sum::<f64>() / parts.len() as f64;
        for part in parts.values_mut() {
            *part /= mean;
        }
        parts
    }

    /// The standard deviation, over all stations, of the goodputs averaged over 5 s, relative to
    /// the station's mean in the whole run after the warmup.
    pub fn swing(&self) -> f64 {
        let count = ((self.end_s - self.warmup_s) / STEADY_S).floor() as u32;
        let windows: Vec<(f64, f64)> = (0..count)
            .map(|window| self.warmup_s + f64::from(window) * STEADY_S)
            .map(|from| (from, from + STEADY_S))
            .collect();
        let squares = self.stations.iter().flat_map(|one| {
            let all = one.mean((self.warmup_s, self.warmup_s + f64::from(count) * STEADY_S));
            windows.iter().map(move |window| (one.mean(*window) / all - 1.0).powi(2))
        });
        let squares: Vec<f64> = squares.collect();
        (squares.iter().sum::<f64>() / squares.len() as f64).sqrt()
    }

    fn settled(&self) -> (f64, f64) {
        (self.end_s - SETTLED_S, self.end_s)
    }
}

impl ReceivedBytes {
    /// The mean goodput from one second to another, Mbit/s.
    fn mean(&self, (from_s, to_s): (f64, f64)) -> f64 {
        (self.by(to_s) - self.by(from_s)) * 8e-6 / (to_s - from_s)
    }

    /// The bytes received by the second `at_s`.
    fn by(&self, at_s: f64) -> f64 {
        let of = |steps: &Vec<(f64, f64)>| {
            let after = steps.partition_point(|(step_s, _)| *step_s <= at_s);
            after.checked_sub(1).map_or(0.0, |last| steps[last].1)
        };
        self.flows.iter().map(of).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stations with the goodput `mbps(second)` in each of 80 seconds.
    fn timeline(stations: &[(&str, &dyn Fn(u32) -> f64)]) -> Timeline {
        let received = |(name, rate): &(&str, &dyn Fn(u32) -> f64)| {
            let mut bytes = 0.0;
            let steps = (0..80_u32).map(|second| {
                bytes += rate(second) * 1e6 / 8.0;
                (f64::from(second) + 1.0, bytes)
            });
            ReceivedBytes { name: (*name).to_owned(), stays: true, flows: vec![steps.collect()] }
        };
        let stations = stations.iter().map(received).collect();
        Timeline { end_s: 80.0, warmup_s: 10.0, stations, last_completion_s: None }
    }

    #[test]
    fn a_newcomer_has_its_share_at_the_end_of_the_second_that_it_had_it_in() {
        let rising = |second: u32| f64::from(second.saturating_sub(20)).min(10.0);
        let timeline = timeline(&[("old", &|_| 10.0), ("new", &rising)]);
        assert!((timeline.until("new", 20.0, 0.5) - 6.0).abs() < 0.11);
        assert!((timeline.until("new", 20.0, 0.9) - 10.0).abs() < 0.11);
        assert!(timeline.until("new", 20.0, 1.1).is_infinite());
        assert!(
            (timeline.kept("new", 26.0) - 0.9).abs() < 1e-9,
            "of a share of 10 it has 6, 7, 8, 9 and then 10"
        );
    }

    #[test]
    fn a_share_is_an_equal_part_of_what_each_reaches_alone() {
        let late = |second: u32| if second < 36 { 5.0 } else { 10.0 };
        let timeline = timeline(&[("fast", &|_| 20.0), ("late", &late)]);
        let alone = [("fast".to_owned(), 100.0), ("late".to_owned(), 50.0)].into();
        // `late` has 7 of its 50 Mbit/s, and `fast` 20 of its 100 Mbit/s. The mean of both parts is
        // 0.17.
        let early = timeline.shares_after(20.0, 10.0, &alone);
        assert!((early["late"] - 0.14 / 0.17).abs() < 1e-9, "{early:?}");
        assert!((early["fast"] - 0.20 / 0.17).abs() < 1e-9, "{early:?}");
        assert!(
            timeline
                .shares_after(20.0, 16.0, &alone)
                .values()
                .all(|share| (share - 1.0).abs() < 1e-9)
        );
        assert_eq!(timeline.shares_at_the_end(&alone).len(), 2);
        assert!(timeline.shares_after(70.0, 10.0, &alone).is_empty(), "the run has ended");
    }

    #[test]
    fn what_swings_within_five_seconds_is_no_deviation_and_what_swings_slower_is() {
        let fast = |second: u32| if second.is_multiple_of(5) { 14.0 } else { 9.0 };
        assert!(timeline(&[("a", &fast)]).swing() < 1e-9);
        let slow = |second: u32| if (second / 5).is_multiple_of(2) { 11.0 } else { 9.0 };
        assert!((timeline(&[("a", &slow)]).swing() - 0.1).abs() < 1e-9);
    }
}
