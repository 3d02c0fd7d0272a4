//! Uploads in pieces that resume after any interruption, over tus 1.0 and HTTP.
//!
//! [`put`] is the client and [`serve`] the server; [`tus`] holds what both need of the protocol.

pub mod put;
pub mod serve;
pub mod tus;
