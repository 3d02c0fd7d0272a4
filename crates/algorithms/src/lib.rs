// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Congestion control in C, one source per algorithm, here compiled for user space. The `kernel`
//! crate compiles the same source to BPF.
//!
//! [`Cubic`] is a sender's `wakeai_cubic`. The sender keeps the fields of its [`TcpSock`] true, as
//! the kernel's TCP does, and calls the hooks in the kernel's order:
//!
//! - per ACK, after the fields are up to date: [`Cubic::on_ack`], then it reads `snd_cwnd` and
//!   `sk_pacing_rate`;
//! - when a reduction begins: `prior_cwnd = snd_cwnd`, `prr_out = 0`, `snd_ssthresh =`
//!   [`Cubic::ssthresh`], then [`Cubic::set_state`]; after a timeout it sets `snd_cwnd` itself, to
//!   what is in flight plus one, between the two;
//! - on every change of state, [`Cubic::set_state`], which also stores the new one;
//! - when a reduction was a mistake: `snd_cwnd =` [`Cubic::undo_cwnd`] and `undo_marker = 0`, then
//!   [`Cubic::set_state`];
//! - before the first segment after nothing was in flight: [`Cubic::after_idle`].

mod cubic;
mod sock;

pub use cubic::{Cubic, Knobs};
pub use sock::{INFINITE_SSTHRESH, State, TcpSock};
