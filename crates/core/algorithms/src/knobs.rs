// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The parameters of CUBIC.

/// `wakeai_rtt`'s `RTT_ref` (docs/decisions/004-rtt-ref.md).
const RTT_REF_MS: u32 = 200;

/// The tick of a kernel with 250 Hz, as in most distributions and phones.
const TICK_US: u32 = 4_000;

/// CUBIC's knobs, fixed for the life of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct Knobs {
    /// The factor of the window at a loss, in 1/1024, at most 1023. It is 0.7 in RFC 9438.
    pub beta_per_1024: u32,
    /// C of the curve in segments/s³, in 1/1024; 0.4 in RFC 9438. From 1 to 2^20.
    pub c_per_1024: u32,
    /// Fast convergence (RFC 9438 section 4.7).
    pub fast_convergence: bool,
    /// Whether `HyStart` may end slow start.
    pub hystart: bool,
    /// Whether `HyStart` ends slow start when the RTT has grown by a sixteenth instead of an eighth (Linux before 3.19).
    pub early_hystart: bool,
    /// The Reno-friendly region (RFC 9438 section 4.3); the name is that of Linux's module parameter.
    pub tcp_friendliness: bool,
    /// `RTT_ref`: the RTT at which the curve of `wakeai_rtt` is that of CUBIC. With 0, C is the
    /// same at every RTT.
    pub rtt_ref_ms: u32,
}

impl Default for Knobs {
    /// The values of Linux.
    fn default() -> Self {
        Self {
            beta_per_1024: 717,
            c_per_1024: 410,
            fast_convergence: true,
            hystart: true,
            early_hystart: false,
            tcp_friendliness: true,
            rtt_ref_ms: 0,
        }
    }
}

impl Knobs {
    /// The values of `wakeai_rtt`.
    pub fn rtt_fair() -> Self {
        Self { rtt_ref_ms: RTT_REF_MS, ..Self::default() }
    }

    /// The knobs as `struct wakeai_knobs` of `c/state.h`. Values out of range are set to the
    /// nearest valid value.
    pub(crate) fn to_raw(self) -> [u32; 8] {
        [
            self.beta_per_1024.min(1023),
            self.c_per_1024.clamp(1, 1 << 20),
            u32::from(self.fast_convergence),
            u32::from(self.hystart) * (1 + u32::from(self.early_hystart)),
            u32::from(self.tcp_friendliness),
            self.rtt_ref_ms,
            0, // in user space bounds do not expire
            TICK_US,
        ]
    }
}
