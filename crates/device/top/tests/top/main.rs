//! The screen and its recordings, without a machine.

#![allow(clippy::unwrap_used, reason = "a test stops where something fails")]

mod pictures;
mod recordings;
mod screens;
mod support;
