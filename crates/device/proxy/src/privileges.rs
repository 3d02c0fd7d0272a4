//! The privileges that the proxy keeps once it listens, and the user as which it serves.

use nix::unistd::User;
use wakeai_host::{Capability, serving_user};
use wakeai_kernel::Bounded;

use crate::config::Config;
use crate::error::ProxyError;

/// The capabilities for serving connections and for undoing all changes at the end.
pub(crate) fn kept(config: &Config) -> Vec<Capability> {
    let mut kept = to_serve(config);
    // CAP_BPF and CAP_PERFMON unload the algorithms, if this proxy is the last process that uses
    // them.
    if config.algorithm.as_deref().and_then(Bounded::named).is_some() {
        kept.extend([Capability::CAP_BPF, Capability::CAP_PERFMON]);
    }
    kept
}

/// The capabilities for serving connections.
pub(crate) fn to_serve(config: &Config) -> Vec<Capability> {
    let mut kept = Vec::new();
    let transparent = config.transparent.is_any();
    // CAP_NET_ADMIN allows restricted congestion controls, foreign addresses and marks. nft(8) and
    // ip(8) need it when they undo the changes at the end.
    if transparent || config.algorithm.is_some() {
        kept.push(Capability::CAP_NET_ADMIN);
    }
    // A client's port may be below 1024, and the proxy uses the same port towards the destination.
    if transparent {
        kept.push(Capability::CAP_NET_BIND_SERVICE);
    }
    // Target rates are written into a BPF map.
    if !config.rates.is_empty() {
        kept.push(Capability::CAP_BPF);
    }
    kept
}

/// The user as which the proxy serves; `None` stands for the user that started it.
pub(crate) fn user(config: &Config) -> Result<Option<User>, ProxyError> {
    config.user.as_deref().map(serving_user).transpose().map_err(ProxyError::from)
}
