//! The packets that a sender and a receiver exchange, each in a datagram of its own.

use std::rc::Rc;

use wakeai_units::{Bytes, Duration};

/// The payload of a full datagram in bytes. Path MTU discovery (RFC 8899) ends there on a path for 1500 bytes in quinn,
/// which leaves room for IPv6. Here every full datagram has this size from the start.
const DATAGRAM: u16 = 1_452;
/// The payload of the datagrams of a handshake, which are padded (RFC 9000 section 14.1).
const HANDSHAKE: u16 = 1_200;
/// The short header with a connection ID of 8 bytes and a packet number of 2 (RFC 9000 section 17.3.1), and the tag of
/// the encryption (RFC 9001 section 5.3).
const PROTECTION: u16 = 1 + 8 + 2 + 16;
/// The header of a STREAM frame that fills its packet: type, stream and an offset of 4 bytes (RFC 9000 section 19.8).
const STREAM_HEADER: u16 = 1 + 1 + 4;
/// An ACK frame with one range: type, largest number, delay, count of ranges, first range, and the counts of packets with ECT(0),
/// with ECT(1) and with CE (RFC 9000 section 19.3).
const ACK_FRAME: u16 = 1 + 4 + 2 + 1 + 2 + 4 + 1 + 2;
/// A further range of an ACK frame: gap and length.
const ACK_RANGE: u16 = 1 + 2;

/// The bytes of the stream in a full packet.
pub const PAYLOAD: Bytes = Bytes::new((DATAGRAM - PROTECTION - STREAM_HEADER) as u64);

/// A packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    /// The first packet of the sender, which opens the connection.
    Hello,
    /// The receiver's answer to [`Self::Hello`].
    Answer,
    /// Data of the stream.
    Data(Data),
    /// An acknowledgement, which is not acknowledged itself.
    Ack(Rc<Ack>),
}

/// A packet with a part of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// The packet number. No number is used twice (RFC 9000 section 12.3).
    pub number: u64,
    /// The position of the part in the stream.
    pub offset: u64,
    /// The bytes of the part.
    pub len: u16,
    /// Whether the path has marked the datagram CE. All datagrams with data leave with ECT(0) (RFC 9000 section 13.4.2).
    pub is_marked: bool,
}

/// An acknowledgement (RFC 9000 section 19.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The received packet numbers: the first and the last of each range, from the largest numbers down.
    pub ranges: Vec<(u64, u64)>,
    /// The time for which the acknowledgement of the largest number was held back.
    pub delay: Duration,
    /// The number of packets that have arrived with CE (RFC 9000 section 19.3.2).
    pub marked: u64,
    /// The position up to which the stream may be sent (`MAX_STREAM_DATA`, RFC 9000 section 19.10).
    pub limit: u64,
}

impl Packet {
    /// The payload of the packet's datagram in bytes.
    pub fn datagram_len(&self) -> u16 {
        match self {
            Self::Hello | Self::Answer => HANDSHAKE,
            Self::Data(data) => PROTECTION + STREAM_HEADER + data.len,
            Self::Ack(ack) => {
                let more = ack.ranges.len().saturating_sub(1) as u16; // at most the receiver's limit
                PROTECTION + ACK_FRAME + more * ACK_RANGE
            }
        }
    }

    /// Whether the packet only acknowledges.
    pub fn is_ack(&self) -> bool {
        matches!(self, Self::Ack(_))
    }
}
