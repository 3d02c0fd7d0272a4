//! Computes the buffer, in packets, from one burst.
//!
//! The sender fills a queue faster than the air empties it. A full queue accepts a packet only when
//! another has left. So the accepted packets come in *runs* with losses between them. A run begins
//! when a transmission has ended and its packets (one, or those of an aggregate) have left the
//! queue. It ends when their places are taken. At the beginning of a run no packet is between the
//! queue and the receiver, so all packets that have left the queue have arrived. At the end of the
//! run the queue is full. Hence
//!
//! > buffer = packets accepted until the end of the run - packets arrived at its beginning
//!
//! This holds for every run but the first, which begins with an empty queue. A burst has many runs,
//! and the result is their median. A packet that the air loses splits a run, which gives one value
//! that is too small; the median hardly changes.
//!
//! A second estimate counts no packets. It is the product of two figures (Little's law): the delay
//! of the last packets before a loss, and the rate at which the queue is emptied.

use super::burst::{Accepted, Burst, PRELUDE};
use super::quantile;

/// The least number of runs. The median of fewer runs could depend on a single one.
pub(crate) const FEWEST_RUNS: usize = 8;

/// The result of one burst.
#[derive(Clone, Debug, PartialEq)]
pub struct BurstReading {
    /// The number of packets in a full queue: the median over the runs. `None` where there were too
    /// few runs.
    pub packets: Option<f64>,
    /// The number of packets in a full queue, from its delay and the rate at which it is emptied.
    /// `None` where nothing was lost.
    pub packets_by_delay: Option<f64>,
    /// The number of runs.
    pub runs: usize,
    /// The number of packets per second that the air carried.
    pub drain_per_s: f64,
    /// The number of packets per second that were offered.
    pub offered_per_s: f64,
    /// The number of packets of the burst that were lost.
    pub lost: usize,
    /// The first loss.
    pub first_loss: Option<FirstLoss>,
    /// The largest number of packets that were accepted and had not yet arrived.
    pub most: f64,
    /// The smallest delay plus the difference of the clocks, in nanoseconds.
    pub base_ns: i64,
}

/// The moment of the first loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FirstLoss {
    /// The number of the lost packet in the burst.
    pub number: usize,
    /// The number of packets that were accepted and had not yet arrived.
    pub waiting: f64,
    /// The queueing delay of the last accepted packet before the loss, in milliseconds.
    pub delay_ms: f64,
    /// The share of lost packets in the part of the burst that begins with the first lost packet.
    /// The length of this part is `waiting` packets, but at least 20, as far as the burst goes.
    pub then_lost: f64,
}

/// Computes the result of a burst; `None` where too few of its packets arrived.
pub fn read(burst: &Burst) -> Option<BurstReading> {
    let accepted = burst.accepted();
    let base_ns = accepted.iter().map(Accepted::delay_ns).min()?;
    let after_prelude = accepted.partition_point(|one| one.number < PRELUDE);
    let (first, last) = (accepted.get(after_prelude)?, accepted.last()?);
    let mut came: Vec<i64> = accepted.iter().map(|one| one.came_ns).collect();
    came.sort_unstable();
    let (busy_ns, sent_ns) = (came.last()? - first.came_ns, last.sent_ns - first.sent_ns);
    let packets = accepted.len() - after_prelude;
    if packets < 2 || busy_ns <= 0 || sent_ns <= 0 {
        return None;
    }
    let per_packet_ns = busy_ns as f64 / (packets - 1) as f64;
    // A packet that meets an idle channel takes `base_ns`: the time of the wire and of one
    // transmission. The first packet of a run takes at least as long. The packets that were on the
    // air before it arrived earlier. So the arrivals at the beginning of a run are counted up to
    // `base_ns` after its first packet was sent, less a margin that leaves out this packet itself.
    let margin = (per_packet_ns / 8.0) as i64;
    let arrived_by =
        |sent_ns: i64| came.partition_point(|came| *came <= sent_ns + base_ns - margin);
    let waiting = |at: usize| (at + 1).saturating_sub(arrived_by(accepted[at].sent_ns)) as f64;
    let queueing_ns = |at: usize| (accepted[at].delay_ns() - base_ns) as f64;

    let ends: Vec<usize> = (after_prelude..accepted.len() - 1)
        .filter(|at| accepted[at + 1].number != accepted[*at].number + 1)
        .collect();
    let full: Vec<f64> = ends
        .windows(2)
        .map(|pair| {
            let begin = accepted[pair[0] + 1].sent_ns;
            (pair[1] + 1).saturating_sub(arrived_by(begin)) as f64
        })
        .collect();
    let full_ns: Vec<f64> = ends.iter().map(|end| queueing_ns(*end)).collect();
    let first_loss = ends.first().map(|&end| {
        let number = accepted[end].number + 1;
        let waiting = waiting(end);
        let window = number..(number + (waiting as usize).max(20)).min(last.number + 1);
        let arrived = accepted.iter().filter(|one| window.contains(&one.number)).count();
        let then_lost = 1.0 - arrived as f64 / window.len().max(1) as f64;
        FirstLoss { number, waiting, delay_ms: queueing_ns(end) / 1e6, then_lost }
    });
    Some(BurstReading {
        packets: quantile(&full, 0.5).filter(|_| full.len() >= FEWEST_RUNS),
        packets_by_delay: quantile(&full_ns, 0.5).map(|delay| delay / per_packet_ns + 1.0),
        runs: full.len(),
        drain_per_s: 1e9 / per_packet_ns,
        offered_per_s: (last.number - first.number) as f64 / sent_ns as f64 * 1e9,
        lost: burst.sent.len() - accepted.len(),
        first_loss,
        most: (after_prelude..accepted.len()).map(waiting).fold(0.0, f64::max),
        base_ns,
    })
}
