//! The configuration of the monitor: which connections it follows, how often, and the size of its buffer.

use std::net::IpAddr;
use std::time::Duration;

use crate::skeleton::monitor::types::watch_config;

/// The connections that are watched: those that meet every given condition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Either end has this address.
    pub address: Option<IpAddr>,
    /// Either end has this port.
    pub port: Option<u16>,
    /// The network namespaces that are watched, by their cookies ([`crate::netns_cookie`]). Those
    /// of [`Filter::netns_inodes`] are watched, too. If both lists are empty, all namespaces are
    /// watched.
    pub netns_cookies: Vec<u64>,
    /// The network namespaces that are watched, by the inodes of `/proc/PID/ns/net`.
    pub netns_inodes: Vec<u32>,
}

/// The configuration of the monitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitorConfig {
    /// Whether every ACK gives a sample. Otherwise a socket has at most one sample per
    /// [`MonitorConfig::sample_interval`].
    pub every_ack: bool,
    /// The shortest time between two samples of a socket; 1 ms by default.
    pub sample_interval: Duration,
    /// The connections that are watched.
    pub filter: Filter,
    /// The size of the ring buffer in bytes: a power of two and a multiple of the page size.
    pub buffer_bytes: u32,
}

impl Default for MonitorConfig {
    fn default() -> Self {
        Self {
            every_ack: false,
            sample_interval: Duration::from_millis(1),
            filter: Filter::default(),
            buffer_bytes: 8 << 20,
        }
    }
}

/// `NAMESPACE_BY_INODE` of `intf.h`, which marks a key as an inode.
const BY_INODE: u64 = 1 << 63;

impl Filter {
    pub(super) fn namespace_keys(&self) -> impl Iterator<Item = u64> + '_ {
        let inodes = self.netns_inodes.iter().map(|&inode| u64::from(inode) | BY_INODE);
        self.netns_cookies.iter().copied().chain(inodes)
    }
}

impl MonitorConfig {
    pub(super) fn to_watch(&self) -> watch_config {
        let mapped = self.filter.address.map(|address| match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        });
        watch_config {
            sample_interval_ns: if self.every_ack {
                0
            } else {
                u64::try_from(self.sample_interval.as_nanos()).unwrap_or(u64::MAX)
            },
            address: mapped.unwrap_or_default(),
            port: self.filter.port.unwrap_or(0),
            by_address: u8::from(mapped.is_some()),
            by_namespace: u8::from(self.filter.namespace_keys().next().is_some()),
            zero: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv4_filter_is_compared_as_a_mapped_address() {
        let filter = Filter { address: Some([10, 0, 0, 1].into()), ..Filter::default() };
        let watch = MonitorConfig { filter, ..MonitorConfig::default() }.to_watch();
        assert_eq!(watch.address[10..], [0xff, 0xff, 10, 0, 0, 1]);
        assert_eq!(watch.by_address, 1);
        assert_eq!(watch.sample_interval_ns, 1_000_000);
    }

    #[test]
    fn an_inode_differs_from_the_same_cookie() {
        let filter = Filter { netns_cookies: vec![5], netns_inodes: vec![5], ..Filter::default() };
        let keys: Vec<_> = filter.namespace_keys().collect();
        assert_eq!(keys, [5, 5 | 1 << 63]);
    }
}
