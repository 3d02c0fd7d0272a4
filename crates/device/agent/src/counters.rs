//! The agent's counters. `docs/guides/metrics.md` lists their metrics.

use std::collections::BTreeMap;

use strum::VariantArray as _;
use wakeai_control::PresenceCounters;
use wakeai_control::presence::FAULT_KINDS;
use wakeai_daemon::metrics::{Page, Unit};

wakeai_daemon::counters! {
    "wakeai_agent";
    counter "ticks" None "Decisions, of which there are two per second.": ticks;
    counter "connections_moved" None "Connections that were moved to a bounded algorithm.":
        connections_moved;
    counter "api_requests_refused" None
        "Clients and requests of the local API that were refused, by reason.":
        api_strangers(reason = "strangers")
            "Clients that are not root, not the agent's user and not members of `api.group`.",
        api_forbidden(reason = "forbidden")
            "Requests for a change from clients without the right to it.",
        api_crowded(reason = "crowded") "Clients over the limit.",
        api_bad_requests(reason = "bad_requests")
            "Requests that were too long, were not JSON, had another version or were unknown.",
        api_slow(reason = "slow") "Clients that were too slow to send a request or to read an answer.";
}

/// Counts by name.
pub(crate) type Named = BTreeMap<String, u64>;

/// The counters of presence messages, by name.
pub(crate) fn presence(counters: &PresenceCounters) -> Named {
    let named = serde_json::to_value(counters).and_then(serde_json::from_value);
    named.expect("they are integers with names")
}

/// The sums of two groups of counters with the same names.
pub(crate) fn sum(mut one: Named, other: Named) -> Named {
    for (name, count) in other {
        let sum = one.entry(name).or_default();
        *sum = sum.saturating_add(count);
    }
    one
}

/// Presence counters that do not count refused messages. `own` counts this station's own messages,
/// received back. `unproven` counts authentic messages of stations that have not yet proved to be live.
const NOT_REFUSED: [&str; 4] = ["sent", "accepted", "unproven", "own"];

/// All counts at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) agent: Report,
    /// The presence messages of all associations.
    pub(crate) presence: Named,
    pub(crate) faults: Named,
    /// What other programs have changed, by what was done.
    pub(crate) drifts: Named,
}

impl Counts {
    /// Every count, by the names of the local API.
    pub(crate) fn named(&self) -> Named {
        let own = self.agent.entries().into_iter().map(|(name, count)| (name.to_owned(), count));
        let mut named: Named = own.collect();
        for (kind, counts) in
            [("presence", &self.presence), ("faults", &self.faults), ("drifts", &self.drifts)]
        {
            named.extend(counts.iter().map(|(name, count)| (format!("{kind}_{name}"), *count)));
        }
        named
    }

    /// Adds the families of the counts to a page.
    pub(crate) fn add_to(&self, page: &mut Page) {
        self.agent.add_to(page);
        let presence = |name| self.presence.get(name).copied().unwrap_or_default();
        let (base, help) =
            ("wakeai_agent_presence_messages_sent", "Presence messages that were sent.");
        page.counter(base, Unit::None, help).is(presence("sent"));
        let help = "Presence messages of peers that were accepted.";
        let base = "wakeai_agent_presence_messages_accepted";
        page.counter(base, Unit::None, help).is(presence("accepted"));
        let mut by = |label, base, help, counts: &Named| {
            page.counter(base, Unit::None, help).each(label, counts.clone());
        };
        let mut refused = self.presence.clone();
        refused.retain(|name, _| !NOT_REFUSED.contains(&name.as_str()));
        let help = "Datagrams to the presence port that were refused, by reason.";
        by("reason", "wakeai_agent_presence_messages_refused", help, &refused);
        let help = "Failures that did not end the agent.";
        by("fault", "wakeai_agent_faults", help, &self.faults);
        let help = "Times that another program had changed what the agent holds on the host, by what was done.";
        by("outcome", "wakeai_agent_drifts", help, &self.drifts);
    }
}

/// A failure that does not end the agent. Its number stands in an answer to a fleet's query, and never
/// changes.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    strum::FromRepr,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[strum(serialize_all = "snake_case")]
#[repr(usize)]
pub(crate) enum Fault {
    /// The connections could not be read.
    Snapshot = 0,
    /// A bound could not be written, or the algorithms are no longer registered.
    Bound = 1,
    /// A heartbeat could not be written. Without heartbeats the bounds expire.
    Heartbeat = 2,
    /// A connection could not be moved to a bounded algorithm.
    Move = 3,
    /// A presence message could not be sent.
    Send = 4,
    /// The presence socket could not be read or opened.
    Receive = 5,
    /// The interface did not exist or was down at a tick.
    Interface = 6,
    /// nl80211 did not give the association.
    Wifi = 7,
    /// A tick came late by more than half of the time between ticks.
    LateTick = 8,
    /// Messages of other stations were refused because of their timestamps.
    Clock = 9,
    /// Flows of UDP could not be read, or their rates not be written.
    Datagrams = 10,
}

impl Fault {
    /// The name of its counter.
    fn name(self) -> &'static str {
        self.into()
    }
}

/// The name of the kind of fault with this number in an answer to a fleet's query.
pub(crate) fn fault_kind(number: usize) -> String {
    Fault::from_repr(number)
        .map_or_else(|| format!("kind_{number}"), |fault| fault.name().to_owned())
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
            tracing::warn!(fault = format!("faults_{}", fault.name()), error = %words, "failed; the agent goes on");
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
                    tracing::info!(fault = format!("faults_{}", fault.name()), "works again");
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
        let (mut counts, mut lasting) = ([0; FAULT_KINDS], 0);
        for &fault in Fault::VARIANTS {
            counts[fault as usize] = u32::try_from(self.count(fault)).unwrap_or(u32::MAX);
            lasting |= u16::from(self.lasts(fault)) << fault as usize;
        }
        (counts, lasting)
    }

    fn count(&self, fault: Fault) -> u64 {
        self.counts.get(&fault).copied().unwrap_or(0)
    }

    /// The number of faults of each kind, by name.
    pub(crate) fn counts(&self) -> Named {
        let all = Fault::VARIANTS.iter();
        all.map(|fault| (fault.name().to_owned(), self.count(*fault))).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_fault_has_a_number_and_a_name_of_its_own() {
        let names: BTreeSet<_> = Fault::VARIANTS.iter().map(|fault| fault.name()).collect();
        assert_eq!(names.len(), Fault::VARIANTS.len());
        for fault in Fault::VARIANTS {
            assert!((*fault as usize) < FAULT_KINDS);
            assert_eq!(fault_kind(*fault as usize), fault.name());
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
        faults.failed(Fault::LateTick, &"late");
        assert_eq!((faults.figures().0[8], faults.figures().1), (1, 1 << 8));
        assert_eq!((fault_kind(4), fault_kind(8)), ("send".to_owned(), "late_tick".to_owned()));
        let named = Counts { faults: faults.counts(), ..Counts::default() }.named();
        assert_eq!((named["faults_send"], named["faults_snapshot"], named["ticks"]), (3, 0, 0));
    }

    #[test]
    fn the_counters_of_two_associations_add_up() {
        let counters = PresenceCounters { forged: 2, sent: 1, ..PresenceCounters::default() };
        let presence = sum(presence(&counters), presence(&counters));
        let named = Counts { presence, ..Counts::default() }.named();
        assert_eq!((named["presence_forged"], named["presence_sent"]), (4, 2));
    }
}
