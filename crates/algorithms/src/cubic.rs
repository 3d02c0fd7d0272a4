// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `wakeai_cubic` in user space.

use std::ops::{Deref, DerefMut};

use crate::sock::{State, TcpSock};

/// What is fixed for the life of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Knobs {
    /// What a loss leaves of the window, in 1/1024; RFC 9438 says 0.7. At most 1023.
    pub beta_per_1024: u32,
    /// The curve's C in segments/s³, in 1/1024; RFC 9438 says 0.4. From 1 to 2^20.
    pub c_per_1024: u32,
    /// Fast convergence (RFC 9438 section 4.7).
    pub fast_convergence: bool,
    /// `HyStart`.
    pub hystart: bool,
}

impl Default for Knobs {
    /// As in Linux.
    fn default() -> Self {
        Self { beta_per_1024: 717, c_per_1024: 410, fast_convergence: true, hystart: true }
    }
}

/// A connection's `wakeai_cubic`. Its [`TcpSock`] is what it dereferences to; the order of calls
/// is in the crate's documentation.
#[derive(Clone, Debug)]
pub struct Cubic {
    sock: TcpSock,
}

impl Cubic {
    /// Starts the algorithm on a connection. Knobs out of range are taken to the nearest value
    /// that is in it.
    pub fn new(sock: TcpSock, knobs: Knobs) -> Self {
        let mut cubic = Self { sock };
        cubic.sock.knobs = [
            knobs.beta_per_1024.min(1023),
            knobs.c_per_1024.clamp(1, 1 << 20),
            u32::from(knobs.fast_convergence),
            u32::from(knobs.hystart),
            0,
            0,
        ];
        cubic.sock.private = [0; 13];
        cubic.call(|sock| native!(wakeai_cubic_init(sock)));
        cubic
    }

    /// An ACK came: `acked` segments were delivered by it, selectively acknowledged ones included,
    /// `lost` newly taken for lost; `rtt_us` is its RTT sample, if it gave one.
    pub fn on_ack(&mut self, acked: u32, lost: u32, rtt_us: Option<u32>) {
        let rtt_us = rtt_us.map_or(-1, |rtt| i32::try_from(rtt).unwrap_or(i32::MAX));
        self.call(|sock| native!(wakeai_cubic_on_ack(sock, acked, lost, rtt_us)));
    }

    /// The slow-start threshold after a reduction that begins now.
    pub fn ssthresh(&mut self) -> u32 {
        self.call(|sock| native!(wakeai_cubic_ssthresh(sock)))
    }

    /// The window after a reduction is taken back.
    pub fn undo_cwnd(&mut self) -> u32 {
        self.call(|sock| native!(wakeai_cubic_undo_cwnd(sock)))
    }

    /// The congestion state changes to `next`.
    pub fn set_state(&mut self, next: State) {
        self.call(|sock| native!(wakeai_cubic_set_state(sock, next as u8)));
        self.sock.ca_state = next as u32;
    }

    /// The first segment after nothing was in flight is about to leave.
    pub fn after_idle(&mut self) {
        self.call(|sock| native!(wakeai_cubic_after_idle(sock)));
    }

    /// The algorithm leaves the connection.
    pub fn release(mut self) -> TcpSock {
        self.call(|sock| native!(wakeai_cubic_release(sock)));
        self.sock
    }

    fn call<T>(&mut self, hook: impl FnOnce(&mut TcpSock) -> T) -> T {
        hook(&mut self.sock)
    }
}

impl Deref for Cubic {
    type Target = TcpSock;

    fn deref(&self) -> &TcpSock {
        &self.sock
    }
}

impl DerefMut for Cubic {
    fn deref_mut(&mut self) -> &mut TcpSock {
        &mut self.sock
    }
}

/// Calls a hook of `c/native/wakeai_cubic.c`.
macro_rules! native {
    ($hook:ident($($argument:expr),*)) => {{
        #[allow(unsafe_code, reason = "the algorithm is C")]
        // SAFETY: the hooks read and write nothing but the `TcpSock` they are given, which is laid
        // out as in shim.h; they keep no pointer, and any value of its fields is allowed.
        unsafe { ffi::$hook($($argument),*) }
    }};
}
use native;

mod ffi {
    use super::TcpSock;

    #[allow(unsafe_code, reason = "the algorithm is C")]
    // SAFETY: the signatures are those of c/native/wakeai_cubic.c.
    unsafe extern "C" {
        pub(super) fn wakeai_cubic_init(sk: *mut TcpSock);
        pub(super) fn wakeai_cubic_release(sk: *mut TcpSock);
        pub(super) fn wakeai_cubic_on_ack(sk: *mut TcpSock, acked: u32, lost: u32, rtt_us: i32);
        pub(super) fn wakeai_cubic_ssthresh(sk: *mut TcpSock) -> u32;
        pub(super) fn wakeai_cubic_undo_cwnd(sk: *mut TcpSock) -> u32;
        pub(super) fn wakeai_cubic_set_state(sk: *mut TcpSock, next: u8);
        pub(super) fn wakeai_cubic_after_idle(sk: *mut TcpSock);
    }
}
