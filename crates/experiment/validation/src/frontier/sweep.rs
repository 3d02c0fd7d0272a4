//! The fixed windows of a setting: which windows the sweep tries.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::senders::{SenderGroup, Senders};

/// The payload of a segment, bits.
const SEGMENT_BITS: f64 = 1_448.0 * 8.0;
/// A window of the sweep is at least this multiple of the one before, where it is not a multiple of
/// the aggregate.
const STEP: f64 = 1.2;
/// Windows below this part of what fills the path are left out, except the smallest.
const LEAST_PART: f64 = 0.4;
/// Windows whose queueing delay would be longer than this are left out, seconds.
const LONGEST_QUEUE_S: f64 = 0.17;
/// The multiples of the aggregate up to this one are all in the sweep. Above it, steps are as for
/// other windows, rounded to multiples.
const ALL_MULTIPLES: u32 = 6;
/// The least window of a connection, segments.
const LEAST_WINDOW: u32 = 2;

/// Fixed windows, one for each group of stations. All stations get an equal part of the air.
#[derive(Clone, Debug, PartialEq)]
pub struct FixedWindows {
    /// The window of the reference ([`Senders`]), segments.
    pub window: u32,
    /// For each group its name, the window of each of its stations, and the bytes that may wait in
    /// the host's queue.
    pub groups: Vec<(String, u32, Option<u64>)>,
}

impl FixedWindows {
    fn new(window: u32, senders: &Senders) -> Self {
        let reference = &senders.0[0];
        let queue_s = queue_s(f64::from(window), reference, senders);
        let of = |sender: &SenderGroup| {
            let rate = sender.solo_mbps / reference.solo_mbps;
            let time = (sender.path_s + queue_s) / (reference.path_s + queue_s);
            let least = LEAST_WINDOW * sender.connections;
            let window = even(f64::from(window) * rate * time).max(least);
            (sender.group.clone(), window, sender.small_queue)
        };
        Self { window, groups: senders.0.iter().map(of).collect() }
    }

    /// The keys of a condition with these windows as floor and ceiling, except its name.
    pub fn keys(&self) -> String {
        let mut text = "law = 'fixed'\nbounds = [\n".to_owned();
        for (group, window, small_queue) in &self.groups {
            let _ = write!(text, "{{ stations = '{group}', floor = {window}, ceiling = {window}");
            if let Some(bytes) = small_queue {
                let _ = write!(text, ", small_queue = {bytes}");
            }
            text.push_str(" },\n");
        }
        text + "]\n"
    }

    /// The windows in words: `126 (24)`, where groups with other windows are in parentheses.
    pub fn label(&self) -> String {
        let others = self.groups.iter().skip(1).map(|(_, window, _)| window.to_string());
        let others: Vec<String> = others.collect();
        let equal = others.iter().all(|other| *other == self.window.to_string());
        let window = self.groups.first().map_or(self.window, |(_, window, _)| *window);
        if equal { window.to_string() } else { format!("{window} ({})", others.join(", ")) }
    }
}

/// The queueing delay that a window of the reference causes if all stations have an equal part of
/// the air, by Little's law, seconds.
fn queue_s(window: f64, reference: &SenderGroup, senders: &Senders) -> f64 {
    (window / per_second(reference, senders) - reference.path_s).max(0.0)
}

/// The segments per second of a station of `sender` with an equal part of the air.
fn per_second(sender: &SenderGroup, senders: &Senders) -> f64 {
    sender.solo_mbps * 1e6 / SEGMENT_BITS / f64::from(senders.stations())
}

/// The next even number.
fn even(window: f64) -> u32 {
    ((window / 2.0).round() as u32) * 2
}

/// The fixed windows of a setting, ascending: even windows from the smallest one to those that queue for 170 ms, and
/// multiples of the reference's aggregate. Odd ones would show the 40 ms of a delayed ACK.
pub fn sweep(senders: &Senders) -> Vec<FixedWindows> {
    let Some(reference) = senders.0.first() else { return Vec::new() };
    let per_second = per_second(reference, senders);
    let most = per_second * (reference.path_s + LONGEST_QUEUE_S);
    let least = per_second * reference.path_s * LEAST_PART;
    let smallest = LEAST_WINDOW * reference.connections;
    let windows = steps(smallest, most, reference.aggregate).into_iter();
    let wanted = windows.filter(|window| *window == smallest || f64::from(*window) >= least);
    wanted.map(|window| FixedWindows::new(window, senders)).collect()
}

/// The windows from `smallest` to `most`, and the next one.
fn steps(smallest: u32, most: f64, aggregate: u32) -> BTreeSet<u32> {
    let multiples = (1..=ALL_MULTIPLES).map(|of| of * aggregate);
    let multiples = multiples.filter(|window| aggregate > 1 && window.is_multiple_of(2));
    let mut windows: BTreeSet<u32> =
        multiples.filter(|window| *window >= smallest && f64::from(*window) <= most).collect();
    let mut window = smallest;
    windows.insert(smallest);
    while f64::from(window) < most {
        let next = (f64::from(window) * STEP).max(f64::from(window + 2));
        let whole = aggregate > 1 && next > f64::from(ALL_MULTIPLES * aggregate);
        let even_multiple = aggregate * if aggregate.is_multiple_of(2) { 1 } else { 2 };
        let grain = if whole { f64::from(even_multiple) } else { 2.0 };
        window = ((next / grain).round() * grain) as u32;
        windows.insert(window);
    }
    windows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender(solo_mbps: f64, path_ms: f64, aggregate: u32) -> SenderGroup {
        SenderGroup {
            group: "s".to_owned(),
            count: 3,
            connections: 1,
            solo_mbps,
            path_s: path_ms / 1e3,
            aggregate,
            small_queue: None,
        }
    }

    #[test]
    fn windows_are_even_and_the_multiples_of_the_aggregate_are_among_them() {
        let sweep = sweep(&Senders(vec![sender(48.0, 26.0, 28)]));
        let windows: Vec<u32> = sweep.iter().map(|one| one.window).collect();
        assert!(windows.iter().all(|window| window.is_multiple_of(2)), "{windows:?}");
        assert!([2, 28, 56, 84, 112].iter().all(|of| windows.contains(of)), "{windows:?}");
        assert!(windows.is_sorted() && windows.len() < 40, "{windows:?}");
    }

    #[test]
    fn windows_are_equal_in_airtime_where_rates_or_paths_differ() {
        let slow = SenderGroup { group: "slow".to_owned(), ..sender(12.0, 26.0, 5) };
        let far = SenderGroup { group: "far".to_owned(), ..sender(48.0, 126.0, 28) };
        let senders = Senders(vec![sender(48.0, 26.0, 28), slow, far]);
        let windows = FixedWindows::new(28, &senders);
        // 9 stations of 460 segments per second each: 28 segments take 61 ms, 35 ms of them in the
        // queue. The far station needs 161 ms of 460 per second.
        let found: Vec<u32> = windows.groups.iter().map(|(_, window, _)| *window).collect();
        assert_eq!(found, [28, 8, 74]);
        assert_eq!(windows.label(), "28 (8, 74)");
    }

    #[test]
    fn a_connection_has_at_least_two_segments() {
        let slow = SenderGroup { connections: 3, ..sender(1.0, 5.0, 1) };
        let windows = FixedWindows::new(4, &Senders(vec![sender(48.0, 5.0, 28), slow]));
        assert_eq!(windows.groups[1].1, 6);
    }

    #[test]
    fn a_condition_has_the_law_s_part_of_a_small_queue() {
        let small = SenderGroup { small_queue: Some(44_557), ..sender(48.0, 26.0, 28) };
        let keys = FixedWindows::new(28, &Senders(vec![small])).keys();
        assert!(keys.contains("floor = 28, ceiling = 28, small_queue = 44557"), "{keys}");
    }
}
