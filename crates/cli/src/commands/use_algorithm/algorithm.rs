//! The algorithms that can be put to work.

use anyhow::anyhow;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socket, sockopt};
use wakeai_kernel::Bounded;
use wakeai_units::Rate;

use crate::failure::Failure;

/// The only algorithm that has a target.
pub(super) const AIMED: &str = "wakeai_av";

/// A target rate goes with the algorithm that holds one, and that one with a rate.
pub(super) fn check_rate(algorithm: &str, rate: Option<Rate>) -> Result<(), Failure> {
    match (algorithm == AIMED, rate) {
        (true, None) => Err(Failure::usage(anyhow!(
            "{AIMED} holds a target rate, and none was given: add one, such as --rate 5Mbit/s"
        ))),
        (false, Some(_)) => {
            Err(Failure::usage(anyhow!("--rate: {algorithm} has no target rate, {AIMED} has")))
        }
        _ => Ok(()),
    }
}

/// Whether it is one of ours, which are loaded when they are needed.
pub(super) fn is_ours(algorithm: &str) -> bool {
    Bounded::ALL.iter().any(|ours| ours.name == algorithm)
}

/// Makes sure that the kernel has the algorithm, or that it will.
pub(super) fn require(algorithm: &str) -> Result<(), Failure> {
    if is_ours(algorithm) {
        return Ok(());
    }
    // The kernel loads the module of an algorithm that it has not loaded yet.
    let tried = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)
        .and_then(|socket| setsockopt(&socket, sockopt::TcpCongestion, &algorithm.into()));
    tried.map_err(|_| {
        let available = wakeai_host::read_sysctl("net.ipv4.tcp_available_congestion_control");
        let mut names: Vec<_> = Bounded::ALL.iter().map(|ours| ours.name).collect();
        let available = available.unwrap_or_default();
        names.extend(available.split(' ').filter(|name| !name.starts_with("wakeai_")));
        let names = names.join(", ");
        Failure::usage(anyhow!("found algorithm {algorithm:?}, this kernel has {names}"))
    })
}
