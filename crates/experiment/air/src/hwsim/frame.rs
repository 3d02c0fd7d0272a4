//! Frames of 802.11, as far as the medium looks into them (802.11-2020 clause 9).

use std::rc::Rc;

use wakeai_medium::Packet;
use wakeai_wifi::Mode;

use super::Address;
use super::message::{SentFrame, TriedRates};
use super::rates;

/// The header of a frame with three addresses. The driver takes none shorter.
pub(crate) const SHORTEST: usize = 24;
/// The longest frame that the driver takes.
pub(crate) const LONGEST: usize = 2304;
/// Frame check sequence, which the driver leaves out.
const FCS: usize = 4;
/// LLC and SNAP headers.
const LLC_SNAP: usize = 8;

const MANAGEMENT: u8 = 0;
const DATA: u8 = 2;
const ACTION: u8 = 13;
/// The category Block Ack of action frames, and two of its actions (9.6.4).
const BLOCK_ACK: u8 = 3;
const ADDBA_REQUEST: u8 = 0;
const ADDBA_RESPONSE: u8 = 1;
/// The body of a request: category, action, token, parameters, timeout, start.
const ADDBA_LENGTH: usize = 9;
/// The status of a request that is declined (9.4.1.9).
const DECLINED: u16 = 37;

/// What the medium has to know of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) receiver: Address,
    pub(crate) transmitter: Address,
    pub(crate) is_management: bool,
    /// Whether only an access point sends such a frame.
    pub(crate) of_access_point: bool,
    pub(crate) is_addba_request: bool,
}

impl Header {
    /// The header of a frame; `None` where it is too short or too long.
    pub(crate) fn of(frame: &[u8]) -> Option<Self> {
        if !(SHORTEST..=LONGEST).contains(&frame.len()) {
            return None;
        }
        let address = |at: usize| frame[at..at + 6].try_into().ok().map(Address);
        let (receiver, transmitter, third) = (address(4)?, address(10)?, address(16)?);
        let (kind, subtype) = (frame[0] >> 2 & 3, frame[0] >> 4);
        let from_access_point = match kind {
            MANAGEMENT => transmitter == third,
            DATA => frame[1] & 3 == 2, // from the distribution system
            _ => false,
        };
        let body = &frame[SHORTEST..];
        let is_protected = frame[1] & 0x40 != 0;
        // What an encrypted frame says is not known, and nobody but its receiver could answer it.
        let is_addba_request = kind == MANAGEMENT
            && subtype == ACTION
            && !receiver.is_group()
            && !is_protected
            && body.len() >= ADDBA_LENGTH
            && body.starts_with(&[BLOCK_ACK, ADDBA_REQUEST]);
        Some(Self {
            receiver,
            transmitter,
            is_management: kind == MANAGEMENT,
            of_access_point: from_access_point,
            is_addba_request,
        })
    }
}

/// A frame in the medium. Clones share it.
#[derive(Clone, Debug)]
pub struct AirFrame(Rc<Content>);

/// What a radio has sent.
#[derive(Debug)]
pub struct Content {
    pub(crate) bytes: Vec<u8>,
    pub(crate) header: Header,
    pub(crate) radio: Address,
    pub(crate) flags: u32,
    pub(crate) cookie: u64,
    /// MHz.
    pub(crate) frequency: u32,
    pub(crate) rates: TriedRates,
    /// The rates that its sender tries.
    pub(crate) chain: rates::Chain,
}

impl AirFrame {
    pub(crate) fn new(sent: &SentFrame<'_>, header: Header) -> Self {
        Self(Rc::new(Content {
            bytes: sent.bytes.to_vec(),
            header,
            radio: sent.radio,
            flags: sent.flags,
            cookie: sent.cookie,
            frequency: sent.frequency,
            rates: sent.rates,
            chain: rates::Chain::of(&sent.rates, sent.frequency),
        }))
    }

    /// The frame by which the receiver of a request for Block Ack declines it (9.6.4.3).
    pub(crate) fn declined(&self) -> Vec<u8> {
        debug_assert!(self.header.is_addba_request);
        let Header { receiver, transmitter, .. } = self.header;
        let (network, body) = (&self.bytes[16..22], &self.bytes[SHORTEST..]);
        let mut answer = vec![ACTION << 4 | MANAGEMENT << 2, 0, 0, 0];
        answer.extend(transmitter.0);
        answer.extend(receiver.0);
        answer.extend(network);
        answer.extend([0, 0]); // sequence control
        answer.extend([BLOCK_ACK, ADDBA_RESPONSE, body[2]]); // and the request's token
        answer.extend(DECLINED.to_le_bytes());
        answer.extend(&body[3..7]); // parameters and timeout
        answer
    }
}

impl std::ops::Deref for AirFrame {
    type Target = Content;
    fn deref(&self) -> &Content {
        &self.0
    }
}

impl Packet for AirFrame {
    /// As if the frame were not encrypted: only limits in bytes depend on it.
    fn len(&self) -> usize {
        self.bytes.len().saturating_sub(SHORTEST + LLC_SNAP)
    }

    fn modulation(&self, attempt: u8) -> Option<Mode> {
        Some(self.chain.at(attempt).modulation)
    }

    fn attempts(&self) -> Option<u8> {
        Some(self.chain.attempts())
    }

    fn mpdu(&self) -> Option<u32> {
        Some((self.bytes.len() + FCS) as u32)
    }

    /// Management frames have a queue of their own at every station.
    fn is_urgent(&self) -> bool {
        self.header.is_management
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(control: [u8; 2], body: &[u8]) -> Vec<u8> {
        let mut frame = vec![control[0], control[1], 0, 0];
        for address in [1_u8, 2, 3] {
            frame.extend([2, 0, 0, 0, address << 1, 0]);
        }
        frame.extend([0, 0]);
        frame.extend(body);
        frame
    }

    const REQUEST: [u8; 9] = [3, 0, 77, 0x02, 0x10, 0x34, 0x12, 6, 7];

    #[test]
    fn a_request_for_block_ack_is_found_in_the_clear() {
        let found =
            |control, body: &[u8]| Header::of(&frame(control, body)).unwrap().is_addba_request;
        assert!(found([0xd0, 0], &REQUEST));
        assert!(!found([0xd0, 0], &REQUEST[..8]), "too short to be answered");
        assert!(!found([0xd0, 0], &[3, 1, 1, 2, 3, 4, 5, 6, 7]), "a response");
        assert!(!found([0xd0, 0], &[8, 0, 1, 2, 3, 4, 5, 6, 7]), "a query of security association");
        assert!(!found([0xd0, 0x40], &REQUEST), "encrypted");
        assert!(!found([0xc0, 0], &REQUEST), "a deauthentication");
    }

    #[test]
    fn a_request_is_declined_with_its_token_from_its_receiver_to_its_sender() {
        let bytes = frame([0xd0, 0], &REQUEST);
        let header = Header::of(&bytes).unwrap();
        let rates = [(0, 1, 0), (-1, 0, 0), (-1, 0, 0), (-1, 0, 0)];
        let radio = Address([2; 6]);
        let sent = SentFrame { radio, bytes: &bytes, flags: 0, cookie: 1, frequency: 2412, rates };
        let answer = AirFrame::new(&sent, header).declined();
        let found = Header::of(&answer).unwrap();
        assert_eq!((found.receiver, found.transmitter), (header.transmitter, header.receiver));
        assert!(found.is_management && !found.is_addba_request);
        assert_eq!(answer[16..22], bytes[16..22], "of the same network");
        assert_eq!(answer[SHORTEST..], [3, 1, 77, 37, 0, 0x02, 0x10, 0x34, 0x12]);
    }

    #[test]
    fn beacons_and_data_from_the_distribution_system_are_of_access_points() {
        let mut beacon = frame([0x80, 0], &[]);
        assert!(
            !Header::of(&beacon).unwrap().of_access_point,
            "of another BSSID: an ad-hoc network"
        );
        beacon.copy_within(10..16, 16);
        assert!(Header::of(&beacon).unwrap().of_access_point);
        let data = |ds| Header::of(&frame([0x88, ds], &[])).unwrap().of_access_point;
        assert_eq!([0, 1, 2, 3].map(data), [false, false, true, false]);
        assert_eq!(Header::of(&beacon[..23]), None);
    }

    #[test]
    fn attempts_go_down_the_chain_of_rates() {
        let bytes = frame([0x88, 1], &[0; 100]);
        let header = Header::of(&bytes).unwrap();
        let rates = [(11, 2, 0), (9, 1, 0), (0, 1, 0), (-1, 0, 0)];
        let radio = Address([2; 6]);
        let sent = SentFrame { radio, bytes: &bytes, flags: 1, cookie: 1, frequency: 2412, rates };
        let frame = AirFrame::new(&sent, header);
        let mbps =
            |attempt| frame.chain.at(attempt).modulation.rate().bits_per_second() / 1_000_000;
        assert_eq!([0, 1, 2, 3, 4].map(mbps), [54, 54, 36, 1, 1]);
        assert_eq!((frame.attempts(), frame.mpdu()), (Some(4), Some(128)));
    }
}
