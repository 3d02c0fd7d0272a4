//! Each mechanism of TCP that the simulator claims to have, with a test that fails without it (the
//! table is in `tests/README.md`).

#![allow(clippy::single_range_in_vec_init, reason = "SACK blocks are lists of ranges, also of one")]

#[path = "../script/mod.rs"]
mod script;

mod as_linux;
mod classic;
mod delivery_rate;
mod hooks;
mod host_queue;
mod lifecycle;
mod linux34;
mod linux_sender_traces;
mod linux_traces;
mod loss_detection;
mod pacing;
mod pair;
mod receiver_acks;
mod receiver_lifecycle;
mod receiver_window;
mod recovery;
mod reordering;
mod timeouts;
mod undo;
mod windows;
