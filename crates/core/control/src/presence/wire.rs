//! The fields of a message, one after the other, with numbers in network byte order. One function
//! lists the fields of a message for both directions: a [`WireFields`] writes them, or reads them into
//! the same places.

use wakeai_units::{Duration, Rate, Segments};

use crate::Share;

/// The largest valid rate, 1 Tbit/s. No radio is faster.
pub(super) const MAX_RATE: Rate = Rate::from_mbps(1_000_000);

/// The microseconds of a field. A span that is too long becomes the longest.
pub(super) fn micros(span: Duration) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(u32::MAX)
}

/// Writes a message, or reads one. Values are rounded down to the units of the format, and values
/// that are too large are reduced to the limit.
#[derive(Debug)]
pub(super) struct WireFields<'a> {
    /// What is still to be read; `None` where the message is written.
    unread: Option<&'a [u8]>,
    written: Vec<u8>,
    /// The flags, and their place in a message that is written.
    flags: u32,
    flags_at: std::ops::Range<usize>,
    /// Whether all fields that were read are in range.
    pub(super) is_valid: bool,
}

impl<'a> WireFields<'a> {
    /// Writes a message that begins with `head`.
    pub(super) fn writing(head: &[u8]) -> Self {
        Self { unread: None, written: head.to_vec(), flags: 0, flags_at: 0..0, is_valid: true }
    }

    /// Reads an authentic message.
    pub(super) fn reading(message: &'a [u8]) -> Self {
        Self { unread: Some(message), ..Self::writing(&[]) }
    }

    /// The message that was written.
    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        let flags = self.flags.to_be_bytes();
        let width = self.flags_at.len();
        self.written[self.flags_at].copy_from_slice(&flags[4 - width..]);
        self.written
    }

    /// Refuses the message that is read unless a field is in range.
    pub(super) fn check(&mut self, is_in_range: bool) {
        self.is_valid &= is_in_range;
    }

    pub(super) fn bytes<const N: usize>(&mut self, value: &mut [u8; N]) {
        match &mut self.unread {
            Some(unread) => {
                let read = unread.split_first_chunk().expect("the message has its length");
                (*value, *unread) = (*read.0, read.1);
            }
            None => self.written.extend(*value),
        }
    }

    pub(super) fn u8(&mut self, value: &mut u8) {
        self.bytes(std::array::from_mut(value));
    }

    pub(super) fn u16(&mut self, value: &mut u16) {
        let mut bytes = value.to_be_bytes();
        self.bytes(&mut bytes);
        *value = u16::from_be_bytes(bytes);
    }

    pub(super) fn u32(&mut self, value: &mut u32) {
        let mut bytes = value.to_be_bytes();
        self.bytes(&mut bytes);
        *value = u32::from_be_bytes(bytes);
    }

    pub(super) fn u64(&mut self, value: &mut u64) {
        let mut bytes = value.to_be_bytes();
        self.bytes(&mut bytes);
        *value = u64::from_be_bytes(bytes);
    }

    pub(super) fn rate(&mut self, rate: &mut Rate) {
        let mut bits_per_second = (*rate).min(MAX_RATE).bits_per_second();
        self.u64(&mut bits_per_second);
        *rate = Rate::from_bps(bits_per_second);
        self.check(*rate <= MAX_RATE);
    }

    pub(super) fn micros(&mut self, span: &mut Duration) {
        let mut micros = micros(*span);
        self.u32(&mut micros);
        *span = Duration::from_micros(u64::from(micros));
    }

    pub(super) fn nanos(&mut self, span: &mut Duration) {
        let mut nanos = span.as_nanos();
        self.u64(&mut nanos);
        *span = Duration::from_nanos(nanos);
    }

    pub(super) fn segments(&mut self, window: &mut Segments) {
        let mut segments = window.get();
        self.u32(&mut segments);
        *window = Segments::new(segments);
    }

    pub(super) fn share(&mut self, share: &mut Share) {
        let mut ppm = share.ppm();
        self.u32(&mut ppm);
        *share = Share::from_ppm(ppm);
    }

    /// The flags, in `N` bytes; all of `known` have a meaning.
    pub(super) fn flags<const N: usize>(&mut self, known: u32) {
        self.flags_at = self.written.len()..self.written.len() + N;
        let mut bytes = [0; N];
        self.bytes(&mut bytes);
        self.flags |= bytes.iter().fold(0, |flags, byte| flags << 8 | u32::from(*byte));
        self.check(self.flags & !known == 0);
    }

    pub(super) fn flag(&mut self, bit: u32, value: &mut bool) {
        self.flags |= if *value { bit } else { 0 };
        *value = self.flags & bit != 0;
    }

    /// A field that the flag `bit` announces. An absent field is zero, so that every message has
    /// exactly one encoding.
    pub(super) fn optional<T: Copy + Default + PartialEq>(
        &mut self,
        bit: u32,
        value: &mut Option<T>,
        field: impl FnOnce(&mut Self, &mut T),
    ) {
        let (mut is_there, mut inner) = (value.is_some(), value.unwrap_or_default());
        self.flag(bit, &mut is_there);
        field(self, &mut inner);
        self.check(is_there || inner == T::default());
        *value = is_there.then_some(inner);
    }

    /// Fields that a message has where the bytes are valid as these fields. Where they are not,
    /// they belong to the next fields.
    pub(super) fn where_valid<T: Default>(
        &mut self,
        value: &mut Option<T>,
        fields: impl FnOnce(&mut Self, &mut T),
    ) {
        match (self.unread, value.as_mut()) {
            (None, None) => {}
            (None, Some(value)) => fields(self, value),
            (Some(unread), _) => {
                let (mut ahead, mut read) = (Self::reading(unread), T::default());
                fields(&mut ahead, &mut read);
                if ahead.is_valid {
                    (self.unread, *value) = (ahead.unread, Some(read));
                }
            }
        }
    }
}
