// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The table of an algorithm's hooks; mirrors `c/native/hooks.h`.

use crate::sock::TcpSock;

/// `struct wakeai_hooks`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Hooks {
    pub(crate) init: Simple,
    pub(crate) release: Simple,
    pub(crate) on_ack: unsafe extern "C" fn(sk: *mut TcpSock, acked: u32, lost: u32, rtt_us: i32),
    pub(crate) ssthresh: Window,
    pub(crate) undo_cwnd: Window,
    pub(crate) set_state: unsafe extern "C" fn(sk: *mut TcpSock, next: u8),
    pub(crate) before_sending: Simple,
    pub(crate) after_idle: Simple,
    pub(crate) k_q10: Option<unsafe extern "C" fn(sk: *const TcpSock) -> u32>,
}

type Simple = unsafe extern "C" fn(sk: *mut TcpSock);
type Window = unsafe extern "C" fn(sk: *mut TcpSock) -> u32;

#[allow(unsafe_code, reason = "the algorithms are C")]
mod exported {
    use super::Hooks;

    // SAFETY: each is what EXPORT_HOOKS makes, a constant.
    unsafe extern "C" {
        pub(super) safe static wakeai_cubic: Hooks;
        pub(super) safe static wakeai_reno: Hooks;
        pub(super) safe static wakeai_av: Hooks;
        pub(super) safe static wakeai_compound: Hooks;
        pub(super) safe static wakeai_ns3_cubic: Hooks;
        #[cfg(feature = "recorder")]
        pub(super) safe static wakeai_recorder: Hooks;
    }
}

/// `c/wakeai_cubic.c`
pub(crate) fn cubic() -> &'static Hooks {
    &exported::wakeai_cubic
}

/// `c/wakeai_reno.c`
pub(crate) fn reno() -> &'static Hooks {
    &exported::wakeai_reno
}

/// `c/wakeai_av.c`
pub(crate) fn av() -> &'static Hooks {
    &exported::wakeai_av
}

/// `c/wakeai_compound.c`
pub(crate) fn compound() -> &'static Hooks {
    &exported::wakeai_compound
}

/// `c/native/ns3_cubic.c`
pub(crate) fn ns3_cubic() -> &'static Hooks {
    &exported::wakeai_ns3_cubic
}

/// `c/native/recorder.c`
#[cfg(feature = "recorder")]
pub(crate) fn recorder() -> &'static Hooks {
    &exported::wakeai_recorder
}
