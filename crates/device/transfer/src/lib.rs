//! Uploads in pieces that resume after any interruption, over tus 1.0 and HTTP.
//!
//! [`put`] is the client and [`serve`] is the server. [`tus`] has the parts of the protocol that both need.

pub mod put;
pub mod serve;
pub mod tus;
