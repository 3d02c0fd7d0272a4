//! Messages of generic netlink: those of the family `MAC80211_HWSIM`, and the query for the family's number.
//!
//! The numbers are the kernel's interface for programs (linux/netlink.h, linux/genetlink.h, and the header of the
//! driver `mac80211_hwsim`).

/// The messages that every family has.
pub(crate) const NLMSG_ERROR: u16 = 2;
/// The family that knows the numbers of all others.
pub(crate) const GENL_ID_CTRL: u16 = 0x10;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
/// The name of the driver's family.
const FAMILY: &[u8] = b"MAC80211_HWSIM\0";

const CMD_REGISTER: u8 = 1;
pub(crate) const CMD_FRAME: u8 = 2;
const CMD_TX_INFO_FRAME: u8 = 3;

const ATTR_ADDR_RECEIVER: u16 = 1;
const ATTR_ADDR_TRANSMITTER: u16 = 2;
const ATTR_FRAME: u16 = 3;
const ATTR_FLAGS: u16 = 4;
const ATTR_RX_RATE: u16 = 5;
const ATTR_SIGNAL: u16 = 6;
const ATTR_TX_INFO: u16 = 7;
const ATTR_COOKIE: u16 = 8;
const ATTR_FREQ: u16 = 19;
const ATTR_TX_INFO_FLAGS: u16 = 21;

/// The flag of a frame that its receiver does not acknowledge.
pub(crate) const TX_NO_ACK: u32 = 2;
/// The flag of a report: the frame was acknowledged.
pub(crate) const TX_ACKNOWLEDGED: u32 = 4;

/// The bits of an attribute's kind that are no part of it.
const ATTR_KIND: u16 = 0x3fff;
const HEADER: usize = 16;
const GENERIC_HEADER: usize = 4;

/// The strength at which every frame is received, in dBm. The medium has no distances.
const SIGNAL_DBM: i32 = -50;

/// The rates of a frame that its sender tries one after another: each an index, the number of attempts, and flags.
/// The index of the first unused one is -1.
pub(crate) type TriedRates = [(i8, u8, u16); 4];

use super::Address;

/// What a request is for. The kernel's answer to it has the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Family,
    Register,
    /// A frame for one receiver.
    Unicast,
    /// A frame for everybody, which radios of other channels refuse.
    Group,
    /// The report about a frame.
    Status,
}

impl Purpose {
    const ALL: [Self; 5] = [Self::Family, Self::Register, Self::Unicast, Self::Group, Self::Status];

    pub(crate) fn of(sequence: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|purpose| purpose.sequence() == sequence)
    }

    pub(crate) fn sequence(self) -> u32 {
        self as u32 + 1
    }
}

/// A frame that a radio sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SentFrame<'a> {
    pub(crate) radio: Address,
    pub(crate) bytes: &'a [u8],
    pub(crate) flags: u32,
    pub(crate) cookie: u64,
    /// MHz.
    pub(crate) frequency: u32,
    pub(crate) rates: TriedRates,
}

/// A message of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Received<'a> {
    /// The answer to a request: zero, or a negative error number.
    Answer(u32, i32),
    /// The number of the family.
    Family(u16),
    Frame(SentFrame<'a>),
    /// A message that the medium has no use for.
    Other,
}

/// The messages in what one receive call gave.
pub(crate) fn messages(
    mut bytes: &[u8],
    family: u16,
) -> impl Iterator<Item = Option<Received<'_>>> {
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
        if bytes.len() < HEADER || length < HEADER || length > bytes.len() {
            bytes = &[];
            return Some(None);
        }
        let message = &bytes[..length];
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some(received(message, family))
    })
}

/// The content of a message; `None` where it is malformed.
fn received(message: &[u8], family: u16) -> Option<Received<'_>> {
    let kind = u16::from_ne_bytes(message.get(4..6)?.try_into().ok()?);
    let sequence = u32::from_ne_bytes(message.get(8..12)?.try_into().ok()?);
    let body = message.get(HEADER..)?;
    if kind == NLMSG_ERROR {
        return Some(Received::Answer(
            sequence,
            i32::from_ne_bytes(body.get(..4)?.try_into().ok()?),
        ));
    }
    let command = *body.first()?;
    let attributes = body.get(GENERIC_HEADER..)?;
    if kind == GENL_ID_CTRL {
        let found = attribute(attributes, CTRL_ATTR_FAMILY_ID)?;
        return Some(Received::Family(u16::from_ne_bytes(found.try_into().ok()?)));
    }
    if kind != family || command != CMD_FRAME {
        return Some(Received::Other);
    }
    let number = |kind| Some(u32::from_ne_bytes(attribute(attributes, kind)?.try_into().ok()?));
    let tried = attribute(attributes, ATTR_TX_INFO)?;
    let flags = attribute(attributes, ATTR_TX_INFO_FLAGS).unwrap_or(&[]);
    let mut rates = [(-1, 0, 0); 4];
    for (place, rate) in rates.iter_mut().enumerate() {
        let [index, count] = tried.get(2 * place..2 * place + 2)?.try_into().ok()?;
        let own = flags.get(3 * place + 1..3 * place + 3).and_then(|own| own.try_into().ok());
        *rate = (i8::from_ne_bytes([index]), count, own.map_or(0, u16::from_ne_bytes));
    }
    let address = attribute(attributes, ATTR_ADDR_TRANSMITTER)?;
    let cookie = attribute(attributes, ATTR_COOKIE)?;
    Some(Received::Frame(SentFrame {
        radio: Address(address.try_into().ok()?),
        bytes: attribute(attributes, ATTR_FRAME)?,
        flags: number(ATTR_FLAGS)?,
        cookie: u64::from_ne_bytes(cookie.try_into().ok()?),
        frequency: number(ATTR_FREQ)?,
        rates,
    }))
}

/// The content of the first attribute of this kind.
fn attribute(mut bytes: &[u8], kind: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
        let found = u16::from_ne_bytes(bytes.get(2..4)?.try_into().ok()?);
        let content = bytes.get(4..length)?;
        if found & ATTR_KIND == kind {
            return Some(content);
        }
        bytes = bytes.get(length.next_multiple_of(4)..)?;
    }
}

/// Writes requests into a buffer that is used again.
#[derive(Debug)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
    pub(crate) family: u16,
}

impl Writer {
    pub(crate) fn new() -> Self {
        Self { bytes: Vec::with_capacity(4096), family: 0 }
    }

    fn begin(&mut self, family: u16, command: u8, purpose: Purpose) {
        let asks = matches!(purpose, Purpose::Register);
        let flags = NLM_F_REQUEST | if asks { NLM_F_ACK } else { 0 };
        self.bytes.clear();
        self.bytes.extend([0; 4]); // the length
        self.bytes.extend(family.to_ne_bytes());
        self.bytes.extend(flags.to_ne_bytes());
        self.bytes.extend(purpose.sequence().to_ne_bytes());
        self.bytes.extend([0; 4]); // the port, which the kernel knows
        self.bytes.extend([command, 1, 0, 0]);
    }

    fn add(&mut self, kind: u16, content: &[u8]) {
        let length = (4 + content.len()) as u16;
        self.bytes.extend(length.to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend(content);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn end(&mut self) -> &[u8] {
        let length = self.bytes.len() as u32;
        self.bytes[..4].copy_from_slice(&length.to_ne_bytes());
        &self.bytes
    }

    /// Asks for the number of the driver's family.
    pub(crate) fn get_family(&mut self) -> &[u8] {
        self.begin(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, Purpose::Family);
        self.add(CTRL_ATTR_FAMILY_NAME, FAMILY);
        self.end()
    }

    /// Makes the sender the medium of all radios of this network namespace.
    pub(crate) fn register(&mut self) -> &[u8] {
        self.begin(self.family, CMD_REGISTER, Purpose::Register);
        self.end()
    }

    /// Hands a frame to a radio that has received it.
    pub(crate) fn frame(
        &mut self,
        to: Address,
        bytes: &[u8],
        (rate, frequency): (u32, u32),
        purpose: Purpose,
    ) -> &[u8] {
        self.begin(self.family, CMD_FRAME, purpose);
        self.add(ATTR_ADDR_RECEIVER, &to.0);
        self.add(ATTR_FRAME, bytes);
        self.add(ATTR_RX_RATE, &rate.to_ne_bytes());
        self.add(ATTR_SIGNAL, &SIGNAL_DBM.to_ne_bytes());
        self.add(ATTR_FREQ, &frequency.to_ne_bytes());
        self.end()
    }

    /// Tells a radio what became of its frame.
    pub(crate) fn status(
        &mut self,
        radio: Address,
        cookie: u64,
        flags: u32,
        rates: &TriedRates,
    ) -> &[u8] {
        self.begin(self.family, CMD_TX_INFO_FRAME, Purpose::Status);
        self.add(ATTR_ADDR_TRANSMITTER, &radio.0);
        self.add(ATTR_FLAGS, &flags.to_ne_bytes());
        self.add(ATTR_COOKIE, &cookie.to_ne_bytes());
        self.add(ATTR_SIGNAL, &SIGNAL_DBM.to_ne_bytes());
        let tried = rates.map(|(index, count, _)| [index.to_ne_bytes()[0], count]);
        self.add(ATTR_TX_INFO, tried.as_flattened());
        self.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RADIO: Address = Address([0x42, 0, 0, 0, 3, 0]);

    /// A frame of a radio as the driver sends it.
    fn sent() -> Vec<u8> {
        let mut writer = Writer { family: 30, ..Writer::new() };
        writer.begin(30, CMD_FRAME, Purpose::Unicast);
        writer.add(ATTR_ADDR_TRANSMITTER, &RADIO.0);
        writer.add(ATTR_FRAME, &[8, 1, 2]);
        writer.add(ATTR_FLAGS, &1_u32.to_ne_bytes());
        writer.add(ATTR_FREQ, &2412_u32.to_ne_bytes());
        writer.add(ATTR_TX_INFO, &[11, 2, 4, 3, 0xff, 0, 0xff, 0]);
        let flags =
            [[11, 8, 0], [4, 0, 1], [0xff, 0, 0], [0xff, 0, 0]].map(|[index, low, high]| {
                let [low, high] = u16::from_le_bytes([low, high]).to_ne_bytes();
                [index, low, high]
            });
        writer.add(ATTR_TX_INFO_FLAGS, flags.as_flattened());
        writer.add(ATTR_COOKIE, &77_u64.to_ne_bytes());
        writer.end().to_vec()
    }

    #[test]
    fn a_frame_is_read_with_all_that_the_driver_tells() {
        let bytes = sent();
        let found: Vec<_> = messages(&bytes, 30).collect();
        let rates = [(11, 2, 8), (4, 3, 256), (-1, 0, 0), (-1, 0, 0)];
        let (bytes, flags, cookie, frequency) = (&[8, 1, 2][..], 1, 77, 2412);
        let frame = SentFrame { radio: RADIO, bytes, flags, cookie, frequency, rates };
        assert_eq!(found, [Some(Received::Frame(frame))]);
    }

    #[test]
    fn what_is_cut_off_or_lies_about_its_length_is_malformed() {
        let whole = sent();
        for length in 0..whole.len() {
            let mut cut = whole[..length].to_vec();
            let found: Vec<_> = messages(&cut, 30).collect();
            assert!(found.is_empty() || found == [None], "{length}");
            // The same with a length that fits.
            if length >= HEADER {
                cut[..4].copy_from_slice(&(length as u32).to_ne_bytes());
                let found: Vec<_> = messages(&cut, 30).collect();
                assert_eq!(found, [None], "{length}");
            }
        }
    }

    #[test]
    fn an_answer_names_what_it_answers() {
        let mut bytes = Writer::new().register().to_vec();
        bytes[4..6].copy_from_slice(&NLMSG_ERROR.to_ne_bytes());
        bytes[16..20].copy_from_slice(&(-16_i32).to_ne_bytes());
        let found: Vec<_> = messages(&bytes, 30).collect();
        assert_eq!(found, [Some(Received::Answer(2, -16))]);
        assert_eq!(Purpose::of(2), Some(Purpose::Register));
    }
}
