//! Measures the buffer of an access point: sends the bursts that the plan asks for, and gets from
//! the listener what arrived.

use std::net::SocketAddr;

use wakeai_units::{Bytes, Instant, Rate};

use super::clock;
use super::listen::Stop;
use super::sender::{Fate, ProbeSender, SendError};
use crate::buffer::{
    BufferReport, Burst, Plan, PlanOptions, Schedule, Shot, Sizes, Stage, Unmeasured,
};
use crate::datagram::HEADER_BYTES;
use crate::token::Token;

/// The length of large IP packets.
const LARGE: Bytes = Bytes::new(1_500);
/// The length of small IP packets, which show whether the buffer's limit counts packets or bytes.
const SMALL: Bytes = Bytes::new(750);
/// A whole burst counts as held back if more than one in 50 of its datagrams was held back.
const HELD_BACK: u32 = 50;

/// A station on which a listener runs.
#[derive(Clone, Debug)]
pub struct ProbePeer {
    /// The addresses of the listener, in the order in which they should be tried.
    pub addresses: Vec<SocketAddr>,
    /// The token that the listener has printed.
    pub token: Token,
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct BufferProbe {
    /// The station.
    pub station: ProbePeer,
    /// Another station on the same access point.
    pub second: Option<ProbePeer>,
    /// The number of bursts whose median and range are reported.
    pub runs: u32,
    /// The fastest rate to send at.
    pub limit: Rate,
}

/// A burst that has been sent and whose arrivals are known.
#[derive(Clone, Copy, Debug)]
pub struct ProbeProgress {
    /// What the burst was for.
    pub stage: Stage,
    /// The number of datagrams that were sent.
    pub sent: usize,
    /// The number of datagrams that arrived.
    pub arrived: usize,
    /// The rate that was asked for.
    pub rate: Rate,
}

/// The measurement failed.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The listener could not be reached.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The bursts did not show the buffer.
    #[error(transparent)]
    Unmeasured(#[from] Unmeasured),
    /// Packets were lost before they reached the wire.
    #[error(
        "this machine dropped {dropped} of {sent} packets at {rate:#}, so the losses say nothing about the access point; \
         lower --rate below the rate of this machine's interface"
    )]
    DroppedHere {
        /// The number of packets that were dropped.
        dropped: u32,
        /// The number of packets of the burst.
        sent: usize,
        /// The rate of the burst.
        rate: Rate,
    },
    /// Packets were lost after they had crossed the air.
    #[error(
        "the station's socket had no room for {0} datagrams that had arrived, so the losses say nothing about the \
         access point; run its `--listen` as root, or on a machine that is less busy"
    )]
    DroppedThere(u32),
}

/// Measures the buffer between this machine and the station.
///
/// # Errors
/// [`ProbeError`].
pub fn probe_buffer(
    probe: &BufferProbe,
    stop: Stop<'_>,
    mut progress: impl FnMut(&ProbeProgress),
) -> Result<BufferReport, ProbeError> {
    // By default the kernel may delay a wake-up by 50 us, so that several datagrams of a burst
    // would be due at once. An error is ignored, because the measurement works nevertheless.
    let _ = nix::sys::prctl::set_timerslack(1_000);
    let mut first = ProbeSender::connect(&probe.station.addresses, &probe.station.token, stop)?;
    let connect = |peer: &ProbePeer| ProbeSender::connect(&peer.addresses, &peer.token, stop);
    let mut second = probe.second.as_ref().map(connect).transpose()?;
    let mut plan = Plan::new(PlanOptions {
        runs: probe.runs,
        limit: probe.limit,
        packets: Sizes { large: LARGE, small: SMALL },
        second: second.is_some(),
    });
    let mut burst = 0;
    let mut overflowed_before = 0;
    while let Some(shot) = plan.poll_shot() {
        burst += 1;
        let fired = fire(&mut first, second.as_mut(), &shot, burst, stop)?;
        let (arrivals, overflowed) = first.fetch(burst)?;
        let dropped =
            overflowed.wrapping_sub(std::mem::replace(&mut overflowed_before, overflowed));
        if dropped > 0 {
            return Err(ProbeError::DroppedThere(dropped));
        }
        let sparse = match (&shot.beside, second.as_mut()) {
            (None, _) => None,
            (Some(beside), Some(second)) if beside.to_second => {
                Some(Burst::of_flow(1, fired.sparse, &second.fetch(burst)?.0))
            }
            (Some(_), _) => Some(Burst::of_flow(1, fired.sparse, &arrivals)),
        };
        let sent = fired.burst.len();
        if fired.dropped > 0 {
            return Err(ProbeError::DroppedHere { dropped: fired.dropped, sent, rate: shot.rate });
        }
        let main = Burst::of_flow(0, fired.burst, &arrivals);
        let arrived = main.arrivals.len();
        progress(&ProbeProgress { stage: plan.stage(), sent, arrived, rate: shot.rate });
        let held_back = fired.held_back > shot.count / HELD_BACK;
        plan.handle_burst(&main, sparse.as_ref(), held_back)?;
    }
    Ok(plan.report())
}

/// A shot that was sent.
#[derive(Default)]
struct Fired {
    burst: Vec<Instant>,
    sparse: Vec<Instant>,
    held_back: u32,
    dropped: u32,
}

fn fire(
    first: &mut ProbeSender<'_>,
    mut second: Option<&mut ProbeSender<'_>>,
    shot: &Shot,
    burst: u32,
    stop: Stop<'_>,
) -> Result<Fired, SendError> {
    let aside = first.another_socket()?;
    let mut fired = Fired::default();
    let length = shot.packet.get() as usize - first.overhead();
    for due in Schedule::new(*shot, clock::now()) {
        clock::sleep_until(due.at);
        if due.number % 256 == 0 && stop() {
            return Err(SendError::Stopped);
        }
        let before = clock::now();
        let to_second = shot.beside.is_some_and(|beside| beside.to_second);
        let fate = match (due.flow, second.as_deref_mut()) {
            (0, _) => first.data(None, 0, burst, due.number, length)?,
            (_, Some(second)) if to_second => {
                second.data(None, 1, burst, due.number, HEADER_BYTES)?
            }
            _ => first.data(Some(&aside), 1, burst, due.number, HEADER_BYTES)?,
        };
        // A datagram that was held back counts as sent at the time when the kernel took it.
        let sent = if fate == Fate::HeldBack { clock::now() } else { before };
        let list = if due.flow == 0 { &mut fired.burst } else { &mut fired.sparse };
        list.push(sent);
        fired.held_back += u32::from(fate == Fate::HeldBack);
        fired.dropped += u32::from(fate == Fate::DroppedHere);
    }
    Ok(fired)
}
