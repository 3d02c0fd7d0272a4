//! Reads the report of an iperf3 client. It is input from outside of the lab, so each figure is checked before it is used.

use serde::Deserialize;
use wakeai_units::{Duration, Instant};

/// The parts of iperf3's JSON that the lab uses.
#[derive(Debug, Deserialize)]
pub(super) struct IperfReport {
    #[serde(default)]
    intervals: Vec<Interval>,
    error: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Interval {
    /// Absent where the signal has interrupted the report of the interval.
    sum: Option<Sum>,
}

/// iperf3's JSON has only floating-point numbers, and null for those that are not finite.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Sum {
    /// Seconds from the start of the test.
    start: Option<f64>,
    end: Option<f64>,
    bytes: Option<f64>,
}

/// The times of a client, on the lab's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    /// Before the client was started.
    pub(super) spawned: Instant,
    /// When the client got the signal to end.
    pub(super) stopped: Instant,
    /// After the client had ended.
    pub(super) ended: Instant,
}

/// Bytes that arrived at a constant rate between two times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    pub(super) from: Instant,
    pub(super) to: Instant,
    pub(super) bytes: u64,
}

fn second(at: Option<f64>) -> String {
    at.map_or("an unknown time".to_owned(), |at| format!("{at} s"))
}

/// The largest integer up to which a floating-point number has all integers.
const MOST_BYTES: f64 = 9_007_199_254_740_992.0;
/// The error of iperf3's times, which are rounded.
const ROUNDING_S: f64 = 1e-3;

/// The checked figures of an interval, in seconds from the start of the test.
struct Checked {
    from: f64,
    to: f64,
    bytes: u64,
}

impl IperfReport {
    /// Reads the report, or says why it cannot be used.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let start = || text.chars().take(300).collect::<String>();
        serde_json::from_str(text)
            .map_err(|error| format!("its JSON cannot be read ({error}): {}", start()))
    }

    /// The error that iperf3 states. A client that a signal has ended states one, too.
    pub(super) fn error(self) -> Option<String> {
        self.error
    }

    /// What arrived, in the order of time. The last interval ends at [`Life::stopped`].
    ///
    /// An interval without bytes counts as nothing, whatever its times are: a client that gets the signal
    /// before its test has begun reports an interval that begins with the test at 0 and ends now on the
    /// machine's clock. An interval with bytes has to lie in the client's life, and after the interval before.
    pub(super) fn arrivals(&self, life: &Life) -> Result<Vec<Arrival>, String> {
        let ran = life.ended.saturating_since(life.spawned);
        let mut checked: Vec<Checked> = Vec::new();
        let (mut before, mut no_end) = (0.0, None);
        for (index, interval) in self.intervals.iter().enumerate() {
            let number = index + 1;
            let sum = interval.sum.ok_or_else(|| no_figures(number))?;
            let (bytes, Sum { start: from, end: to, .. }) = (sum.bytes(number)?, sum);
            match sum.times(before, ran) {
                Some((from, to)) => {
                    (before, no_end) = (to, None);
                    checked.extend((bytes > 0).then_some(Checked { from, to, bytes }));
                }
                None if bytes == 0 => no_end = Some((from, to)),
                None => {
                    return Err(format!(
                        "its report has {bytes} bytes in interval {number}, from {} to {}; the client ran for \
                         {ran}, and the interval before ended at {before} s",
                        second(from),
                        second(to)
                    ));
                }
            }
        }
        match no_end.filter(|_| !checked.is_empty()) {
            Some((from, to)) => Err(format!(
                "its report has bytes, but its last interval is from {} to {} and the client ran for {ran}: it is \
                 not known when they arrived",
                second(from),
                second(to)
            )),
            None => Ok(checked.iter().map(|interval| life.arrival(interval, before)).collect()),
        }
    }
}

fn no_figures(number: usize) -> String {
    format!("its report has no figures for interval {number}")
}

impl Sum {
    fn bytes(self, number: usize) -> Result<u64, String> {
        let bytes = self.bytes.ok_or_else(|| no_figures(number))?;
        if (0.0..=MOST_BYTES).contains(&bytes) {
            return Ok(bytes as u64);
        }
        Err(format!(
            "its report has {bytes} bytes in interval {number}, which is no number of bytes"
        ))
    }

    /// The times of an interval that begins no earlier than `before`, and ends while the client ran.
    fn times(self, before: f64, ran: Duration) -> Option<(f64, f64)> {
        let (from, to) = self.start.zip(self.end)?;
        let is_possible =
            from >= before - ROUNDING_S && from <= to && to <= ran.as_secs_f64() + ROUNDING_S;
        is_possible.then_some((from.max(0.0), to))
    }
}

impl Life {
    /// The interval on the lab's clock; `last_s` is the end of the last interval.
    fn arrival(&self, interval: &Checked, last_s: f64) -> Arrival {
        let at = |second: f64| {
            let before_stop = ((last_s - second).max(0.0) * 1e9) as u64;
            // The client may handle the signal later than it got it.
            let nanos = self.stopped.as_nanos().saturating_sub(before_stop);
            Instant::from_nanos(nanos).max(self.spawned)
        };
        Arrival { from: at(interval.from), to: at(interval.to), bytes: interval.bytes }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// A client of a machine that was started 500 s ago. It runs from second 100 to 103, and gets the
    /// signal at 102.
    const LIFE: (u64, u64, u64) = (100_000, 102_000, 103_000);

    fn life() -> Life {
        Life { spawned: at(LIFE.0), stopped: at(LIFE.1), ended: at(LIFE.2) }
    }

    fn arrivals(intervals: &[(f64, f64, f64)]) -> Result<Vec<Arrival>, String> {
        let intervals = intervals.iter().map(|(start, end, bytes)| {
            format!(
                r#"{{"streams":[],"sum":{{"start":{start:?},"end":{end:?},"bytes":{bytes:?}}}}}"#
            )
        });
        let intervals = intervals.collect::<Vec<_>>().join(",");
        let text = format!(r#"{{"start":{{}},"intervals":[{intervals}],"error":"interrupt"}}"#);
        let report = IperfReport::parse(&text).unwrap();
        report.arrivals(&life())
    }

    fn arrival(from: u64, to: u64, bytes: u64) -> Arrival {
        Arrival { from: at(from), to: at(to), bytes }
    }

    #[test]
    fn the_last_interval_ends_at_the_signal() {
        let found = arrivals(&[(0.0, 0.5, 0.0), (0.5, 1.5, 1000.0), (1.5, 2.0, 300.0)]);
        assert_eq!(
            found,
            Ok(vec![arrival(100_500, 101_500, 1000), arrival(101_500, 102_000, 300)])
        );
        let last_without_bytes = arrivals(&[(0.0, 0.5, 7.0), (0.5, 1.0, 0.0)]);
        assert_eq!(last_without_bytes, Ok(vec![arrival(101_000, 101_500, 7)]));
    }

    #[test]
    fn an_interval_without_bytes_from_zero_to_the_machine_s_uptime_counts_as_nothing() {
        assert_eq!(arrivals(&[(0.0, 102.9, 0.0)]), Ok(Vec::new()));
        assert_eq!(arrivals(&[(0.0, 1e12, 0.0)]), Ok(Vec::new()));
        assert_eq!(arrivals(&[]), Ok(Vec::new()));
    }

    #[test]
    fn bytes_at_a_time_at_which_the_client_did_not_run_are_refused() {
        for intervals in [
            &[(0.0, 102.9, 5.0)][..],
            &[(-1.0, 1.0, 5.0)],
            &[(1.0, 0.5, 5.0)],
            &[(0.0, 1.0, 5.0), (0.5, 1.5, 5.0)],
            &[(0.0, 1.0, 5.0), (0.0, 102.9, 0.0)],
        ] {
            let found = arrivals(intervals).unwrap_err();
            assert!(found.contains("the client ran for 3"), "{found}");
        }
        for bytes in [-1.0, 1e17] {
            let found = arrivals(&[(0.0, 1.0, bytes)]).unwrap_err();
            assert!(found.contains("no number of bytes"), "{found}");
        }
    }

    #[test]
    fn a_client_that_handles_the_signal_late_has_no_bytes_before_its_start() {
        assert_eq!(arrivals(&[(0.0, 2.9, 9.0)]), Ok(vec![arrival(100_000, 102_000, 9)]));
    }

    #[test]
    fn what_is_no_report_is_an_error_that_shows_it() {
        let of = |text: &str| IperfReport::parse(text).unwrap_err();
        assert!(of("").contains("cannot be read"));
        assert!(of(&format!("é{}", "x".repeat(1_000))).ends_with(&"x".repeat(299)));
        for interval in ["{}", r#"{"sum":null}"#, r#"{"sum":{"start":0,"end":null,"bytes":null}}"#]
        {
            let report = IperfReport::parse(&format!(r#"{{"intervals":[{interval}]}}"#)).unwrap();
            let found = report.arrivals(&life()).unwrap_err();
            assert_eq!(found, "its report has no figures for interval 1");
        }
        let null_times = r#"{"intervals":[{"sum":{"start":null,"end":null,"bytes":0}}]}"#;
        assert!(IperfReport::parse(null_times).unwrap().arrivals(&life()).unwrap().is_empty());
    }

    fn number() -> impl Strategy<Value = String> {
        prop_oneof![
            Just("null".to_owned()),
            (-5.0_f64..5.0).prop_map(|number| format!("{number:?}")),
            any::<f64>()
                .prop_filter("JSON has no other numbers", |number| number.is_finite())
                .prop_map(|number| format!("{number:?}")),
            any::<i64>().prop_map(|number| number.to_string()),
        ]
    }

    proptest! {
        #[test]
        fn whatever_the_numbers_are_what_arrived_lies_in_the_client_s_life(
            numbers in prop::collection::vec((number(), number(), number()), 0..6),
            times in prop::array::uniform3(0_u64..200_000),
        ) {
            let mut times = times;
            times.sort_unstable();
            let life = Life { spawned: at(times[0]), stopped: at(times[1]), ended: at(times[2]) };
            let intervals = numbers.iter().map(|(start, end, bytes)| {
                format!(r#"{{"sum":{{"start":{start},"end":{end},"bytes":{bytes}}}}}"#)
            });
            let text = format!(r#"{{"intervals":[{}]}}"#, intervals.collect::<Vec<_>>().join(","));
            if let Ok(found) = IperfReport::parse(&text).unwrap().arrivals(&life) {
                for one in &found {
                    prop_assert!(life.spawned <= one.from && one.from <= one.to, "{one:?}");
                    prop_assert!(one.to <= life.stopped && one.bytes > 0, "{one:?}");
                }
                prop_assert!(found.windows(2).all(|two| two[0].from <= two[1].from));
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*") {
            let _ = IperfReport::parse(&text).map(|report| report.arrivals(&life()));
        }
    }
}
