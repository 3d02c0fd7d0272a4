//! The agent's decisions, without clock, socket, file or kernel.
//!
//! [`Controller`] takes presence datagrams and the station's [`Connection`]s. It gives presence datagrams and
//! an [`Actuation`], the bounds of each socket. The agent drives it on a real device, and the simulator in
//! virtual time; `now` is always a parameter.
//!
//! Its parts are [`presence`] (messages, peer table, schedule), [`Connection`] (and the rule by which a connection is
//! sending), [`RttWatch`] (the queueing delay: how far the RTT is above its minimum), the [`Law`]s that turn an
//! [`Observation`] into the station's [`Bounds`], `reservation` (rates that are left free for other stations), and
//! [`Actuation`], which divides bounds among connections.

mod bounds;
mod config;
mod connections;
mod controller;
mod event;
mod lasting;
pub mod laws;
mod observation;
pub mod presence;
mod rates;
mod reservation;
mod rtt;
mod share;
mod weights;
mod windowed;

pub use bounds::{Actuation, Bounds};
pub use config::{Clocks, ControllerConfig};
pub use connections::Connection;
pub use controller::Controller;
pub use event::{Event, PeerChange, Phase, Reason};
pub use laws::airtime::AirtimeKnobs;
pub use laws::{Law, LawConfig};
pub use observation::{
    Announcement, ConnectionView, Observation, PeerView, RttView, StationId, StationView,
};
pub use presence::PresenceCounters;
pub use rtt::RttWatch;
pub use share::{Reservation, ReservationState, Share};
