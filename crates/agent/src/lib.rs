//! The daemon of one station: it joins presence, laws and bounds on one Wi-Fi interface.

pub mod config;
pub mod key;
