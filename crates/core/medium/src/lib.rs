//! The emulated medium in virtual time: stations, the air that they share, their access points, and
//! the wired legs to a server. The medium is one or several Wi-Fi BSSs (access points with their stations) or a
//! cellular link.
//!
//! The crate does no I/O: it has no clock, no socket and no global random numbers, and it computes
//! with integers only. The simulator drives it as fast as it can, and the lab drives it on the wall
//! clock. [`Medium`] documents the order of calls.
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
//! Access points have a channel each, and those on one channel share its air. Unless
//! [`WifiConfig::hidden`] says otherwise, all on a channel hear each other equally well. There is no
//! capture. What follows is about such a channel; where some do not hear each other, each frame of an
//! exchange is received by each contender for itself (the module `wifi::hidden` has the rules). The
//! slots of all contenders form one grid, which begins when the medium becomes idle. A transmission
//! that would start at another time is delayed to the next slot. That happens after EIFS (the wait
//! after a damaged frame), after an ACK timeout, and when a packet arrives at an idle medium. Two
//! transmissions that start in the same slot collide. No station can decode a preamble among
//! collided frames. So the other stations see a busy medium and then wait DIFS or AIFS, while the
//! senders of the collided frames first wait for their ACK timeout. A frame that is damaged by
//! errors is damaged for all stations: the others wait EIFS, unless a `BlockAck` follows. ACK and
//! `BlockAck` frames have no errors.
//!
//! A packet arrives when its MPDU (the frame that carries it) ends. So within an aggregate the
//! first packets arrive before the last. A packet leaves its sender's queue when the data frame
//! ends; the ACK after that only takes airtime. Packets of one sender to one receiver arrive in
//! order. Packets behind a damaged frame of an aggregate wait in the receiver's reorder buffer
//! until that frame has arrived or was given up. An access point with a FIFO serves the receiver of
//! its oldest packet. It aggregates other packets for that receiver with this one, like an access
//! point with a queue for each receiver address and traffic class.

mod base;
mod cellular;
mod chance;
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
pub use medium::{Change, Medium, MediumConfig};
pub use node::{
    Arrival, Delivery, Destination, Kind, Node, Packet, Receivers, StationId, Stations,
};
pub use rand_pcg::Pcg64Mcg;
pub use wifi::{AccessPointConfig, HostQueueKind, WifiConfig, WifiStationConfig};

/// The longest packet that a frame carries: an MSDU of 2304 bytes (802.11-2020 9.2.4.7) less its
/// LLC/SNAP header of 8 bytes.
pub const MAX_PACKET: usize = 2_296;

/// The random generator of a run, from its seed.
pub fn generator(seed: u64) -> Pcg64Mcg {
    rand_core::SeedableRng::seed_from_u64(seed)
}
