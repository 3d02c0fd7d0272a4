//! The server: takes uploads over tus and keeps them in one directory.
//!
//! [`Operation`] reads the head of a request, [`Upload`] is the state of an upload, and [`safe_name`] makes the name of
//! its file. These three do no input or output. [`run()`] serves all clients on one thread. Further threads write and
//! sync the files. Every byte that an answer acknowledges is on disk before the answer is sent.

mod accept;
mod accounts;
mod answer;
mod append;
mod base;
mod block;
mod clock;
mod config;
mod connections;
mod cors;
mod counters;
mod data;
mod error;
mod figures;
mod files;
mod group;
mod journal;
mod name;
mod refusal;
mod request;
mod run;
mod server;
mod service;
mod store;
mod sweep;
mod tls;
mod tokens;
mod transfer;
mod unsupported;
mod upload;
mod writer;

pub use base::{Base, NotABase};
pub use config::{Limits, ServeConfig, Tls};
pub use cors::{NotAnOrigin, Origin};
pub use counters::Report;
pub use error::ServeError;
pub use name::{numbered as numbered_name, safe as safe_name};
pub use refusal::{Refusal, Target};
pub use request::{Append, Create, Id, METADATA_LIMIT, Operation};
pub use run::{ServeEvent, run};
pub use upload::{End, Upload};
