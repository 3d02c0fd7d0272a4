//! Makes the agent's decisions. The code reads no clock, and uses no socket, no file and no kernel
//! interface.
//!
//! [`Controller`] takes presence datagrams and the station's [`Connection`]s. It gives presence
//! datagrams and an [`Actuation`], which has the bounds of each socket. The agent drives the
//! controller on a real device, and the simulator drives it in virtual time. The time is a
//! parameter of each call, `now`.
//!
//! The parts of the crate are:
//!
//! - [`presence`]: the messages by which stations announce themselves, their schedule, and the
//!   table of peers;
//! - [`Connection`]: a TCP connection, and the rules that decide whether it sends and whether it receives;
//! - [`RttWatch`]: the queueing delay, which is the difference between the RTT and its minimum;
//! - [`Law`]: a rule that turns an [`Observation`] into the station's [`Bounds`];
//! - `reservation`: rates that a station asks the others to leave free;
//! - `turns`: the order in which stations with transfers send;
//! - [`common`]: what the members of a fleet have to hold in common, and how they notice that one does
//!   not;
//! - [`Actuation`]: the division of bounds among connections.

mod bounds;
pub mod common;
mod config;
mod connections;
mod controller;
mod decision;
mod driver;
mod event;
mod lasting;
pub mod laws;
mod observation;
mod pieces;
mod places;
pub mod presence;
mod rates;
mod reservation;
mod rtt;
mod share;
mod turns;
mod weights;
mod windowed;

pub use bounds::Actuation;
pub use common::{CommonLaw, PeerLaw};
pub use config::{Clocks, ControllerConfig};
pub use connections::{Connection, Limit};
pub use controller::Controller;
pub use decision::{AirtimeState, Basis, Decision, Phase, ReservationLimit};
pub use driver::{LIMITS_EVERY, StationTick, TICK};
pub use event::{Event, PeerChange};
pub use laws::airtime::AirtimeKnobs;
pub use laws::{Law, LawConfig, LawName};
pub use observation::{
    Announcement, ConnectionView, Observation, OwnTraffic, PeerView, RttView, StationId, Traffic,
};
pub use pieces::Pieces;
pub use presence::PresenceCounters;
pub use rtt::RttWatch;
pub use share::{Reservation, ReservationState, Share};
pub use turns::{Permission, Turn, TurnState};
pub use wakeai_connection::{Bounds, Direction, Receiving};
