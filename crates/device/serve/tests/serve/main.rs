//! The server, over real connections and with real files.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]

mod answers;
mod attacks;
mod browsers;
mod crowds;
mod extensions;
mod interrupted;
mod limits;
mod names;
mod proxied;
mod rules;
mod secured;
mod storage;
mod support;
