//! Finds all reasons for which a start would fail, without changing anything.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use tokio::runtime::Runtime;
use wakeai_api::config::{Config, Examined, Queue};
use wakeai_daemon::metrics::Endpoint;
use wakeai_host::{DEFAULT_ALGORITHM, Departures, NetnsId, Role, departures, read_sysctl};
use wakeai_kernel::{Bounded, features};

use crate::error::AgentError;
use crate::interface::Interface;
use crate::key::GroupKeys;
use crate::run::{ask_wifi, check_socket, derived_station, event_loop, group_id, port_taken};
use crate::station::{destination, open_presence};

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

/// Checks this machine and the calling thread's network namespace in the same way as a start. What
/// depends on a key that is invalid is not checked.
pub fn check(examined: &Examined) -> Findings {
    let mut findings = Findings::default();
    let Some(config) = &examined.config else { return findings };
    if examined.is_good("key_file") {
        findings.value(GroupKeys::load(&config.key_file));
    }
    let interface = examined.is_good("interface").then(|| Interface::find(&config.interface));
    let interface = interface.and_then(|found| findings.value(found));
    if let Some(interface) = interface {
        check_station(examined, config, interface, &mut findings);
    }
    let running = running_agent();
    if running.is_none() {
        // An agent that runs in this network namespace may use the address and the port.
        if let Some(address) = config.metrics {
            findings.value(Endpoint::bind(address));
        }
        if let Some(interface) = interface.filter(|_| examined.is_good("presence.port")) {
            findings.value(check_port(config, interface));
        }
    }
    if let Some(group) = &config.api.group {
        findings.value(group_id(group));
    }
    if examined.is_good("api.socket") {
        findings.value(check_socket(config));
    }
    let missing = features::detect().lacks_for_agent(config.law.is_some());
    findings.problems.extend(missing.map(AgentError::from));
    findings.notes = notes(config, interface, running);
    findings
}

impl Findings {
    /// The value, or `None` after adding the problem.
    fn value<T, E: Into<AgentError>>(&mut self, found: Result<T, E>) -> Option<T> {
        found.map_err(|error| self.problems.push(error.into())).ok()
    }
}

/// Checks the station's number and its access point.
fn check_station(
    examined: &Examined,
    config: &Config,
    interface: Interface,
    findings: &mut Findings,
) {
    if config.station.is_none() && examined.is_good("station") {
        findings.value(derived_station(config, interface));
    }
    if config.bssid.is_none() && examined.is_good("bssid") {
        let asked = |runtime: Runtime| runtime.block_on(ask_wifi(config, interface));
        findings.value(event_loop().and_then(asked));
    }
}

/// Checks that the presence port can be bound.
fn check_port(config: &Config, interface: Interface) -> Result<(), AgentError> {
    match open_presence(config, interface) {
        // Binding the port may need a privilege. Without that privilege, the state of the port
        // is unknown.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        opened => opened.map(drop).map_err(port_taken(config)),
    }
}

fn notes(
    config: &Config,
    interface: Option<Interface>,
    running: Option<(i32, String)>,
) -> Vec<String> {
    let mut notes = Vec::new();
    if interface.is_some() {
        let (to, why) = destination(config, interface);
        notes.push(format!("presence messages are sent to {to}:{} ({why})", config.presence.port));
    }
    if interface.is_some_and(|interface| !interface.up) {
        notes.push(format!("{} is down: the agent will wait for it", config.interface));
    }
    let default = read_sysctl(DEFAULT_ALGORITHM).unwrap_or_default();
    let is_bound = Bounded::instead_of(&default).is_some() || Bounded::named(&default).is_some();
    if config.law.is_some() && !is_bound {
        notes.push(format!(
            "new connections use {default} by default: the agent bounds only those that select cubic, \
             reno or bbr"
        ));
    }
    if interface.is_some() && config.law.is_some() {
        notes.extend(how_datagrams_are_slowed(config));
    }
    if let Some((pid, interface)) = running {
        notes.push(format!(
            "an agent runs here already (pid {pid}, interface {interface}): stop it before another is \
             started"
        ));
    }
    notes
}

/// Whether datagrams above their rate will wait or be dropped, and why. `None` where the discipline cannot be read.
fn how_datagrams_are_slowed(config: &Config) -> Option<String> {
    let fq = config.datagrams.queue == Queue::Fq;
    let (waits, why) = match departures(&config.interface).ok()? {
        Departures::Obeyed => (true, "the queueing discipline obeys departure times".to_owned()),
        Departures::Chosen(found) => {
            (false, format!("{found} was chosen as the queueing discipline, and stays"))
        }
        Departures::Default(_) if !fq => (false, "datagrams.queue is \"leave\"".to_owned()),
        Departures::Default(_) if !features::has_fq() => {
            (false, "the kernel has no fq (sch_fq)".to_owned())
        }
        Departures::Default(found) => {
            let found = found.as_deref().unwrap_or("the default queueing discipline");
            (true, format!("the agent puts fq in place of {found}"))
        }
    };
    let how = if waits { "wait for their departure" } else { "are marked and dropped" };
    Some(format!("datagrams above their flow's rate {how}: {why}"))
}

/// The running agent of this network namespace.
fn running_agent() -> Option<(i32, String)> {
    let here = NetnsId::current().ok()?;
    let holders = wakeai_host::holders().unwrap_or_default();
    holders.into_iter().find_map(|holder| match holder.role {
        Role::Agent { netns, interface } if netns == here => Some((holder.process.pid, interface)),
        _ => None,
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
