//! Counters of faults and of refused messages, by name.

use std::collections::BTreeMap;

use wakeai_control::PresenceCounters;
use wakeai_control::presence::FAULT_KINDS;

/// A failure that does not end the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// The connections could not be read.
    Snapshot,
    /// A bound could not be written, or the algorithms are no longer registered.
    Bound,
    /// A heartbeat could not be written. Without heartbeats the bounds expire.
    Heartbeat,
    /// A connection could not be moved to a bounded algorithm.
    Move,
    /// A presence message could not be sent.
    Send,
    /// The presence socket could not be read or opened.
    Receive,
    /// The interface did not exist or was down at a tick.
    Interface,
    /// nl80211 did not give the association.
    Wifi,
    /// A tick came late by more than half of the time between ticks.
    Late,
    /// Messages of other stations were refused because of their timestamps.
    Clock,
}

/// Every fault, with the name of its counter. The order is that of [`Fault`].
const FAULTS: [(Fault, &str); 10] = [
    (Fault::Snapshot, "faults_snapshot"),
    (Fault::Bound, "faults_bound"),
    (Fault::Heartbeat, "faults_heartbeat"),
    (Fault::Move, "faults_move"),
    (Fault::Send, "faults_send"),
    (Fault::Receive, "faults_receive"),
    (Fault::Interface, "faults_interface"),
    (Fault::Wifi, "faults_wifi"),
    (Fault::Late, "faults_late_tick"),
    (Fault::Clock, "faults_clock"),
];

/// The prefix of the counters of faults.
const PREFIX: &str = "faults_";

/// The name of a kind of fault in an answer to a fleet's query. A kind of fault never changes its
/// number.
pub(crate) fn fault_kind(kind: usize) -> String {
    match FAULTS.get(kind) {
        Some((_, name)) => name[PREFIX.len()..].to_owned(),
        None => format!("kind_{kind}"),
    }
}

impl Fault {
    fn name(self) -> &'static str {
        FAULTS[self as usize].1
    }
}

/// Counts faults. A fault is logged when it begins, when its message changes, and when it ends.
/// Thus an interface that is down for an hour adds two lines to the log, instead of seven thousand.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    counts: BTreeMap<Fault, u64>,
    /// The faults that have not ended, with their last messages.
    lasting: BTreeMap<Fault, String>,
}

impl Faults {
    pub(crate) fn failed(&mut self, fault: Fault, error: &dyn std::fmt::Display) {
        let count = self.counts.entry(fault).or_default();
        *count = count.saturating_add(1);
        let words = error.to_string();
        if self.lasting.get(&fault) != Some(&words) {
            tracing::warn!(fault = fault.name(), error = %words, "failed; the agent goes on");
            self.lasting.insert(fault, words);
        }
    }

    /// Whether the last attempt failed with this fault.
    pub(crate) fn lasts(&self, fault: Fault) -> bool {
        self.lasting.contains_key(&fault)
    }

    /// Returns the value of `result`. If `result` is an error, counts and logs the error and returns
    /// `None`.
    pub(crate) fn check<T, E: std::fmt::Display>(
        &mut self,
        fault: Fault,
        result: Result<T, E>,
    ) -> Option<T> {
        match result {
            Ok(value) => {
                if self.lasting.remove(&fault).is_some() {
                    tracing::info!(fault = fault.name(), "works again");
                }
                Some(value)
            }
            Err(error) => {
                self.failed(fault, &error);
                None
            }
        }
    }

    /// The counts by kind, and a bit for each kind of fault that lasts. Both are for an answer to a
    /// fleet's query.
    pub(crate) fn figures(&self) -> ([u32; FAULT_KINDS], u16) {
        let mut counts = [0; FAULT_KINDS];
        for (fault, count) in &self.counts {
            counts[*fault as usize] = u32::try_from(*count).unwrap_or(u32::MAX);
        }
        let lasting = self.lasting.keys().fold(0, |bits, fault| bits | 1 << *fault as usize);
        (counts, lasting)
    }

    pub(crate) fn write(&self, metrics: &mut BTreeMap<String, u64>) {
        for (fault, name) in FAULTS {
            let count = self.counts.get(&fault).copied().unwrap_or(0);
            metrics.insert(name.to_owned(), count);
        }
    }
}

/// Adds the counters of one association to the sums over all associations in `metrics`.
pub(crate) fn add_presence(counters: &PresenceCounters, metrics: &mut BTreeMap<String, u64>) {
    for (name, count) in presence(counters) {
        let sum = metrics.entry(format!("presence_{name}")).or_default();
        *sum = sum.saturating_add(count);
    }
}

/// The counters of presence messages, by name.
pub(crate) fn presence(counters: &PresenceCounters) -> [(&'static str, u64); 17] {
    [
        ("sent", counters.sent),
        ("accepted", counters.accepted),
        ("unproven", counters.unproven),
        ("malformed", counters.malformed),
        ("wrong_version", counters.wrong_version),
        ("forged", counters.forged),
        ("invalid", counters.invalid),
        ("wrong_bssid", counters.wrong_bssid),
        ("own", counters.own),
        ("duplicate_id", counters.duplicate_id),
        ("replayed", counters.replayed),
        ("stale", counters.stale),
        ("table_full", counters.table_full),
        ("fleet_sent", counters.fleet_sent),
        ("queries", counters.queries),
        ("answers", counters.answers),
        ("unasked", counters.unasked),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_in_the_order_of_the_faults() {
        for (place, (fault, name)) in FAULTS.into_iter().enumerate() {
            assert_eq!((fault as usize, fault.name()), (place, name));
            assert!(name.starts_with(PREFIX) && place < FAULT_KINDS);
        }
    }

    #[test]
    fn a_lasting_fault_counts_each_time() {
        let mut faults = Faults::default();
        for _ in 0..3 {
            assert_eq!(faults.check::<(), _>(Fault::Send, Err("network is down")), None);
        }
        assert_eq!(faults.check::<_, &str>(Fault::Send, Ok(7)), Some(7));
        assert!(faults.lasting.is_empty());
        assert_eq!((faults.figures().0[4], faults.figures().1), (3, 0));
        faults.failed(Fault::Late, &"late");
        assert_eq!((faults.figures().0[8], faults.figures().1), (1, 1 << 8));
        assert_eq!((fault_kind(4), fault_kind(8)), ("send".to_owned(), "late_tick".to_owned()));
        let mut metrics = BTreeMap::new();
        faults.write(&mut metrics);
        assert_eq!(metrics["faults_send"], 3);
        assert_eq!(metrics["faults_snapshot"], 0);
    }

    #[test]
    fn the_counters_of_two_associations_add_up() {
        let mut metrics = BTreeMap::new();
        let counters = PresenceCounters { forged: 2, sent: 1, ..PresenceCounters::default() };
        add_presence(&counters, &mut metrics);
        add_presence(&counters, &mut metrics);
        assert_eq!((metrics["presence_forged"], metrics["presence_sent"]), (4, 2));
    }
}
