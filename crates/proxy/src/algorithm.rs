//! The congestion control that is lent to the leg over the air.

use nix::errno::Errno;
use socket2::{Domain, Protocol, Socket, Type};
use wakeai_host::{Change, Lease, Role, read_sysctl};
use wakeai_kernel::{Bounded, Control};

use crate::error::ProxyError;

/// Loads the algorithm where it is one of ours, and makes sure that sockets of this process may
/// use it. An unprivileged process can only use what is there and allowed.
///
/// # Errors
///
/// Where the kernel does not have it or does not allow it.
pub(crate) fn prepare(name: &str, lease: &mut Option<Lease>) -> Result<(), ProxyError> {
    let ours = Bounded::ALL.iter().any(|bounded| bounded.name == name);
    if ours && nix::unistd::geteuid().is_root() {
        let lease = match lease {
            Some(lease) => lease,
            None => lease.insert(Lease::take(Role::Command)?),
        };
        lease.record(Change::KernelParts)?;
        Control::open()?;
    }
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))
        .map_err(ProxyError::system("open a socket"))?;
    let name = name.to_owned();
    match socket.set_tcp_congestion(name.as_bytes()) {
        Ok(()) => Ok(()),
        Err(error) if error.raw_os_error() == Some(Errno::ENOENT as i32) => {
            let available = read_sysctl("net.ipv4.tcp_available_congestion_control");
            Err(ProxyError::NoAlgorithm { name, available: available.unwrap_or_default() })
        }
        Err(error) if error.raw_os_error() == Some(Errno::EPERM as i32) => {
            Err(ProxyError::AlgorithmNotAllowed { name })
        }
        Err(source) => Err(ProxyError::System { asked: "choose the congestion control", source }),
    }
}
