//! The server, over real connections and with real files.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]

mod attacks;
mod crowds;
mod extensions;
mod interrupted;
mod limits;
mod names;
mod secured;
mod support;
