//! Moves sysctls and connections back to the kernel's own algorithms, and puts back their receive windows.

use wakeai_host::{Namespace, NetnsId};

use super::PREFIX;
use crate::bounded::{Bounded, is_available};
use crate::connections::move_connections;
use crate::windows;

/// Moves the default (a sysctl) and the connections of every network namespace to the kernel's own
/// algorithms, and puts back their receive windows. In the calling thread's namespace this works even without the privilege to enter
/// another namespace.
pub(super) fn vacate() {
    vacate_here();
    let here = NetnsId::current().ok();
    for namespace in Namespace::all() {
        if Some(namespace.id()) == here {
            continue;
        }
        if let Err(error) = namespace.run(vacate_here) {
            // The connections of this namespace will change their algorithm themselves when it is
            // unloaded. `wait_until_gone` warns if that takes long.
            tracing::debug!(%error, "the connections of a namespace are not moved; they change their algorithm themselves");
        }
    }
}

/// Does what [`vacate`] does, but only in the calling thread's namespace.
pub(super) fn vacate_here() {
    if let Err(error) = windows::give_back() {
        tracing::warn!(%error, "the receive windows of connections could not be put back");
    }
    if let Err(error) = vacate_default() {
        tracing::warn!(%error, "the default congestion control could not be restored");
    }
    for bounded in Bounded::ALL {
        match move_connections(&[bounded.name], available(bounded.plain), None) {
            Ok(report) if report.failed == 0 => {}
            Ok(report) => tracing::warn!(
                failed = report.failed,
                "connections could not be moved to the kernel's own algorithm"
            ),
            Err(error) => {
                tracing::warn!(%error, "connections could not be moved to the kernel's own algorithm");
            }
        }
    }
}

/// Moves the namespace's default to the kernel's own algorithm. The kernel may refuse CUBIC: if it
/// is not the kernel's own default, only the initial namespace may set it. Then
/// another algorithm becomes the default. There is one, because the default of new namespaces and
/// Reno are always allowed.
fn vacate_default() -> std::io::Result<()> {
    let found = wakeai_host::read_sysctl(wakeai_host::DEFAULT_ALGORITHM)?;
    let Some(plain) = found.strip_prefix(PREFIX) else { return Ok(()) };
    let allowed = wakeai_host::read_sysctl("net.ipv4.tcp_allowed_congestion_control")?;
    let others = allowed.split(' ').rev().filter(|name| !name.starts_with(PREFIX));
    let write = |name| std::fs::write("/proc/sys/net/ipv4/tcp_congestion_control", name);
    let first = write(plain).or_else(|_| write("cubic"));
    others.fold(first, |result, name| result.or_else(|_| write(name)))
}

/// The algorithm `asked` if the kernel has it, and otherwise Reno, which every kernel has.
pub(super) fn available(asked: &'static str) -> &'static str {
    if is_available(asked) { asked } else { "reno" }
}
