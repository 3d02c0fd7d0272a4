//! The agent's brain, without clock, socket, file or kernel.
//!
//! [`Controller`] is the whole of it: presence datagrams and what the kernel says about this
//! station's connections go in, presence datagrams and window [`Bounds`] come out. The agent
//! drives it on a real device and the simulator in virtual time; `now` is always a parameter.
//!
//! Inside: [`presence`] (messages, peer table, how often to send), [`RttWatch`] (how much the RTT
//! has grown over its minimum), the [`Law`]s that turn an [`Observation`] into bounds,
//! [`reservation`] (rates that are left free for others), and [`divide`], which shares a station's
//! bounds among its connections.

mod bounds;
mod config;
mod controller;
mod divide;
mod event;
mod lasting;
mod law;
pub mod laws;
mod observation;
pub mod presence;
mod rates;
pub mod reservation;
mod rtt;
mod windowed;

pub use bounds::Bounds;
pub use config::{Clocks, ControllerConfig};
pub use controller::Controller;
pub use divide::{divide, share_of_new};
pub use event::{Event, Narrator, Phase, Reason, Silent};
pub use law::{Law, LawConfig};
pub use laws::airtime::AirtimeKnobs;
pub use observation::{
    CongestionState, ConnectionView, Observation, PeerView, RttView, StationId, StationView,
};
pub use presence::PresenceCounters;
pub use reservation::{Reservation, Share, Standing};
pub use rtt::RttWatch;
