//! One Wi-Fi BSS in virtual time: stations, their access point, the air that they share, and the
//! wired leg to a server.
//!
//! Sans-IO: no clock, no socket, no global randomness. See [`Medium`] for the order of calls.

mod access_point;
mod backoff;
mod config;
mod contention;
mod counters;
mod exchange;
mod frames;
mod link;
mod medium;
mod node;
mod phy;
mod rates;
mod standard;
mod validate;
mod wheel;
mod wired;

pub use config::{
    AccessPointConfig, ConfigError, Contention, GuardInterval, MediumConfig, Protection, QueueKind,
    StationConfig, Width, WiredConfig,
};
pub use counters::{Airtime, ContenderCounters, Counters, WireCounters};
pub use medium::Medium;
pub use node::{Delivery, Destination, Node, Packet, StationId};
pub use rand_pcg::Pcg64Mcg;
pub use standard::Standard;

/// Longest packet that a frame carries: an MSDU of 2304 bytes (802.11-2020 9.2.4.7) less its
/// LLC/SNAP header of 8.
pub const MAX_PACKET: usize = 2_296;

/// The generator of a run, from its seed.
pub fn generator(seed: u64) -> Pcg64Mcg {
    rand_core::SeedableRng::seed_from_u64(seed)
}
