//! The emulated medium in virtual time: stations, the air that they share, their access point and
//! the wired leg to a server. It is a Wi-Fi BSS or a cellular link.
//!
//! The crate does no I/O: it has no clock, no socket and no global random numbers, and it computes
//! with integers only. The simulator drives it as fast as it can, the lab on the wall clock;
//! [`Medium`] documents the order of calls.
//!
//! ```
//! use wakeai_medium::{Destination, Medium, MediumConfig, Node, StationId, WifiConfig, generator};
//! use wakeai_units::{Duration, Instant};
//! use wakeai_wifi::Standard;
//!
//! let config = MediumConfig::Wifi(WifiConfig::new(Standard::G, 2));
//! let mut medium = Medium::new(&config, generator(1))?;
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
//! # The model of Wi-Fi
//!
//! All stations hear each other equally well: there are no hidden stations and no capture. The slots
//! of all contenders form one grid that begins when the medium becomes idle. A transmission that would
//! start at another time (after EIFS, after an ACK timeout, or because a packet arrives at an idle
//! medium) is delayed to the next slot, and two that start in the same slot collide. Nobody can decode a
//! preamble among collided frames, so the other stations see a busy medium and then wait DIFS or AIFS,
//! while the senders of the collided frames first wait for their ACK timeout. A frame that is damaged
//! by errors is damaged for all: the other stations wait EIFS, unless a `BlockAck` follows. ACK and
//! `BlockAck` frames have no errors.
//!
//! A packet arrives when its MPDU ends, within an aggregate before the others. It leaves its sender's
//! queue when the data frame ends; the ACK after it only takes airtime. Packets of one sender to one
//! receiver arrive in order: those behind a damaged subframe wait in the receiver's reorder buffer
//! until that subframe has arrived or was given up. An access point with a FIFO serves the receiver of
//! its oldest packet, and aggregates other packets that it keeps for that receiver, as an access point
//! with queues by receiver address and traffic class does.

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
