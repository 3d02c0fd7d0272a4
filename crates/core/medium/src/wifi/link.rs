//! The link between a station and the access point: its rates, and the times of its control frames.

use wakeai_units::{Duration, Rate};
use wakeai_wifi::{Bss, DSSS_RATES, LONGEST_PPDU, Mode, Protection, Standard, StationRadio};

use super::config::WifiStationConfig;
use super::frames::{Framing, Limits};
use super::phy::PhyRate;
use crate::error::ConfigError;

/// The lengths of control frames in bytes (802.11-2020 9.3.1.2 to 9.3.1.4).
const RTS: u32 = 20;
const CTS: u32 = 14;
pub(crate) const ACK: u32 = 14;
/// A compressed `BlockAckReq` (9.3.1.7).
const BLOCK_ACK_REQ: u32 = 24;
/// The lengths of a compressed BlockAck with a bitmap for 64 frames, and for 256 frames (9.3.1.8.2,
/// 802.11ax).
const BLOCK_ACK_64: u32 = 32;
const BLOCK_ACK_256: u32 = 56;

/// One station's link, the same in both directions.
#[derive(Clone, Debug)]
pub(crate) struct StationLink {
    pub(crate) standard: Standard,
    pub(crate) rate: PhyRate,
    pub(crate) limits: Limits,
    /// Data frames whose PSDU (data field) is longer than this are protected by RTS or CTS, bytes.
    pub(crate) protected_above: u32,
    /// The duration of the frames before a protected data frame, with the SIFS (short interframe
    /// space) after each.
    pub(crate) lead: Duration,
    /// The part of `lead` in which a frame is on the air.
    pub(crate) lead_frames: Duration,
    /// The duration of an RTS, where it is used. In a collision its sender has sent nothing else.
    pub(crate) rts: Option<Duration>,
    ack: Duration,
    block_ack: Duration,
    /// The duration of a `BlockAckReq`.
    pub(crate) block_ack_req: Duration,
    /// The share of damaged MPDUs (frames of an aggregate), in parts per million.
    pub(crate) frame_error_ppm: u32,
    /// The most packets in the station's queue.
    pub(crate) queue: usize,
}

impl StationLink {
    pub(crate) fn new(station: &WifiStationConfig, bss: &Bss) -> Result<Self, ConfigError> {
        let WifiStationConfig {
            access_point: _,
            zone: _,
            radio,
            queue,
            host_queue: _,
            frame_error_ppm,
            wired_delay: _,
        } = *station;
        let StationRadio { standard, rate: data_rate, contention: _ } = radio;
        let mode = bss.mode(standard, data_rate).ok_or_else(|| ConfigError::Rate {
            what: "rate",
            standard,
            found: data_rate,
            allowed: names(&bss.rates(standard)),
        })?;
        let rate = with_preamble(PhyRate::new(&mode, standard), bss);
        let control = legacy("control_rate", standard, bss.control_rate_for(data_rate))?;
        let control = with_preamble(control, bss);
        let [rts, cts, ack] = [RTS, CTS, ACK].map(|bytes| control.duration(bytes));
        let sifs = standard.sifs();
        let (lead, lead_frames) = match bss.protection {
            Protection::None => (Duration::ZERO, Duration::ZERO),
            Protection::CtsToSelf => (cts + sifs, cts),
            Protection::RtsCts => (rts + sifs + cts + sifs, rts + cts),
        };
        let subframes = bss.subframes_of(standard);
        let most_bytes = u32::try_from(bss.ampdu_of(standard).get()).unwrap_or(u32::MAX);
        Ok(Self {
            standard,
            rate,
            limits: Limits {
                framing: Framing::of(standard),
                subframes: usize::from(subframes),
                psdu: most_bytes.min(rate.longest_psdu(LONGEST_PPDU)),
                amsdu: u32::try_from(bss.amsdu_of(standard).get()).unwrap_or(u32::MAX),
            },
            protected_above: match bss.protection {
                Protection::RtsCts => u32::try_from(bss.rts_threshold.get()).unwrap_or(u32::MAX),
                // CTS-to-self is for older stations, which cannot decode the data frame. So it
                // precedes a data frame of any length. Without protection no frame precedes the
                // data frame.
                Protection::None | Protection::CtsToSelf => 0,
            },
            lead,
            lead_frames,
            rts: (bss.protection == Protection::RtsCts).then_some(rts),
            ack,
            block_ack: control.duration(if subframes > 64 { BLOCK_ACK_256 } else { BLOCK_ACK_64 }),
            block_ack_req: control.duration(BLOCK_ACK_REQ),
            frame_error_ppm,
            queue,
        })
    }

    /// The same link for frames whose sender has chosen their modulation.
    pub(crate) fn modulated(&self, mode: Mode, bss: &Bss) -> Self {
        let standard = mode.standard;
        let rate = PhyRate::new(&mode, self.standard);
        let control = match standard {
            Standard::B => Mode::legacy(standard, mode.rate().min(DSSS_RATES[1])),
            _ => Mode::legacy(bss.standard, bss.control_rate_for(mode.rate())),
        };
        let control = control.map_or(rate, |mode| PhyRate::new(&mode, self.standard));
        let most_bytes = u32::try_from(bss.ampdu_of(standard).get()).unwrap_or(u32::MAX);
        let subframes = bss.subframes_of(standard);
        Self {
            rate,
            limits: Limits {
                framing: Framing::of(standard),
                subframes: usize::from(subframes),
                psdu: most_bytes.min(rate.longest_psdu(LONGEST_PPDU)),
                amsdu: 0,
            },
            ack: control.duration(ACK),
            block_ack: control.duration(if subframes > 64 { BLOCK_ACK_256 } else { BLOCK_ACK_64 }),
            block_ack_req: control.duration(BLOCK_ACK_REQ),
            ..self.clone()
        }
    }

    /// The duration of the answer to a data frame of `mpdus` MPDUs. The answer is an ACK to one
    /// MPDU, and a BlockAck to several.
    pub(crate) fn answer(&self, mpdus: usize) -> Duration {
        if mpdus > 1 { self.block_ack } else { self.ack }
    }

    /// The limits of a data frame that has to end within `left`, together with its answer.
    pub(crate) fn limits_within(&self, left: Duration) -> Limits {
        let data = left.saturating_sub(self.standard.sifs() + self.block_ack);
        let psdu = self.limits.psdu.min(self.rate.longest_psdu(data));
        Limits { psdu, ..self.limits }
    }
}

/// The rate with the preamble of the BSS.
fn with_preamble(rate: PhyRate, bss: &Bss) -> PhyRate {
    if bss.short_preamble { rate.with_short_preamble() } else { rate }
}

/// The PHY rate of broadcasts or control frames: non-HT OFDM in every standard but 802.11b.
fn legacy(what: &'static str, standard: Standard, rate: Rate) -> Result<PhyRate, ConfigError> {
    let mode = Mode::legacy(standard, rate).ok_or_else(|| {
        let allowed = names(standard.legacy_rates());
        ConfigError::Rate { what, standard, found: rate, allowed }
    })?;
    Ok(PhyRate::new(&mode, standard))
}

fn names(rates: &[Rate]) -> String {
    rates.iter().map(Rate::to_string).collect::<Vec<_>>().join(", ")
}

/// aRxPHYStartDelay: the preamble and SIGNAL of the answer, which is a non-HT frame (17.4.4), or its preamble and
/// header in 802.11b (16.3.3).
fn rx_phy_start_delay(bss: &Bss) -> Duration {
    match (bss.standard, bss.short_preamble) {
        (Standard::B, false) => Duration::from_micros(192),
        (Standard::B, true) => Duration::from_micros(96),
        _ => Duration::from_micros(20),
    }
}

/// The times and settings that all stations of the BSS share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Common {
    pub(crate) sifs: Duration,
    pub(crate) slot: Duration,
    pub(crate) broadcast: PhyRate,
    /// aRxPHYStartDelay.
    pub(crate) rx_start_delay: Duration,
    /// ACKTimeout and CTSTimeout, counted from the end of the frame (10.3.2.9, 10.3.2.11).
    pub(crate) answer_timeout: Duration,
    /// EIFS (the wait after a damaged frame) less DIFS (the usual wait): SIFS and an ACK at the
    /// lowest rate (10.3.2.3.7).
    pub(crate) eifs_extra: Duration,
}

impl Common {
    pub(crate) fn new(bss: &Bss) -> Result<Self, ConfigError> {
        let Bss { standard, basic_rate, .. } = *bss;
        let (sifs, slot) = (standard.sifs(), standard.slot());
        let lowest = legacy("rate", standard, standard.legacy_rates()[0])?;
        Ok(Self {
            sifs,
            slot,
            broadcast: with_preamble(legacy("basic_rate", standard, basic_rate)?, bss),
            rx_start_delay: rx_phy_start_delay(bss),
            answer_timeout: sifs + slot + rx_phy_start_delay(bss),
            eifs_extra: sifs + lowest.duration(ACK),
        })
    }
}
