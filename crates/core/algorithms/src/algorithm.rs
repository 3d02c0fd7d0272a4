// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The congestion control of a connection by the hooks of an algorithm.

use std::ops::{Deref, DerefMut};

use wakeai_connection::CongestionState;

use crate::knobs::Knobs;
use crate::sock::{RateSample, TcpSock};

/// The congestion control of a connection. It dereferences to its [`TcpSock`]. The documentation of
/// this crate has the order of calls.
#[derive(Clone, Debug)]
pub struct Algorithm {
    sock: TcpSock,
    hooks: &'static Hooks,
}

impl Algorithm {
    /// Starts `wakeai_cubic` on a connection, or `wakeai_rtt` with [`Knobs::rtt_fair`]. Knobs out
    /// of range are set to the nearest valid value.
    pub fn cubic(sock: TcpSock, knobs: Knobs) -> Self {
        Self::start(&exported::wakeai_cubic, sock, knobs)
    }

    /// Starts `wakeai_reno` on a connection.
    pub fn reno(sock: TcpSock) -> Self {
        Self::start(&exported::wakeai_reno, sock, Knobs::default())
    }

    /// Starts `wakeai_av` on a connection; its target is [`TcpSock::target_rate`].
    pub fn av(sock: TcpSock) -> Self {
        Self::start(&exported::wakeai_av, sock, Knobs::default())
    }

    /// Starts `wakeai_compound` on a connection.
    pub fn compound(sock: TcpSock) -> Self {
        Self::start(&exported::wakeai_compound, sock, Knobs::default())
    }

    /// Starts `wakeai_bbr` on a connection. It sets [`TcpSock::sk_pacing_status`], and needs
    /// [`Self::on_rate_sample`].
    pub fn bbr(sock: TcpSock) -> Self {
        Self::start(&exported::wakeai_bbr, sock, Knobs::default())
    }

    /// Starts ns-3's CUBIC on a connection. It exists only in user space, for comparisons with
    /// ns-3.
    pub fn ns3_cubic(sock: TcpSock, knobs: Knobs) -> Self {
        Self::start(&exported::wakeai_ns3_cubic, sock, knobs)
    }

    /// Starts a stand-in that records the calls of its hooks.
    #[cfg(feature = "recorder")]
    pub fn recorder(sock: TcpSock) -> Self {
        Self::start(&exported::wakeai_recorder, sock, Knobs::default())
    }

    /// The calls of a [`Self::recorder`].
    #[cfg(feature = "recorder")]
    pub fn recorded(&self) -> Vec<crate::Call> {
        crate::recorder::recorded(&self.sock)
    }

    fn start(hooks: &'static Hooks, sock: TcpSock, knobs: Knobs) -> Self {
        let mut algorithm = Self { sock, hooks };
        algorithm.sock.knobs = knobs.to_raw();
        algorithm.sock.private = [0; 13];
        call!(algorithm.init());
        algorithm
    }

    /// Handles an ACK. It delivered `acked` segments, including selectively acknowledged ones, and
    /// showed `lost` new losses. `rtt_us` is its RTT sample; `None` where it gave no sample.
    pub fn on_ack(&mut self, acked: u32, lost: u32, rtt_us: Option<u32>) {
        self.on_rate_sample(&RateSample::without_rate(
            acked,
            lost,
            rtt_us.map(|rtt| rtt.min(1 << 30)),
        ));
    }

    /// Handles an ACK, with what it says about the delivery rate. Algorithms that do not use the rate take the
    /// same from it as from [`Self::on_ack`].
    pub fn on_rate_sample(&mut self, sample: &RateSample) {
        call!(self.on_ack(std::ptr::from_ref(sample)));
    }

    /// Whether the algorithm paces by itself, and needs samples of the delivery rate.
    pub fn needs_rate(&self) -> bool {
        self.hooks.paces != 0
    }

    /// Starts the algorithm anew. An algorithm that needs the delivery rate starts when the connection is
    /// established, as in the kernel; before, the RTT is not known.
    pub fn restart(&mut self) {
        self.sock.private = [0; 13];
        call!(self.init());
    }

    /// The slow-start threshold after a reduction that begins now.
    pub fn ssthresh(&mut self) -> u32 {
        call!(self.ssthresh())
    }

    /// The window after a reduction is undone.
    pub fn undo_cwnd(&mut self) -> u32 {
        call!(self.undo_cwnd())
    }

    /// The congestion state changes to `next`.
    pub fn set_state(&mut self, next: CongestionState) {
        call!(self.set_state(next.number()));
        self.sock.ca_state = next as u32;
    }

    /// Call it when segments wait to be sent, before [`TcpSock::snd_cwnd`] is read. It has an
    /// effect only while nothing is outstanding.
    pub fn before_sending(&mut self) {
        call!(self.before_sending());
    }

    /// Call it when a segment is sent with nothing in flight, before [`TcpSock::last_sent_us`] is
    /// updated.
    pub fn after_idle(&mut self) {
        call!(self.after_idle());
    }

    /// K in microseconds, with a resolution of 1/1024 s. K is the time from the start of a stage of
    /// congestion avoidance until the curve of CUBIC reaches `W_max` (RFC 9438 equation 2). With
    /// [`Knobs::rtt_fair`] it is the K' of Kozu et al., equation 3. `None` outside of such a stage,
    /// and for an algorithm without a curve.
    pub fn k_us(&self) -> Option<u32> {
        /// `NO_K` of `c/cubic_state.h`.
        const NO_K: u32 = u32::MAX;
        let k_q10 = self.hooks.k_q10?;
        #[allow(unsafe_code, reason = "the algorithms are C")]
        // SAFETY: as in `call`; it only reads.
        let k = unsafe { k_q10(&raw const self.sock) };
        // K is below 2^21 (cube_root), so this is below 2^31.
        (k != NO_K).then(|| (u64::from(k) * 15_625 / 16) as u32)
    }

    /// Ends the algorithm, and returns the state of the connection.
    pub fn release(mut self) -> TcpSock {
        call!(self.release());
        self.sock
    }
}

impl Deref for Algorithm {
    type Target = TcpSock;

    fn deref(&self) -> &TcpSock {
        &self.sock
    }
}

impl DerefMut for Algorithm {
    fn deref_mut(&mut self) -> &mut TcpSock {
        &mut self.sock
    }
}

/// The table of an algorithm's hooks: `struct wakeai_hooks` of `c/native/hooks.h`.
#[repr(C)]
#[derive(Debug)]
struct Hooks {
    init: Simple,
    release: Simple,
    on_ack: unsafe extern "C" fn(sk: *mut TcpSock, rs: *const RateSample),
    ssthresh: Window,
    undo_cwnd: Window,
    set_state: unsafe extern "C" fn(sk: *mut TcpSock, next: u8),
    before_sending: Simple,
    after_idle: Simple,
    k_q10: Option<unsafe extern "C" fn(sk: *const TcpSock) -> u32>,
    paces: u32,
}

type Simple = unsafe extern "C" fn(sk: *mut TcpSock);
type Window = unsafe extern "C" fn(sk: *mut TcpSock) -> u32;

#[allow(unsafe_code, reason = "the algorithms are C")]
mod exported {
    use super::Hooks;

    // SAFETY: each is a constant that EXPORT_HOOKS defines.
    unsafe extern "C" {
        pub(super) safe static wakeai_cubic: Hooks;
        pub(super) safe static wakeai_reno: Hooks;
        pub(super) safe static wakeai_av: Hooks;
        pub(super) safe static wakeai_compound: Hooks;
        pub(super) safe static wakeai_bbr: Hooks;
        pub(super) safe static wakeai_ns3_cubic: Hooks;
        #[cfg(feature = "recorder")]
        pub(super) safe static wakeai_recorder: Hooks;
    }
}

/// Calls a hook.
macro_rules! call {
    ($algorithm:ident.$hook:ident($($argument:expr),*)) => {{
        #[allow(unsafe_code, reason = "the algorithms are C")]
        // SAFETY: the hooks read and write nothing but the `TcpSock` they are given, which is laid
        // out as in shim.h; they keep no pointer, and any value of its fields is allowed.
        unsafe { ($algorithm.hooks.$hook)(&raw mut $algorithm.sock $(, $argument)*) }
    }};
}
use call;
