//! The agent's local API and its configuration, as data.
//!
//! [`Request`] and [`Answer`] are the messages of the API, [`ask`] is its client, and [`json_line`] is
//! the framing below both: one line of JSON in each direction over a Unix socket. [`config::Config`] is
//! the agent's configuration file, which the agent reads and the lab writes.

mod client;
pub mod config;
pub mod json_line;
mod messages;

pub use client::{Answers, AskError, ask};
pub use messages::{
    Answer, Body, BoundsReport, Connection, Peer, Question, Request, Reservation,
    ReservationStatus, Reserve, State, Status, Targets, VERSION, parse_reserve, part_of_one,
};
