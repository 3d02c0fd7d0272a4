//! The results of sized transfers of many stations in either simulator, and their summary.

use serde::{Deserialize, Serialize};

use crate::statistics::{Interval, mean, mean_of};

/// One station's transfer.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct StationTransfer {
    /// The time from its start until the receiver had the last byte, seconds; `None` if it did not
    /// complete.
    pub completion_s: Option<f64>,
    /// The time from its start to the end of the handshake, seconds.
    pub open_s: f64,
    /// The number of SYNs that the opening end sent.
    pub syns: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// The longest time without new data at the receiver once the connection was open, seconds.
    pub stall_s: f64,
}

impl StationTransfer {
    /// The completion time without the wait for lost SYNs.
    fn once_open(&self) -> Option<f64> {
        Some(self.completion_s? - self.syn_wait_s())
    }

    /// The time spent waiting for lost SYNs and SYN-ACKs: the duration of the handshake if it took
    /// more than one SYN, else zero.
    fn syn_wait_s(&self) -> f64 {
        if self.syns > 1 { self.open_s } else { 0.0 }
    }
}

/// One run of many stations.
#[derive(Clone, Debug, PartialEq)]
pub struct Transfers {
    /// The transfer of each station.
    pub flows: Vec<StationTransfer>,
    /// Packets that the access point dropped because its queue was full.
    pub access_point_drops: u64,
}

impl Transfers {
    /// The completion times without SYN waits of the completed transfers, ascending.
    fn completions(&self) -> Vec<f64> {
        let mut all: Vec<f64> = self.flows.iter().filter_map(StationTransfer::once_open).collect();
        all.sort_by(f64::total_cmp);
        all
    }

    /// The sum of a figure over all connections.
    fn sum(&self, figure: impl Fn(&StationTransfer) -> f64) -> f64 {
        self.flows.iter().map(figure).sum()
    }
}

/// The figures of one case over its seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The number of runs.
    pub runs: usize,
    /// The mean over the runs of the mean completion time, seconds.
    pub mean: Interval,
    /// The mean over the runs of the first completion time, seconds.
    pub first: f64,
    /// The mean over the runs of the last completion time, seconds.
    pub last: f64,
    /// The mean over the runs of the number of timeouts.
    pub timeouts: f64,
    /// The most timeouts of one connection in any run.
    pub most_timeouts: u64,
    /// The mean over the runs of the packets that the access point dropped.
    pub drops: f64,
    /// The mean over the runs of the seconds spent waiting for SYNs.
    pub syn_wait_s: f64,
    /// The longest stall of any connection in any run, seconds.
    pub longest_stall_s: f64,
    /// The mean over the runs of the connections with more than one timeout.
    pub repeated: f64,
    /// The number of connections that did not complete, in all runs.
    pub unfinished: usize,
}

impl Summary {
    /// The summary of some runs; `None` without runs, or if no transfer completed.
    pub fn of(runs: &[Transfers]) -> Option<Self> {
        let each: Vec<Vec<f64>> = runs.iter().map(Transfers::completions).collect();
        let over = |figure: &dyn Fn(&Transfers) -> f64| mean_of(runs, |run| Some(figure(run)));
        let connections = || runs.iter().flat_map(|run| &run.flows);
        Some(Self {
            runs: runs.len(),
            mean: Interval::of(&each.iter().filter_map(|all| mean(all)).collect::<Vec<_>>())?,
            first: mean_of(&each, |all| all.first().copied())?,
            last: mean_of(&each, |all| all.last().copied())?,
            timeouts: over(&|run| run.sum(|flow| flow.timeouts as f64))?,
            most_timeouts: connections().map(|flow| flow.timeouts).max().unwrap_or(0),
            drops: over(&|run| run.access_point_drops as f64)?,
            syn_wait_s: over(&|run| run.sum(StationTransfer::syn_wait_s))?,
            longest_stall_s: connections().map(|flow| flow.stall_s).fold(0.0, f64::max),
            repeated: over(&|run| run.sum(|flow| f64::from(u8::from(flow.timeouts > 1))))?,
            unfinished: connections().filter(|flow| flow.completion_s.is_none()).count(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfer(
        completion_s: Option<f64>,
        open_s: f64,
        syns: u64,
        timeouts: u64,
    ) -> StationTransfer {
        StationTransfer { completion_s, open_s, syns, timeouts, stall_s: 0.5 }
    }

    #[test]
    fn waiting_for_syns_is_counted_apart() {
        let lost = transfer(Some(33.0), 3.0, 3, 0);
        let plain = transfer(Some(20.0), 0.002, 1, 2);
        let run = Transfers { flows: vec![lost, plain], access_point_drops: 7 };
        assert_eq!(run.completions(), [20.0, 30.0]);
        let summary = Summary::of(&[run]).unwrap();
        assert!((summary.syn_wait_s - 3.0).abs() < 1e-12);
        let timeouts = [summary.timeouts, summary.repeated, summary.most_timeouts as f64];
        assert_eq!(timeouts.map(f64::to_bits), [2.0_f64, 1.0, 2.0].map(f64::to_bits));
    }

    #[test]
    fn a_summary_is_over_runs_and_names_those_that_did_not_finish() {
        let run = |first: f64, last: Option<f64>| Transfers {
            flows: vec![transfer(Some(first), 0.0, 1, 1), transfer(last, 0.0, 1, 0)],
            access_point_drops: 10,
        };
        let summary = Summary::of(&[run(10.0, Some(20.0)), run(12.0, None)]).unwrap();
        assert_eq!((summary.runs, summary.unfinished, summary.most_timeouts), (2, 1, 1));
        assert!((summary.mean.mean - 13.5).abs() < 1e-12);
        assert!((summary.first - 11.0).abs() < 1e-12 && (summary.last - 16.0).abs() < 1e-12);
        assert_eq!(Summary::of(&[]), None);
    }
}
