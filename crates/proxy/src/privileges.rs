//! What the proxy keeps of its privileges once it listens.

use wakeai_host::Capability;
use wakeai_kernel::Bounded;

use crate::config::Config;

/// What serving connections takes, and putting everything back at the end.
pub(crate) fn kept(config: &Config) -> Vec<Capability> {
    let mut kept = Vec::new();
    let transparent = config.transparent.is_any();
    // A restricted congestion control; foreign addresses and marks; nft(8) and ip(8) at the end.
    if transparent || config.algorithm.is_some() {
        kept.push(Capability::CAP_NET_ADMIN);
    }
    // A client's port may be below 1024, and its destination is to see the same.
    if transparent {
        kept.push(Capability::CAP_NET_BIND_SERVICE);
    }
    // To unload the algorithms as their last holder.
    if config.algorithm.as_deref().is_some_and(is_ours) {
        kept.extend([Capability::CAP_BPF, Capability::CAP_PERFMON]);
    }
    kept
}

/// Whether the congestion control is one that Wakeai loads.
pub(crate) fn is_ours(name: &str) -> bool {
    Bounded::ALL.iter().any(|bounded| bounded.name == name)
}
