//! The sysctls of the lab's namespaces. They go with the namespace, so nothing is put back.

use std::fs;
use std::io;
use std::path::Path;

/// DESIGN §7 "Emulation".
const SETTINGS: [(&str, &str); 5] = [
    // No router solicitations and neighbour discovery on the emulated air.
    ("net/ipv6/conf/all/disable_ipv6", "1"),
    ("net/ipv6/conf/default/disable_ipv6", "1"),
    // Windows for 64 MB in flight: 500 Mbit/s at an RTT of 1 s.
    ("net/ipv4/tcp_wmem", "4096 16384 67108864"),
    ("net/ipv4/tcp_rmem", "4096 131072 67108864"),
    // Every connection of a run starts like the first.
    ("net/ipv4/tcp_no_metrics_save", "1"),
];

/// What connections use that ask for nothing. A new namespace inherits the machine's default,
/// which need not be cubic.
const DEFAULT_ALGORITHM: &str = "net/ipv4/tcp_congestion_control";

/// Writes them in the calling thread's namespace; whether `cubic` is now its default.
///
/// Outside the first namespace the kernel takes only algorithms of
/// `tcp_allowed_congestion_control`. Where `cubic` is not among them, the lab does not change that
/// list, which is the whole machine's, but lets every sender ask for its algorithm by itself; the
/// default is then `reno`, which is always allowed.
pub(super) fn apply() -> io::Result<bool> {
    for (name, value) in SETTINGS {
        match write(name, value) {
            // A kernel without IPv6 has nothing to switch off.
            Err(error) if error.kind() == io::ErrorKind::NotFound && name.contains("ipv6") => {}
            result => result?,
        }
    }
    if write(DEFAULT_ALGORITHM, "cubic").is_ok() {
        return Ok(true);
    }
    write(DEFAULT_ALGORITHM, "reno").map(|()| false)
}

/// Lets connections that nobody owns any more give up at their next timeout, in the calling thread's
/// namespace. Their peers are gone with the run; for the kernel's eight retransmissions they would keep
/// their queues, and on a small machine the next run's connections would be short of memory (`tcp_mem`).
pub(super) fn give_up_orphans() -> io::Result<()> {
    write("net/ipv4/tcp_orphan_retries", "1")
}

/// Lets the calling thread's namespace forward packets.
pub(super) fn forward() -> io::Result<()> {
    write("net/ipv4/ip_forward", "1")
}

fn write(name: &str, value: &str) -> io::Result<()> {
    fs::write(Path::new("/proc/sys").join(name), value)
        .map_err(|error| io::Error::new(error.kind(), format!("sysctl {name} = {value}: {error}")))
}
