//! The segments that a sender and a receiver exchange.

use std::ops::Deref;

use wakeai_units::Instant;

/// Bytes of an IPv4 header without options.
const IP_HEADER: usize = 20;
/// Bytes of a TCP header without options.
const TCP_HEADER: usize = 20;

/// A TCP segment without its bytes.
///
/// Sequence numbers are positions in the stream, counted from 0 for each direction: the SYN is
/// position 0, data begins at 1, and the FIN comes after the last byte. They never wrap. On the
/// wire only their low 32 bits are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// The position of the first byte; without a byte, the position of the SYN or FIN.
    pub seq: u64,
    /// The next position that is expected from the other end; valid only with `flags.ack`.
    pub ack: u64,
    /// The number of bytes that may be sent from `ack` on, as the window scale has rounded it (RFC
    /// 7323 section 2.3). The window of a SYN is not scaled.
    pub window: u64,
    /// Selective acknowledgement.
    pub sack: SackBlocks,
    /// Payload bytes.
    pub len: u32,
    /// The timestamps option (RFC 7323 section 3).
    pub timestamp: Option<Timestamp>,
    /// The options of a SYN; unused on other segments.
    pub options: SynOptions,
    /// SYN, ACK, FIN, RST and PSH.
    pub flags: Flags,
}

impl Segment {
    /// The position after everything that the segment carries: its SYN, its bytes, its FIN.
    pub fn end(&self) -> u64 {
        self.seq + u64::from(self.len) + u64::from(self.flags.syn) + u64::from(self.flags.fin)
    }

    /// The length of the IPv4 packet that the medium carries, including headers and options.
    pub fn packet_len(&self) -> usize {
        IP_HEADER + TCP_HEADER + self.options_len() + self.len as usize
    }

    /// The length of the options. They are laid out as in Linux, each kind padded to 4 bytes. In a
    /// SYN, "SACK permitted" takes the place of the padding before the timestamps.
    fn options_len(&self) -> usize {
        let timestamp = if self.timestamp.is_some() { 12 } else { 0 };
        let sack = if self.sack.is_empty() { 0 } else { 4 + 8 * self.sack.len() };
        let negotiated =
            if self.flags.syn { self.options.len(self.timestamp.is_some()) } else { 0 };
        timestamp + sack + negotiated
    }
}

/// The control bits that are used here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent bits of the header")]
pub struct Flags {
    /// Opens a direction. It takes one position.
    pub syn: bool,
    /// The acknowledgement number is valid.
    pub ack: bool,
    /// The last segment of this direction; takes one position.
    pub fin: bool,
    /// The connection does not exist any more.
    pub rst: bool,
    /// The sender has no data after this segment's (RFC 9293 section 3.9.1.2): it ends a write of
    /// the application.
    pub psh: bool,
}

impl Flags {
    /// No control bit.
    pub const NONE: Self = Self { syn: false, ack: false, fin: false, rst: false, psh: false };
    /// The flags of the segment that opens a connection.
    pub const SYN: Self = Self { syn: true, ..Self::NONE };
    /// The flags of the answer to a SYN.
    pub const SYN_ACK: Self = Self { syn: true, ..Self::ACK };
    /// The flags of data and of acknowledgements.
    pub const ACK: Self = Self { ack: true, ..Self::NONE };
    /// The flags of the last segment of a direction.
    pub const FIN_ACK: Self = Self { fin: true, ..Self::ACK };
    /// The flags of an abort.
    pub const RST: Self = Self { rst: true, ..Self::NONE };
}

/// The timestamps option, in ticks of a millisecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Timestamp {
    /// The clock of the end that sends the segment.
    pub value: u32,
    /// The other end's clock, copied from the segment that this segment answers.
    pub echo: u32,
}

impl Timestamp {
    /// The bytes of the option in each segment. The announced maximum segment size includes them.
    pub(crate) const OPTION_LEN: u32 = 12;

    /// The clock of an end's timestamps. It is 0 only when it wraps, because 0 stands for no echo.
    pub(crate) fn clock_ms(at: Instant) -> u32 {
        (at.as_nanos() / 1_000_000 + 1) as u32
    }
}

/// The options that a SYN offers or accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SynOptions {
    /// The largest payload without options that may be sent here (RFC 9293 section 3.7.1).
    pub mss: Option<u16>,
    /// Bits by which the windows of later segments are shifted (RFC 7323 section 2), at most 14.
    pub window_scale: Option<u8>,
    /// Selective acknowledgements are understood (RFC 2018 section 2).
    pub sack_permitted: bool,
}

impl SynOptions {
    /// The bytes on the wire, not counting the timestamps.
    fn len(self, with_timestamps: bool) -> usize {
        let mss = if self.mss.is_some() { 4 } else { 0 };
        let scale = if self.window_scale.is_some() { 4 } else { 0 };
        let sack = if self.sack_permitted && !with_timestamps { 4 } else { 0 };
        mss + scale + sack
    }
}

/// The most blocks that a header has room for beside timestamps (RFC 2018 section 3).
pub const MAX_SACK_BLOCKS: usize = 3;

/// The blocks of a SACK option, each from its first position to the position after its last.
///
/// The most recently changed block comes first (RFC 2018 section 4). Where this block lies below
/// the segment's `ack` or inside the second block, it is a D-SACK: it reports data that arrived
/// twice (RFC 2883 section 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [(u64, u64); MAX_SACK_BLOCKS],
    len: u8,
}

impl SackBlocks {
    /// No block.
    pub const NONE: Self = Self { blocks: [(0, 0); MAX_SACK_BLOCKS], len: 0 };
}

impl Deref for SackBlocks {
    type Target = [(u64, u64)];

    fn deref(&self) -> &Self::Target {
        &self.blocks[..usize::from(self.len)]
    }
}

impl FromIterator<(u64, u64)> for SackBlocks {
    /// Takes the first [`MAX_SACK_BLOCKS`] blocks.
    fn from_iter<I: IntoIterator<Item = (u64, u64)>>(blocks: I) -> Self {
        let mut all = Self::NONE;
        for (place, (start, end)) in all.blocks.iter_mut().zip(blocks) {
            debug_assert!(start < end, "a block holds at least a byte");
            *place = (start, end);
            all.len += 1;
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINUX: SynOptions =
        SynOptions { mss: Some(1460), window_scale: Some(10), sack_permitted: true };

    #[test]
    fn packets_are_as_long_as_those_of_linux() {
        let stamped = Segment {
            flags: Flags::ACK,
            timestamp: Some(Timestamp::default()),
            ..Segment::default()
        };
        let syn = Segment { flags: Flags::SYN, options: LINUX, ..stamped };
        let data = Segment { len: 1448, ..stamped };
        let sack = |blocks: u64| (1..=blocks).map(|n| (10 * n, 10 * n + 5)).collect();
        assert_eq!(syn.packet_len(), 60);
        assert_eq!(Segment { timestamp: None, ..syn }.packet_len(), 52);
        assert_eq!(stamped.packet_len(), 52);
        assert_eq!(data.packet_len(), 1500);
        assert_eq!(Segment { sack: sack(1), ..stamped }.packet_len(), 64);
        assert_eq!(Segment { sack: sack(3), ..stamped }.packet_len(), 80);
    }

    #[test]
    fn a_segment_is_small_enough_to_be_moved_by_value() {
        assert!(size_of::<Segment>() <= 112, "{}", size_of::<Segment>());
    }

    #[test]
    fn a_syn_and_a_fin_take_one_position_each() {
        let data = Segment { seq: 1, len: 10, flags: Flags::ACK, ..Segment::default() };
        assert_eq!(data.end(), 11);
        assert_eq!(Segment { flags: Flags::FIN_ACK, ..data }.end(), 12);
        assert_eq!(Segment { flags: Flags::SYN, ..Segment::default() }.end(), 1);
    }

    #[test]
    fn no_fourth_block_fits() {
        let blocks: SackBlocks = (0..4).map(|n| (10 * n, 10 * n + 1)).collect();
        assert_eq!(*blocks, [(0, 1), (10, 11), (20, 21)]);
    }
}
