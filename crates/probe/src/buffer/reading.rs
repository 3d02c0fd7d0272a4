//! The buffer from one burst, in packets.
//!
//! A sender fills a queue faster than the air empties it. In a full queue a packet is accepted when another has left.
//! So the accepted packets come in *runs* with losses between them: a run begins when a transmission has ended and its
//! packets (one, or an aggregate's) have left the queue, and ends when their places are taken. At the beginning of a run
//! nothing is between the queue and the receiver, so what has left the queue is what has arrived. At its end the queue
//! is full. Hence
//!
//! > buffer = packets accepted until the end of the run - packets arrived at its beginning
//!
//! for every run but the first, which begins with an empty queue. A burst has many runs, and their median is its
//! reading. A loss on the air only splits a run, and gives one value that is too small.
//!
//! The second estimate needs no counting: the delay of the packets that were accepted last before a loss, times the
//! rate at which the queue is emptied (Little's law).

use super::burst::{Accepted, Burst, PRELUDE};
use super::quantile;

/// Fewer runs give a median that a single one can move.
pub(crate) const FEWEST_RUNS: usize = 8;

/// What one burst says about the queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The packets in a full queue: the median over the runs. `None` where too few runs were seen.
    pub packets: Option<f64>,
    /// The same from the delay of a full queue and the drain rate; `None` where nothing was lost.
    pub packets_by_delay: Option<f64>,
    /// The runs that the median is of.
    pub runs: usize,
    /// Packets per second that the air took.
    pub drain_per_s: f64,
    /// Packets per second that were offered.
    pub offered_per_s: f64,
    /// The packets of the burst that were lost.
    pub lost: usize,
    /// The first loss.
    pub first_loss: Option<FirstLoss>,
    /// The most packets that were accepted and had not arrived.
    pub most: f64,
    /// The smallest delay plus the difference of the clocks, in nanoseconds.
    pub base_ns: i64,
}

/// The moment of the first loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FirstLoss {
    /// Its number in the burst.
    pub number: usize,
    /// Packets that were accepted and had not arrived.
    pub waiting: f64,
    /// The queueing delay of the packet before it, in milliseconds.
    pub delay_ms: f64,
    /// The share that was lost of the packets that followed, as many as were waiting.
    pub then_lost: f64,
}

/// Reads a burst; `None` where too little of it arrived.
pub fn read(burst: &Burst) -> Option<Reading> {
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
    // A packet that meets an idle channel takes `base`: the wire and one transmission. So does the packet that follows
    // the beginning of a run, at least; a little earlier is before its arrival, and after that of what was on the air
    // before.
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
    Some(Reading {
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
