//! Who looks on while packets enter and leave hosts.

use wakeai_medium::{Destination, Node};
use wakeai_tcp::Segment;
use wakeai_units::Duration;

/// A packet as a host sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen<'a> {
    /// Of a TCP connection.
    Segment {
        /// Index of the flow, as in the result's `flows`.
        flow: u32,
        /// Which connection of the flow, from 0.
        connection: u32,
        /// Whether it goes from the flow's receiver to its sender.
        to_sender: bool,
        /// The segment.
        segment: Segment,
    },
    /// Of a UDP flow.
    Datagram {
        /// Index of the flow.
        flow: u32,
        /// Payload bytes.
        len: u16,
    },
    /// A presence message, as it stands behind the UDP header.
    Presence(&'a [u8]),
}

/// Sees every packet that a host puts into its queue, and every packet that arrives at a host. Times
/// count from the run's time zero; agents speak before it, and what was before counts as zero.
pub trait Observer {
    /// Whether it looks on at all.
    const LOOKS: bool = true;

    /// A host has put a packet into its queue.
    fn on_sent(&mut self, at: Duration, from: Node, to: Destination, packet: Seen<'_>);

    /// A packet has arrived at a host.
    fn on_received(&mut self, at: Duration, from: Node, to: Node, packet: Seen<'_>);
}

/// Nobody.
impl Observer for () {
    const LOOKS: bool = false;

    fn on_sent(&mut self, _: Duration, _: Node, _: Destination, _: Seen<'_>) {}

    fn on_received(&mut self, _: Duration, _: Node, _: Node, _: Seen<'_>) {}
}
