//! Prepares the congestion control algorithm of the proxy's connections over the wireless hop.

use nix::errno::Errno;
use socket2::{Domain, Protocol, Socket, Type};
use wakeai_host::{Lease, Role, read_sysctl};
use wakeai_kernel::{Bounded, Control, HOLDS_A_RATE};

use crate::config::Config;
use crate::error::ProxyError;

/// Loads the algorithm if it is one of Wakeai's, and checks that sockets of this process may use
/// it: an unprivileged process can use only algorithms that are loaded and allowed. Returns the
/// handle that sets target rates, if any are configured.
///
/// # Errors
///
/// The kernel does not have the algorithm or does not allow it; a target rate is given for an
/// algorithm other than `wakeai_av`; or no target rate is given for `wakeai_av`.
pub(crate) fn prepare(
    config: &Config,
    lease: &mut Option<Lease>,
) -> Result<Option<Control>, ProxyError> {
    let aims = !config.rates.is_empty();
    if aims && config.algorithm.as_deref() != Some(HOLDS_A_RATE) {
        return Err(ProxyError::HoldsNoRate(config.algorithm.clone()));
    }
    if !aims && config.algorithm.as_deref() == Some(HOLDS_A_RATE) {
        return Err(ProxyError::NeedsRate);
    }
    let Some(name) = &config.algorithm else { return Ok(None) };
    let loads = Bounded::named(name).is_some() && nix::unistd::geteuid().is_root();
    let control = if loads { Some(load(lease)?) } else { None };
    try_out(name)?;
    match control {
        None if aims => Err(ProxyError::RateNotAllowed),
        control => Ok(control.filter(|_| aims)),
    }
}

fn load(held: &mut Option<Lease>) -> Result<Control, ProxyError> {
    lease(held)?.record(wakeai_kernel::parts())?;
    Ok(Control::open()?)
}

/// The proxy's lease, the record of its changes on the host. It is taken at the first change.
pub(crate) fn lease(held: &mut Option<Lease>) -> Result<&mut Lease, ProxyError> {
    Ok(match held {
        Some(lease) => lease,
        None => held.insert(Lease::take(Role::Command)?),
    })
}

fn try_out(name: &str) -> Result<(), ProxyError> {
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
            Err(ProxyError::AlgorithmNotAllowed(name))
        }
        Err(source) => Err(ProxyError::System { asked: "choose the congestion control", source }),
    }
}
