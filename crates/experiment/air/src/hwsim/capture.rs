//! A capture of the air: pcap with radiotap headers (radiotap.org), for Wireshark and tshark.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use wakeai_units::Instant;

use super::frame::AirFrame;
use super::rates::Named;

/// The link type of frames with radiotap headers.
const RADIOTAP: u32 = 127;
/// The most bytes of a frame that are kept.
const SNAP: u32 = 4096;
/// The fields of our headers, as bits of the field "present": rate (of frames without MCS), channel, TX flags, data
/// retries, MCS (of HT) and VHT.
const RATE: u32 = 1 << 2;
const CHANNEL: u32 = 1 << 3;
const TX_FLAGS: u32 = 1 << 15;
const RETRIES: u32 = 1 << 17;
const MCS: u32 = 1 << 19;
const VHT: u32 = 1 << 21;
/// What is known of an MCS: bandwidth, the index itself, and the guard interval.
const MCS_KNOWN: u8 = 1 | 1 << 1 | 1 << 2;
/// What is known of VHT: guard interval and bandwidth.
const VHT_KNOWN: u16 = 1 << 2 | 1 << 6;
/// The flag of a short guard interval, which HT and VHT have at the same place.
const SHORT_GUARD: u8 = 1 << 2;
/// Flags of the channel: 2.4 GHz, 5 GHz.
const BAND_2: u16 = 0x80;
const BAND_5: u16 = 0x100;
/// The TX flag of a frame that was given up.
const FAILED: u16 = 1;

/// A file that is written while the medium runs.
#[derive(Debug)]
pub(crate) struct Capture {
    file: BufWriter<File>,
    /// The time of day at which the medium's clock was zero, in nanoseconds.
    epoch_ns: u128,
    /// The first error, after which nothing more is written.
    pub(crate) failed: Option<io::Error>,
}

impl Capture {
    /// Makes the file; it must not exist.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let mut file = BufWriter::new(File::create_new(path)?);
        let numbers: [u32; 6] = [0xa1b2_3c4d, 2 | 4 << 16, 0, 0, SNAP, RADIOTAP];
        for number in numbers {
            file.write_all(&number.to_le_bytes())?;
        }
        file.flush()?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Self { file, epoch_ns: since.as_nanos(), failed: None })
    }

    /// Writes a frame that has left its radio's queue at `at`, after this number of attempts.
    pub(crate) fn write(&mut self, at: Instant, frame: &AirFrame, attempts: u8, carried: bool) {
        if self.failed.is_none() {
            self.failed = self.try_write(at, frame, attempts, carried).err();
        }
    }

    fn try_write(
        &mut self,
        at: Instant,
        frame: &AirFrame,
        attempts: u8,
        carried: bool,
    ) -> io::Result<()> {
        let rate = frame.chain.at(attempts.saturating_sub(1)).named();
        let header = radiotap(rate, frame.frequency, attempts, carried);
        let time = self.epoch_ns + u128::from((at - Instant::ZERO).as_nanos());
        let length = (header.len() + frame.bytes.len()) as u32;
        let (seconds, nanos) = ((time / 1_000_000_000) as u32, (time % 1_000_000_000) as u32);
        for number in [seconds, nanos, length, length] {
            self.file.write_all(&number.to_le_bytes())?;
        }
        self.file.write_all(&header)?;
        self.file.write_all(&frame.bytes)
    }

    /// Writes what is still in memory.
    pub(crate) fn end(mut self) -> io::Result<()> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.file.flush(),
        }
    }
}

/// The header: version, pad, length, present; then the fields in the order of their bits, each aligned to its size.
fn radiotap(rate: Named, frequency: u32, attempts: u8, carried: bool) -> Vec<u8> {
    let of_rate = match rate {
        Named::Legacy { .. } => RATE,
        Named::Ht { .. } => MCS,
        Named::Vht { .. } => VHT,
    };
    let present = CHANNEL | TX_FLAGS | RETRIES | of_rate;
    let mut header = vec![0, 0, 0, 0];
    header.extend(present.to_le_bytes());
    if let Named::Legacy { half_mbps } = rate {
        header.extend([half_mbps, 0]); // and a pad: the channel is aligned to two bytes
    }
    header.extend((frequency as u16).to_le_bytes());
    header.extend(if frequency < 3_000 { BAND_2 } else { BAND_5 }.to_le_bytes());
    header.extend(if carried { 0 } else { FAILED }.to_le_bytes());
    header.push(attempts.saturating_sub(1));
    let guard = |short| if short { SHORT_GUARD } else { 0 };
    match rate {
        Named::Legacy { .. } => {}
        Named::Ht { index, wide, short_guard } => {
            header.extend([MCS_KNOWN, u8::from(wide) | guard(short_guard), index]);
        }
        Named::Vht { index, streams, width_code, short_guard } => {
            header.push(0); // a pad: the field is aligned to two bytes
            header.extend(VHT_KNOWN.to_le_bytes());
            header.extend([guard(short_guard), width_code, index << 4 | streams, 0, 0, 0]);
            header.extend([0; 4]); // of other users; coding, group and partial AID are not known
        }
    }
    let length = header.len() as u16;
    header[2..4].copy_from_slice(&length.to_le_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_header_has_the_length_that_it_says_and_the_fields_that_it_announces() {
        let legacy = radiotap(Named::Legacy { half_mbps: 108 }, 2412, 3, true);
        assert_eq!(legacy, [0, 0, 17, 0, 0x0c, 0x80, 2, 0, 108, 0, 0x6c, 9, 0x80, 0, 0, 0, 2]);
        let ht = Named::Ht { index: 7, wide: false, short_guard: true };
        let ht = radiotap(ht, 2412, 1, false);
        assert_eq!(ht, [0, 0, 18, 0, 8, 0x80, 10, 0, 0x6c, 9, 0x80, 0, 1, 0, 0, 7, 4, 7]);
        let vht = Named::Vht { index: 9, streams: 2, width_code: 4, short_guard: false };
        let vht = radiotap(vht, 5180, 1, true);
        let fields = [0x44, 0, 0, 4, 0x92, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!((vht.len(), &vht[16..]), (28, &fields[..]));
    }
}
