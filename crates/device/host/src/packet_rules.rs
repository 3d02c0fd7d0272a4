//! What a table of nftables consists of, as the kernel lists it over nfnetlink.

use std::io;

use netlink_packet_core::{
    DecodeError, Emitable as _, NetlinkDeserializable, NetlinkHeader, NetlinkSerializable,
};

use crate::netlink::Netlink;
use crate::route::{Attribute, attributes};

// Numbers of <linux/netfilter/nfnetlink.h> and <linux/netfilter/nf_tables.h>.
const SUBSYSTEM: u16 = 10 << 8; // NFNL_SUBSYS_NFTABLES
const GET_TABLE: u16 = SUBSYSTEM + 1;
const GET_CHAIN: u16 = SUBSYSTEM + 4;
const GET_RULE: u16 = SUBSYSTEM + 7;
const INET: u8 = 1; // NFPROTO_INET
/// The attribute of tables, chains and rules that has the name of the table.
const TABLE_NAME: u16 = 1;
/// Attributes by which a table, a chain or a rule has an effect: name and flags of a table; table,
/// name, hook, policy, type and flags of a chain; table, chain and expressions of a rule. The others
/// are numbers and counts, which are different in the same table when it is made again.
const EFFECTIVE: [&[u16]; 3] = [&[1, 2], &[1, 3, 4, 5, 7, 10], &[1, 2, 4]];

/// A table with its chains and rules: each by the attributes that have an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PacketRules(Vec<Vec<Attribute>>);

/// The table `name` of the family inet in the calling thread's namespace; `None` where there is none.
pub(crate) fn read(name: &str) -> io::Result<Option<PacketRules>> {
    let netlink = Netlink::open_netfilter()?;
    let name = [name.as_bytes(), b"\0"].concat();
    let mut all = Vec::new();
    for (kind, effective) in [GET_TABLE, GET_CHAIN, GET_RULE].into_iter().zip(EFFECTIVE) {
        // The kernel selects by the table's name where it can; the answers are selected again.
        let selects = (kind == GET_RULE).then(|| Attribute::new(TABLE_NAME, name.clone()));
        let asked = NftMessage { kind, attributes: selects.into_iter().collect() };
        for mut found in netlink.dump(asked)? {
            let is_its =
                |attribute: &Attribute| attribute.kind == TABLE_NAME && attribute.value == name;
            if found.attributes.iter().any(is_its) {
                found.attributes.retain(|attribute| effective.contains(&attribute.kind));
                all.push(found.attributes);
            }
        }
        if kind == GET_TABLE && all.is_empty() {
            return Ok(None);
        }
    }
    Ok(Some(PacketRules(all)))
}

/// Fails where the kernel has no nftables, or does not let this process read them.
pub(crate) fn are_readable() -> io::Result<()> {
    let tables = NftMessage { kind: GET_TABLE, attributes: Vec::new() };
    Netlink::open_netfilter()?.dump(tables).map(drop)
}

/// A message of nftables about the family inet, after its header (`struct nfgenmsg`).
#[derive(Clone, Debug)]
struct NftMessage {
    kind: u16,
    attributes: Vec<Attribute>,
}

/// The length of `struct nfgenmsg`.
const HEADER_BYTES: usize = 4;

impl NetlinkSerializable for NftMessage {
    fn message_type(&self) -> u16 {
        self.kind
    }

    fn buffer_len(&self) -> usize {
        HEADER_BYTES + self.attributes.as_slice().buffer_len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        let (header, attributes) = buffer.split_at_mut(HEADER_BYTES);
        header.copy_from_slice(&[INET, 0, 0, 0]);
        self.attributes.as_slice().emit(attributes);
    }
}

impl NetlinkDeserializable for NftMessage {
    type Error = DecodeError;

    fn deserialize(netlink: &NetlinkHeader, payload: &[u8]) -> Result<Self, DecodeError> {
        let attributes = attributes(payload.get(HEADER_BYTES..).unwrap_or_default());
        Ok(Self { kind: netlink.message_type, attributes })
    }
}
