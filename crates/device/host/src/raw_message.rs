//! Messages of netlink whose attributes stay bytes.

use netlink_packet_core::{
    DecodeError, Emitable as _, NetlinkDeserializable, NetlinkHeader, NetlinkSerializable, Nla,
    NlasIterator,
};

/// A message with a header of its protocol and attributes. The values of attributes stay bytes, so that an
/// object that is written back keeps the attributes that this code does not know.
#[derive(Clone, Debug)]
pub(crate) struct RawMessage<const HEADER_BYTES: usize> {
    pub(crate) kind: u16,
    pub(crate) header: [u8; HEADER_BYTES],
    pub(crate) attributes: Vec<Attribute>,
}

/// An attribute of a netlink message, whose value stays bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attribute {
    pub(crate) kind: u16,
    pub(crate) value: Vec<u8>,
}

impl Attribute {
    /// An attribute whose value is these attributes.
    pub(crate) fn nested(kind: u16, inner: &[Self]) -> Self {
        let mut value = vec![0; inner.buffer_len()];
        inner.emit(&mut value);
        Self { kind, value }
    }
}

impl Nla for Attribute {
    fn value_len(&self) -> usize {
        self.value.len()
    }

    fn kind(&self) -> u16 {
        self.kind
    }

    fn emit_value(&self, buffer: &mut [u8]) {
        buffer.copy_from_slice(&self.value);
    }
}

impl<const HEADER_BYTES: usize> NetlinkSerializable for RawMessage<HEADER_BYTES> {
    fn message_type(&self) -> u16 {
        self.kind
    }

    fn buffer_len(&self) -> usize {
        HEADER_BYTES + self.attributes.as_slice().buffer_len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        let (header, attributes) = buffer.split_at_mut(HEADER_BYTES);
        header.copy_from_slice(&self.header);
        self.attributes.as_slice().emit(attributes);
    }
}

impl<const HEADER_BYTES: usize> NetlinkDeserializable for RawMessage<HEADER_BYTES> {
    type Error = DecodeError;

    fn deserialize(netlink: &NetlinkHeader, payload: &[u8]) -> Result<Self, DecodeError> {
        let short = || DecodeError::buffer_too_small(payload.len(), HEADER_BYTES);
        let (header, rest) = payload.split_first_chunk().ok_or_else(short)?;
        Ok(Self { kind: netlink.message_type, header: *header, attributes: attributes(rest) })
    }
}

/// The attributes in `bytes`, up to the first that is cut short.
pub(crate) fn attributes(bytes: &[u8]) -> Vec<Attribute> {
    let whole = NlasIterator::new(bytes).map_while(Result::ok);
    whole.map(|found| Attribute { kind: found.kind(), value: found.value().to_vec() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_that_is_cut_short_ends_the_list() {
        let whole = [8, 0, 1, 0, 1, 2, 3, 4, 8, 0, 2, 0, 5, 6, 7, 8];
        assert_eq!(attributes(&whole).len(), 2);
        for length in 0..whole.len() {
            assert!(attributes(&whole[..length]).len() < 2);
        }
        assert!(attributes(&[0; 8]).is_empty(), "the length is below that of a header");
    }
}
