//! The messages of the agent's local API, a client for it, and the agent's configuration.
//!
//! [`Request`] and [`Answer`] are the messages of the API, and [`ask`] is its client. [`json_line`]
//! carries the messages, with one line of JSON in each direction over a Unix socket.
//! [`config::Config`] is the agent's configuration file. The agent reads this file, and the lab
//! writes it.

mod client;
pub mod config;
mod fleet;
pub mod json_line;
mod messages;

pub use client::{Answers, AskError, TransferClient, ask};
pub use fleet::{Fleet, FleetStation, Holds, LawDifference, OtherLaw, OtherVersion};
pub use messages::{
    Answer, Body, BoundsReport, Connection, DatagramFlow, Drift, Peer, Question, Received, Request,
    Reservation, ReservationStatus, Reserve, State, Status, Targets, Transfer, VERSION,
    parse_reserve, part_of_one,
};
