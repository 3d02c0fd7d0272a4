// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Congestion control in C, one source per algorithm. This crate compiles the sources for user
//! space, and the `kernel` crate compiles them to BPF.
//!
//! [`Algorithm`] is a sender's congestion control. As the kernel's TCP does, the sender keeps the
//! fields of its [`TcpSock`] up to date, and calls the hooks in the kernel's order:
//!
//! - before it reads `snd_cwnd` to send waiting segments: [`Algorithm::before_sending`];
//! - for each ACK, after the fields are up to date: [`Algorithm::on_ack`], or where it
//!   [`Algorithm::needs_rate`] [`Algorithm::on_rate_sample`], then it reads `snd_cwnd` and
//!   `sk_pacing_rate`;
//! - when a reduction begins: `prior_cwnd = snd_cwnd`, `prr_out = 0`, `snd_ssthresh =`
//!   [`Algorithm::ssthresh`], then [`Algorithm::set_state`]; after a timeout it also sets
//!   `snd_cwnd` to the segments in flight plus one, between these two calls;
//! - at every change of state: [`Algorithm::set_state`], which also stores the new state;
//! - when a reduction was a mistake: `snd_cwnd =` [`Algorithm::undo_cwnd`] and `undo_marker = 0`,
//!   then [`Algorithm::set_state`];
//! - when it sends a segment while nothing is in flight: [`Algorithm::after_idle`].
//!
//! A further algorithm needs its source in `c/`, its lines in `c/native/algorithms.c`, a line among the
//! exported hooks of `algorithm.rs` and a constructor.

mod algorithm;
mod knobs;
#[cfg(feature = "recorder")]
mod recorder;
mod sock;

pub use algorithm::Algorithm;
pub use knobs::Knobs;
#[cfg(feature = "recorder")]
pub use recorder::Call;
pub use sock::{RateSample, TcpSock};
