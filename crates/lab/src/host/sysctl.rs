//! The sysctls of the lab's namespaces. They go with the namespace, so nothing is put back.

use std::fs;
use std::io;
use std::path::Path;

/// DESIGN §7 "Emulation".
const SETTINGS: [(&str, &str); 6] = [
    // No router solicitations and neighbour discovery on the emulated air.
    ("net/ipv6/conf/all/disable_ipv6", "1"),
    ("net/ipv6/conf/default/disable_ipv6", "1"),
    // A new namespace inherits the machine's default, which need not be cubic.
    ("net/ipv4/tcp_congestion_control", "cubic"),
    // Windows for 64 MB in flight: 500 Mbit/s at an RTT of 1 s.
    ("net/ipv4/tcp_wmem", "4096 16384 67108864"),
    ("net/ipv4/tcp_rmem", "4096 131072 67108864"),
    // Every connection of a run starts like the first.
    ("net/ipv4/tcp_no_metrics_save", "1"),
];

/// Writes them in the calling thread's namespace.
pub(super) fn apply() -> io::Result<()> {
    for (name, value) in SETTINGS {
        let path = Path::new("/proc/sys").join(name);
        match fs::write(&path, value) {
            Ok(()) => {}
            // A kernel without IPv6 has nothing to switch off.
            Err(error) if error.kind() == io::ErrorKind::NotFound && name.contains("ipv6") => {}
            Err(error) => {
                let message = format!("sysctl {name} = {value}: {error}");
                return Err(io::Error::new(error.kind(), message));
            }
        }
    }
    Ok(())
}
