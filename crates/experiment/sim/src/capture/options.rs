//! The options of TCP headers, laid out as in Linux; [`Segment::packet_len`] counts the same bytes.

use wakeai_tcp::{Segment, SynOptions, Timestamp};

const NO_OPERATION: u8 = 1;
/// RFC 9293 section 3.7.1.
const MAXIMUM_SEGMENT_SIZE: u8 = 2;
/// RFC 7323 section 2.2.
const WINDOW_SCALE: u8 = 3;
/// RFC 2018 section 2.
const SACK_PERMITTED: u8 = 4;
/// RFC 2018 section 3.
const SACK: u8 = 5;
/// RFC 7323 section 3.2.
const TIMESTAMPS: u8 = 8;

pub(super) fn write(packet: &mut Vec<u8>, segment: &Segment) {
    let negotiated = if segment.flags.syn { segment.options } else { SynOptions::default() };
    if let Some(mss) = negotiated.mss {
        packet.extend([MAXIMUM_SEGMENT_SIZE, 4]);
        packet.extend(mss.to_be_bytes());
    }
    if negotiated.sack_permitted {
        pad(packet, if segment.timestamp.is_some() { 0 } else { 2 });
        packet.extend([SACK_PERMITTED, 2]);
    }
    if let Some(Timestamp { value, echo }) = segment.timestamp {
        pad(packet, if negotiated.sack_permitted { 0 } else { 2 });
        packet.extend([TIMESTAMPS, 10]);
        packet.extend(value.to_be_bytes());
        packet.extend(echo.to_be_bytes());
    }
    if let Some(scale) = negotiated.window_scale {
        pad(packet, 1);
        packet.extend([WINDOW_SCALE, 3, scale]);
    }
    if !segment.sack.is_empty() {
        pad(packet, 2);
        packet.extend([SACK, 2 + 8 * segment.sack.len() as u8]); // at most three blocks
        for (start, end) in segment.sack.iter() {
            packet.extend((start as u32).to_be_bytes());
            packet.extend((end as u32).to_be_bytes());
        }
    }
}

fn pad(packet: &mut Vec<u8>, count: usize) {
    packet.extend(std::iter::repeat_n(NO_OPERATION, count));
}

#[cfg(test)]
mod tests {
    use wakeai_tcp::Flags;

    use super::*;

    fn written(segment: &Segment) -> Vec<u8> {
        let mut options = Vec::new();
        write(&mut options, segment);
        assert_eq!(40 + options.len(), segment.packet_len());
        options
    }

    #[test]
    fn a_syn_offers_what_linux_offers() {
        let options = SynOptions { mss: Some(1_460), window_scale: Some(10), sack_permitted: true };
        let timestamp = Some(Timestamp { value: 0x0102_0304, echo: 0 });
        let syn = Segment { flags: Flags::SYN, options, timestamp, ..Segment::default() };
        assert_eq!(
            written(&syn),
            [2, 4, 5, 0xB4, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 10]
        );
        assert_eq!(
            written(&Segment { timestamp: None, ..syn }),
            [2, 4, 5, 0xB4, 1, 1, 4, 2, 1, 3, 3, 10]
        );
        let plain = SynOptions { sack_permitted: false, ..SynOptions::default() };
        assert_eq!(written(&Segment { options: plain, ..syn })[..4], [1, 1, 8, 10]);
        assert_eq!(written(&Segment { flags: Flags::ACK, ..syn })[..4], [1, 1, 8, 10]);
    }

    #[test]
    fn blocks_wrap_as_positions_do() {
        let sack = [(3, 4), ((1 << 32) - 1, (1 << 32) + 1)].into_iter().collect();
        let ack = Segment { flags: Flags::ACK, sack, ..Segment::default() };
        assert_eq!(
            written(&ack),
            [1, 1, 5, 18, 0, 0, 0, 3, 0, 0, 0, 4, 255, 255, 255, 255, 0, 0, 0, 1]
        );
    }
}
