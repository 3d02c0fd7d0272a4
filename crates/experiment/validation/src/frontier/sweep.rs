//! The fixed windows of a setting: which windows the sweep tries.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use wakeai_scenario::Direction;

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
/// The last window of a sweep of downloads lets this many times as many packets wait as the access point's
/// buffer holds.
const BUFFERS: f64 = 2.0;
/// The queueing delays of a sweep of uploads beside downloads, ms.
const DELAYS_MS: [u32; 22] =
    [0, 1, 2, 4, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 75, 100, 125, 150, 200, 250, 300];
/// The least window of a connection, segments.
const LEAST_WINDOW: u32 = 2;

/// Fixed windows, one for each group of stations in each direction: a congestion window for what it sends, a
/// receive window for what it receives. All stations get an equal part of the air.
#[derive(Clone, Debug, PartialEq)]
pub struct FixedWindows {
    /// The window of the reference ([`Senders`]), segments.
    pub window: u32,
    /// The windows, that of the reference first.
    pub groups: Vec<GroupWindow>,
}

/// The window of each station of a group in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupWindow {
    /// The name of the group.
    pub group: String,
    /// The direction.
    pub direction: Direction,
    /// The window of each of its stations, segments.
    pub window: u32,
    /// The bytes that may wait in the host's queue.
    pub small_queue: Option<u64>,
}

impl GroupWindow {
    fn new(sender: &SenderGroup, window: f64) -> Self {
        Self {
            group: sender.group.clone(),
            direction: sender.direction,
            window: even(window).max(LEAST_WINDOW * sender.connections),
            small_queue: sender.small_queue,
        }
    }

    /// The keys of the rule for these stations.
    fn keys(&self) -> String {
        let Self { window, small_queue, .. } = self;
        if self.direction == Direction::Down {
            return format!(", receive = {window}");
        }
        let small_queue =
            small_queue.map_or_else(String::new, |of| format!(", small_queue = {of}"));
        format!(", floor = {window}, ceiling = {window}{small_queue}")
    }
}

impl FixedWindows {
    fn new(window: u32, senders: &Senders) -> Self {
        let reference = &senders.0[0];
        let queue_s = queue_s(f64::from(window), reference, senders);
        let of = |sender: &SenderGroup| {
            let rate = sender.solo_mbps / reference.solo_mbps;
            let time = (sender.path_s + queue_s) / (reference.path_s + queue_s);
            GroupWindow::new(sender, f64::from(window) * rate * time)
        };
        Self { window, groups: senders.0.iter().map(of).collect() }
    }

    /// The windows with which a queueing delay of `queue_s` seconds is the target of all traffic, each by its
    /// own path.
    fn for_queue(queue_s: f64, senders: &Senders) -> Self {
        let of = |sender: &SenderGroup| {
            GroupWindow::new(sender, per_second(sender, senders) * (sender.path_s + queue_s))
        };
        let groups: Vec<GroupWindow> = senders.0.iter().map(of).collect();
        Self { window: groups.first().map_or(0, |reference| reference.window), groups }
    }

    /// The keys of a condition with these windows as floor and ceiling, except its name.
    pub fn keys(&self) -> String {
        let mut text = "law = 'fixed'\nbounds = [\n".to_owned();
        let is_first = |(index, one): &(usize, &GroupWindow)| {
            self.groups[..*index].iter().all(|other| other.group != one.group)
        };
        for (_, GroupWindow { group, .. }) in self.groups.iter().enumerate().filter(is_first) {
            let own = self.groups.iter().filter(|one| one.group == *group);
            let keys: String = own.map(GroupWindow::keys).collect();
            let _ = writeln!(text, "{{ stations = '{group}'{keys} }},");
        }
        text + "]\n"
    }

    /// The windows in words: `126 (24)`, where groups with other windows are in parentheses.
    pub fn label(&self) -> String {
        let others = self.groups.iter().skip(1).map(|one| one.window.to_string());
        let others: Vec<String> = others.collect();
        let equal = others.iter().all(|other| *other == self.window.to_string());
        let window = self.groups.first().map_or(self.window, |one| one.window);
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
    let parts = senders.stations() * sender.directions;
    sender.solo_mbps * 1e6 / SEGMENT_BITS / f64::from(parts)
}

/// The next even number.
fn even(window: f64) -> u32 {
    ((window / 2.0).round() as u32) * 2
}

/// The fixed windows of a setting, ascending. Odd ones would show the 40 ms of a delayed ACK, so that all are even.
///
/// - Uploads alone: from the smallest one to those that queue for 170 ms, and multiples of the reference's
///   aggregate.
/// - Downloads alone: receive windows from two segments to those with which twice as many packets wait as the
///   access point's buffer of `buffer` packets holds.
/// - Both: the windows for queueing delays from 0 to 300 ms, the same in both directions.
pub fn sweep(senders: &Senders, buffer: u32) -> Vec<FixedWindows> {
    let Some(reference) = senders.0.first() else { return Vec::new() };
    let has = |direction| senders.0.iter().any(|sender| sender.direction == direction);
    let [up, down] = [Direction::Up, Direction::Down].map(has);
    if up && down {
        let delays = DELAYS_MS.into_iter().map(|ms| f64::from(ms) / 1e3);
        let mut windows: Vec<_> =
            delays.map(|queue_s| FixedWindows::for_queue(queue_s, senders)).collect();
        windows.dedup();
        return windows;
    }
    let per_second = per_second(reference, senders);
    let (least, most) = if down {
        let held = BUFFERS * f64::from(buffer) / f64::from(senders.stations());
        (0.0, per_second * reference.path_s + held)
    } else {
        let most = per_second * (reference.path_s + LONGEST_QUEUE_S);
        (per_second * reference.path_s * LEAST_PART, most)
    };
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
            direction: Direction::Up,
            directions: 1,
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
        let sweep = sweep(&Senders(vec![sender(48.0, 26.0, 28)]), 300);
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
        let found: Vec<u32> = windows.groups.iter().map(|one| one.window).collect();
        assert_eq!(found, [28, 8, 74]);
        assert_eq!(windows.label(), "28 (8, 74)");
    }

    #[test]
    fn a_connection_has_at_least_two_segments() {
        let slow = SenderGroup { connections: 3, ..sender(1.0, 5.0, 1) };
        let windows = FixedWindows::new(4, &Senders(vec![sender(48.0, 5.0, 28), slow]));
        assert_eq!(windows.groups[1].window, 6);
    }

    #[test]
    fn a_condition_has_the_law_s_part_of_a_small_queue() {
        let small = SenderGroup { small_queue: Some(44_557), ..sender(48.0, 26.0, 28) };
        let keys = FixedWindows::new(28, &Senders(vec![small])).keys();
        assert!(keys.contains("floor = 28, ceiling = 28, small_queue = 44557"), "{keys}");
    }

    #[test]
    fn receive_windows_go_from_two_segments_to_twice_the_buffer() {
        let down = SenderGroup { direction: Direction::Down, ..sender(48.0, 26.0, 28) };
        let windows = sweep(&Senders(vec![down]), 900);
        let [first, last] = [windows.first(), windows.last()].map(|one| one.unwrap().window);
        // A third of 4,144 segments per second on a path of 26 ms, and a third of 1,800 packets.
        assert!(first == 2 && (636..=800).contains(&last), "{first} to {last}");
        let keys = windows[0].keys();
        assert!(keys.contains("{ stations = 's', receive = 2 }"), "{keys}");
    }

    #[test]
    fn both_directions_of_a_station_divide_its_part_and_have_the_same_delay() {
        let up = SenderGroup { directions: 2, ..sender(46.0, 26.0, 28) };
        let down = SenderGroup { direction: Direction::Down, solo_mbps: 50.0, ..up.clone() };
        let senders = Senders(vec![down, up]);
        assert_eq!(senders.stations(), 3);
        let windows = sweep(&senders, 300);
        // 50 Mbit/s are 4,316 segments per second. A sixth of them queues for 300 ms on a path of 26 ms.
        let last = windows.last().unwrap();
        assert_eq!(last.label(), "234 (216)");
        let keys = last.keys();
        assert!(keys.contains("'s', receive = 234, floor = 216, ceiling = 216 }"), "{keys}");
        assert_eq!(keys.matches("stations").count(), 1, "one rule: {keys}");
    }
}
