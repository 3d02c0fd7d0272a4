//! What a table of nftables consists of, as the kernel lists it over nfnetlink.

use std::io;

use crate::netlink::Netlink;
use crate::raw_message::{Attribute, RawMessage};

// Numbers of <linux/netfilter/nfnetlink.h> and <linux/netfilter/nf_tables.h>.
const SUBSYSTEM: u16 = 10 << 8; // NFNL_SUBSYS_NFTABLES
const GET_TABLE: u16 = SUBSYSTEM + 1;
const GET_CHAIN: u16 = SUBSYSTEM + 4;
const GET_RULE: u16 = SUBSYSTEM + 7;
/// The header of all messages (`struct nfgenmsg`): the family inet (`NFPROTO_INET`).
const HEADER: [u8; 4] = [1, 0, 0, 0];
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
        let selects =
            (kind == GET_RULE).then(|| Attribute { kind: TABLE_NAME, value: name.clone() });
        let attributes = selects.into_iter().collect();
        let asked = RawMessage { kind, header: HEADER, attributes };
        for mut found in netlink.dump(asked)? {
            let is_of_the_table =
                |attribute: &Attribute| attribute.kind == TABLE_NAME && attribute.value == name;
            if found.attributes.iter().any(is_of_the_table) {
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
    let tables = RawMessage { kind: GET_TABLE, header: HEADER, attributes: Vec::new() };
    Netlink::open_netfilter()?.dump(tables).map(drop)
}
