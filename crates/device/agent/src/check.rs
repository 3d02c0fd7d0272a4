//! Finds all reasons for which a start would fail, without changing anything.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use wakeai_api::config::{Config, Examined};
use wakeai_daemon::metrics::Endpoint;
use wakeai_host::{NetnsId, Role, read_sysctl};
use wakeai_kernel::{Bounded, features};

use crate::error::AgentError;
use crate::interface::Interface;
use crate::key::GroupKeys;
use crate::run::{ask_wifi, check_socket, derived_station, event_loop, group_id};
use crate::station::{DEFAULT_ALGORITHM, destination, open_presence};

/// The findings of [`check`].
#[derive(Debug, Default)]
pub struct Findings {
    /// Reasons for which a start would fail.
    pub problems: Vec<AgentError>,
    /// Remarks on the effects of a start.
    pub notes: Vec<String>,
}

/// Checks that only root and the user who runs the agent can change the configuration. The
/// configuration needs this protection because it names files and the law.
///
/// # Errors
/// [`AgentError::ConfigFile`]. If the metadata cannot be read, this check finds no error. Reading
/// the file then reports the reason.
pub fn check_config_file(path: &Path) -> Result<(), AgentError> {
    let Ok(metadata) = fs::metadata(path) else { return Ok(()) };
    let (owner, mode) = (metadata.uid(), metadata.mode() & 0o777);
    let trusted = [0, nix::unistd::geteuid().as_raw()];
    if trusted.contains(&owner) && mode & 0o022 == 0 {
        return Ok(());
    }
    Err(AgentError::ConfigFile { path: path.to_owned(), owner, mode })
}

/// The input of the checks: the configuration, and the interface that it names.
struct Subject<'a> {
    examined: &'a Examined,
    config: &'a Config,
    /// The interface. It is `None` if the interface does not exist, or if its name in the
    /// configuration is invalid.
    interface: Option<Interface>,
}

/// A check. It returns the problem that it finds. If it depends on a key that is invalid, it finds
/// no problem.
type Check = fn(&Subject<'_>) -> Result<(), AgentError>;

const CHECKS: [Check; 9] =
    [key, interface, station, access_point, metrics, port, group, socket, kernel];

/// Checks this machine and the calling thread's network namespace in the same way as a start.
pub fn check(examined: &Examined) -> Findings {
    let Some(config) = &examined.config else { return Findings::default() };
    let found = examined.is_good("interface").then(|| Interface::find(&config.interface).ok());
    let subject = Subject { examined, config, interface: found.flatten() };
    let problems = CHECKS.iter().filter_map(|check| check(&subject).err());
    Findings { problems: problems.collect(), notes: notes(&subject) }
}

fn key(subject: &Subject<'_>) -> Result<(), AgentError> {
    if subject.examined.is_good("key_file") {
        GroupKeys::load(&subject.config.key_file)?;
    }
    Ok(())
}

fn interface(subject: &Subject<'_>) -> Result<(), AgentError> {
    if subject.examined.is_good("interface") {
        Interface::find(&subject.config.interface)?;
    }
    Ok(())
}

fn station(subject: &Subject<'_>) -> Result<(), AgentError> {
    match (subject.interface, subject.config.station) {
        (Some(interface), None) if subject.examined.is_good("station") => {
            derived_station(subject.config, interface).map(|_| ())
        }
        _ => Ok(()),
    }
}

fn access_point(subject: &Subject<'_>) -> Result<(), AgentError> {
    let is_stated = subject.config.bssid.is_some() || !subject.examined.is_good("bssid");
    match subject.interface {
        Some(interface) if !is_stated => {
            event_loop()?.block_on(ask_wifi(subject.config, interface)).map(drop)
        }
        _ => Ok(()),
    }
}

/// Checks that the presence port can be bound. The port is not checked while an agent runs in this
/// network namespace, because that agent may use the port.
fn port(subject: &Subject<'_>) -> Result<(), AgentError> {
    let config = subject.config;
    let is_good = subject.examined.is_good("presence.port");
    let Some(interface) = subject.interface.filter(|_| is_good && running_agent().is_none()) else {
        return Ok(());
    };
    match open_presence(config, interface) {
        // Binding the port may need a privilege. Without that privilege, the state of the port
        // is unknown.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        opened => opened.map(|_| ()).map_err(AgentError::system(format!(
            "bind UDP port {} on {}",
            config.presence.port, config.interface
        ))),
    }
}

/// Checks that the address for the metrics is free. The address is not checked while an agent runs
/// in this network namespace, because that agent may use the address.
fn metrics(subject: &Subject<'_>) -> Result<(), AgentError> {
    match subject.config.metrics {
        Some(address) if running_agent().is_none() => Ok(Endpoint::bind(address).map(|_| ())?),
        _ => Ok(()),
    }
}

fn group(subject: &Subject<'_>) -> Result<(), AgentError> {
    subject.config.api.group.as_ref().map_or(Ok(()), |group| group_id(group).map(|_| ()))
}

fn socket(subject: &Subject<'_>) -> Result<(), AgentError> {
    if subject.examined.is_good("api.socket") {
        check_socket(subject.config)?;
    }
    Ok(())
}

fn kernel(subject: &Subject<'_>) -> Result<(), AgentError> {
    let rules = subject.config.law.is_some();
    features::detect().lacks_for_agent(rules).map_or(Ok(()), |missing| Err(missing.into()))
}

fn notes(subject: &Subject<'_>) -> Vec<String> {
    let config = subject.config;
    let mut notes = Vec::new();
    if subject.interface.is_some() {
        let (to, why) = destination(config, subject.interface);
        notes.push(format!("presence messages are sent to {to}:{} ({why})", config.presence.port));
    }
    if subject.interface.is_some_and(|interface| !interface.up) {
        notes.push(format!("{} is down: the agent will wait for it", config.interface));
    }
    let default = read_sysctl(DEFAULT_ALGORITHM).unwrap_or_default();
    let is_bound = Bounded::instead_of(&default).is_some() || Bounded::named(&default).is_some();
    if config.law.is_some() && !is_bound {
        notes.push(format!(
            "new connections use {default} by default: the agent bounds only those that select cubic or reno"
        ));
    }
    if let Some((pid, interface)) = running_agent() {
        notes.push(format!(
            "an agent runs here already (pid {pid}, interface {interface}): stop it before another is \
             started"
        ));
    }
    notes
}

/// The running agent of this network namespace.
fn running_agent() -> Option<(i32, String)> {
    let here = NetnsId::current().ok()?;
    let holders = wakeai_host::holders().unwrap_or_default();
    holders.into_iter().filter(|holder| holder.process.is_alive()).find_map(|holder| {
        match holder.role {
            Role::Agent { netns, interface } if netns == here => {
                Some((holder.process.pid, interface))
            }
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_configuration_that_others_may_write_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("agent.toml");
        fs::write(&path, "").unwrap();
        for (mode, is_good) in [(0o644, true), (0o600, true), (0o664, false), (0o646, false)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let said = check_config_file(&path).map_err(|error| error.to_string());
            assert_eq!(said.is_ok(), is_good, "{mode:o}: {said:?}");
            if let Err(said) = said {
                assert!(said.contains(&format!("mode {mode:03o}")), "{said}");
            }
        }
        if nix::unistd::geteuid().is_root() {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            std::os::unix::fs::chown(&path, Some(65533), None).unwrap();
            let said = check_config_file(&path).unwrap_err().to_string();
            assert!(said.contains("user 65533"), "{said}");
        }
    }
}
