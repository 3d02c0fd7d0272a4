//! Bounds put to work: per connection, with a default for those that are new.

use std::collections::BTreeSet;

use wakeai_control::{Bounds, CongestionState, ConnectionView, divide, share_of_new};
use wakeai_kernel::{Control, Error, SocketBounds, TcpSnapshot};
use wakeai_units::Segments;

/// The bounds of one interface in the kernel.
#[derive(Debug)]
pub(crate) struct Actuator {
    control: Control,
    netns_cookie: u64,
    /// Sockets with bounds of their own, from the last tick.
    bound: BTreeSet<u64>,
}

impl Actuator {
    pub(crate) fn new(control: Control, netns_cookie: u64) -> Self {
        Self { control, netns_cookie, bound: BTreeSet::new() }
    }

    /// Shares `bounds` out among the sending ones of `connections` and gives every new connection
    /// what it would get as one more. The first error is returned after the rest was tried.
    pub(crate) fn apply(
        &mut self,
        index: u32,
        bounds: Bounds,
        connections: &[ConnectionView],
    ) -> Result<(), Error> {
        let mut result = self.control.set_interface(
            self.netns_cookie,
            index,
            in_kernel(share_of_new(bounds, connections)),
        );
        let parts = divide(bounds, connections);
        let bound: BTreeSet<u64> = parts.iter().map(|(cookie, _)| *cookie).collect();
        for (cookie, part) in parts {
            result = result.and(self.control.set_socket(cookie, in_kernel(part)));
        }
        for cookie in self.bound.difference(&bound) {
            result = result.and(self.control.clear_socket(*cookie));
        }
        self.bound = bound;
        result
    }

    /// Bounds of this interface bind for another while.
    pub(crate) fn heartbeat(&self, index: u32) -> Result<(), Error> {
        self.control.heartbeat(self.netns_cookie, index)
    }

    /// Nothing over this interface is bound any more.
    pub(crate) fn clear(&mut self, index: u32) -> Result<(), Error> {
        let mut result = self.control.clear_interface(self.netns_cookie, index);
        for cookie in std::mem::take(&mut self.bound) {
            result = result.and(self.control.clear_socket(cookie));
        }
        result
    }
}

/// In the kernel 0 means none; a rate that is asked for is never rounded down to that.
fn in_kernel(bounds: Bounds) -> SocketBounds {
    SocketBounds {
        floor: bounds.floor.get(),
        ceiling: if bounds.ceiling == Segments::MAX { 0 } else { bounds.ceiling.get().max(1) },
        pacing_bytes_per_second: bounds.pacing.map_or(0, |rate| rate.bytes_per_second().max(1)),
        small_queue_bytes: bounds.small_queue.get(),
    }
}

/// More than this within a tick is sending, even where nothing is on its way at the moment of the
/// snapshot: an initial window (RFC 6928), which a mere exchange of messages does not exceed.
const SENDING_SEGMENTS: u32 = 10;

/// What a law sees of a connection that had delivered so many segments at the tick before.
pub(crate) fn view(snapshot: &TcpSnapshot, delivered_before: Option<u64>) -> ConnectionView {
    let figures = &snapshot.figures;
    // The kernel's counter has 32 bits.
    let delivered =
        delivered_before.map_or(0, |before| (figures.delivered as u32).wrapping_sub(before as u32));
    ConnectionView {
        id: snapshot.socket.cookie,
        cwnd: figures.cwnd,
        mss: figures.mss,
        smoothed_rtt: figures.smoothed_rtt,
        latest_rtt: figures.latest_rtt,
        min_rtt: figures.min_rtt,
        delivery_rate: figures.delivery_rate,
        delivered: figures.delivered,
        in_flight: figures.in_flight(),
        congestion_state: match figures.congestion_state {
            wakeai_kernel::CongestionState::Open => CongestionState::Open,
            wakeai_kernel::CongestionState::Disorder => CongestionState::Disorder,
            wakeai_kernel::CongestionState::Cwr => CongestionState::Cwr,
            wakeai_kernel::CongestionState::Recovery => CongestionState::Recovery,
            wakeai_kernel::CongestionState::Loss => CongestionState::Loss,
        },
        sending: delivered > SENDING_SEGMENTS
            || figures.packets_out > Segments::ZERO
            || figures.send_queue > wakeai_units::Bytes::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakeai_units::Rate;

    #[test]
    fn a_connection_sends_that_has_data_or_delivered_more_than_an_initial_window() {
        let mut snapshot = snapshot();
        assert!(!view(&snapshot, None).sending);
        assert!(!view(&snapshot, Some(90)).sending);
        assert!(view(&snapshot, Some(89)).sending);
        snapshot.figures.delivered = 20; // the kernel's counter has wrapped
        assert!(view(&snapshot, Some(u64::from(u32::MAX))).sending);
        snapshot.figures.send_queue = wakeai_units::Bytes::new(1);
        assert!(view(&snapshot, Some(20)).sending);
    }

    /// Idle, with 100 segments delivered.
    fn snapshot() -> TcpSnapshot {
        let end = "10.0.0.1:1".parse().unwrap();
        let zero = wakeai_units::Duration::ZERO;
        TcpSnapshot {
            socket: wakeai_kernel::Socket {
                cookie: 1,
                netns_cookie: 1,
                netns_inode: 1,
                local: end,
                remote: end,
            },
            figures: wakeai_kernel::Figures {
                cwnd: Segments::new(10),
                ssthresh: Segments::MAX,
                smoothed_rtt: zero,
                latest_rtt: zero,
                min_rtt: zero,
                congestion_state: wakeai_kernel::CongestionState::Open,
                packets_out: Segments::ZERO,
                sacked_out: Segments::ZERO,
                lost_out: Segments::ZERO,
                retrans_out: Segments::ZERO,
                send_queue: wakeai_units::Bytes::ZERO,
                delivered: 100,
                delivery_rate: Rate::ZERO,
                application_limited: false,
                pacing_rate: None,
                k: None,
                mss: wakeai_units::Bytes::new(1448),
                interface: 2,
            },
            algorithm: "wakeai_cubic".to_owned(),
        }
    }

    #[test]
    fn no_bound_is_zero_in_the_kernel_and_a_bound_never_is() {
        assert_eq!(in_kernel(Bounds::NONE), SocketBounds::NONE);
        let slow = Bounds {
            floor: Segments::ZERO,
            ceiling: Segments::ZERO,
            pacing: Some(Rate::from_bps(7)),
            small_queue: wakeai_units::Bytes::new(9),
        };
        let found = in_kernel(slow);
        assert_eq!((found.ceiling, found.pacing_bytes_per_second), (1, 1));
        assert_eq!(found.small_queue_bytes, 9);
    }
}
