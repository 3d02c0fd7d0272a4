//! The sysctls of the lab's namespaces. They end with the namespace, so nothing is restored.

use std::fs;
use std::io;
use std::path::Path;

/// The settings of every namespace.
const SETTINGS: [(&str, &str); 5] = [
    // IPv6 is off, because its router solicitations and neighbour discovery would use the emulated
    // air.
    ("net/ipv6/conf/all/disable_ipv6", "1"),
    ("net/ipv6/conf/default/disable_ipv6", "1"),
    // The sender has room for 64 MB in flight: 500 Mbit/s at an RTT of 1 s.
    ("net/ipv4/tcp_wmem", "4096 16384 67108864"),
    // Linux 6.18's own. It gives windows for 20 MB, in units of 1 KB (RFC 7323), so that a window of an even number of segments
    // is not rounded up to an odd one.
    ("net/ipv4/tcp_rmem", "4096 131072 33554432"),
    // Every connection of a run starts like the first one.
    ("net/ipv4/tcp_no_metrics_save", "1"),
];

/// The default congestion control. A new namespace inherits the machine's, which need not be cubic.
const DEFAULT_ALGORITHM: &str = "net/ipv4/tcp_congestion_control";

/// Writes the settings in the calling thread's namespace. Returns whether `cubic` is now the
/// namespace's default congestion control.
///
/// Outside the initial namespace the kernel accepts only algorithms in
/// `tcp_allowed_congestion_control`. If `cubic` is not in that list, the default becomes `reno`,
/// which is always allowed, and every sender sets its algorithm itself. The lab does not change the
/// list, because it applies to the whole machine.
pub(super) fn apply() -> io::Result<bool> {
    for (name, value) in SETTINGS {
        match write(name, value) {
            // A kernel without IPv6 does not have these settings.
            Err(error) if error.kind() == io::ErrorKind::NotFound && name.contains("ipv6") => {}
            result => result?,
        }
    }
    if write(DEFAULT_ALGORITHM, "cubic").is_ok() {
        return Ok(true);
    }
    write(DEFAULT_ALGORITHM, "reno").map(|()| false)
}

pub(super) fn write(name: &str, value: &str) -> io::Result<()> {
    fs::write(Path::new("/proc/sys").join(name), value)
        .map_err(|error| io::Error::new(error.kind(), format!("sysctl {name} = {value}: {error}")))
}
