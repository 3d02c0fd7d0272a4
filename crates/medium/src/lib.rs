//! One Wi-Fi BSS in virtual time: stations, their access point, the air that they share, and the
//! wired leg to a server.
//!
//! Sans-IO: no clock, no socket, no global randomness, integers only. The simulator drives it as
//! fast as it can, the lab on the wall clock; see [`Medium`] for the order of calls.
//!
//! ```
//! use wakeai_medium::{Destination, Medium, Node, StationId, WifiConfig, generator};
//! use wakeai_units::{Duration, Instant};
//! use wakeai_wifi::Standard;
//!
//! let config = WifiConfig::new(Standard::G, 2);
//! let mut medium = Medium::new(&config.into(), generator(1))?;
//! let (sender, to) = (Node::Station(StationId(0)), Destination::Unicast(Node::Server));
//! let now = Instant::ZERO + Duration::from_millis(5);
//! medium.enqueue(now, sender, to, vec![0; 1_500]).expect("an empty queue has room");
//! while let Some(due) = medium.next_timeout() {
//!     medium.handle_timeout(due);
//!     while let Some(delivery) = medium.poll_delivery() {
//!         assert_eq!((delivery.from, delivery.to), (sender, Node::Server));
//!         // At most a slot, 254 us of frame, 12 us on the wire and its millisecond.
//!         assert!(delivery.at - now <= Duration::from_micros(9 + 254 + 12 + 1_000));
//!     }
//! }
//! # Ok::<(), wakeai_medium::ConfigError>(())
//! ```
//!
//! # The model
//!
//! Everybody hears everybody alike: no hidden stations, no capture. The slots of all contenders
//! are one grid that begins where the medium falls idle; what starts at another time (EIFS, an ACK
//! timeout, a packet that comes upon an idle medium) is rounded up to it, and two that start in
//! the same slot collide. Nobody can decode a preamble among collided frames, so to bystanders the
//! medium was merely busy and they wait DIFS or AIFS, while those who collided first wait for
//! their ACK timeout. A frame that is damaged by errors is damaged for all: bystanders wait EIFS,
//! unless a BlockAck follows. Answers have no errors of their own.
//!
//! A packet arrives when its MPDU ends, within an aggregate before the others; it is gone from its
//! sender's queue when the data frame ends, and the ACK only takes its air. Packets of one sender to one receiver arrive in order: those behind a
//! damaged subframe wait in the receiver's reorder buffer until it came or was given up. An access
//! point with a FIFO serves the receiver of its oldest packet, and aggregates what else it keeps
//! for that receiver, as queues by receiver address and traffic class do.

mod base;
mod cellular;
mod counters;
mod error;
mod medium;
mod node;
mod ranges;
mod wifi;
mod wired;

pub use base::Departure;
pub use cellular::{CellularConfig, CellularStationConfig};
pub use counters::{Airtime, ContenderCounters, Counters, WireCounters};
pub use error::ConfigError;
pub use medium::{Medium, MediumConfig};
pub use node::{Delivery, Destination, Kind, Node, Packet, StationId};
pub use rand_pcg::Pcg64Mcg;
pub use wifi::{HostQueueKind, WifiConfig, WifiStationConfig};

/// Longest packet that a frame carries: an MSDU of 2304 bytes (802.11-2020 9.2.4.7) less its
/// LLC/SNAP header of 8.
pub const MAX_PACKET: usize = 2_296;

/// The generator of a run, from its seed.
pub fn generator(seed: u64) -> Pcg64Mcg {
    rand_core::SeedableRng::seed_from_u64(seed)
}
