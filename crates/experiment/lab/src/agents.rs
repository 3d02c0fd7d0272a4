//! The agents of a run: where a condition names a law (the rule by which agents bound connections),
//! one agent runs in each station's namespace. The lab asks each agent over its local API for the
//! state of its reservation, the rate that its peers leave free for it.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use wakeai_api::config::{Bssid, Config, Queue};
use wakeai_api::{AskError, Body, Request, Reservation};
use wakeai_control::LawConfig;
use wakeai_control::ReservationState;
use wakeai_host::Lease;
use wakeai_scenario::ResolvedCondition;
use wakeai_units::{Duration, Instant, Rate};
use wakeai_world::agent::{acquaintance, bssid, station_number};
use wakeai_world::reservations::{ReservationLog, reserved};
use wakeai_world::{STATION_BROADCAST, StationFacts};

use crate::clock;
use crate::daemons::{Daemon, Daemons, file_of};
use crate::error::LabError;
use crate::host::{Host, STATION_INTERFACE, held_back};
use crate::shared::SharedResources;

/// The time between two requests for the state of a reservation. Agents decide at this interval.
const BETWEEN_REQUESTS: Duration = Duration::from_millis(500);
/// The longest wait for an agent's answer, which usually takes less than a millisecond. The limit
/// keeps the agent from delaying the run; the lab asks it again later.
const ANSWER_TIMEOUT: std::time::Duration = std::time::Duration::from_millis(20);

/// The running agents of one run.
#[derive(Debug, Default)]
pub(crate) struct Agents {
    running: Daemons<Agent>,
    next_request: Option<Instant>,
}

#[derive(Debug)]
struct Agent {
    /// The index of the agent's station.
    station: usize,
    /// The socket on which the agent announces that it is ready (`READY=1`).
    notify: UnixDatagram,
    /// The socket of the agent's local API.
    api: PathBuf,
    /// The states of the agent's reservation; `None` if its configuration has no reservation.
    reservation: Option<ReservationLog>,
    has_answered: bool,
}

impl Agents {
    /// Starts an agent on every station that the condition names, and waits until all are ready.
    /// Configurations and logs go into `directory`, the key and the sockets into the scratch directory.
    pub(crate) fn start(
        shared: &SharedResources<'_>,
        condition: &ResolvedCondition,
        facts: &[StationFacts],
        stations: &[Host],
        directory: &Path,
    ) -> Result<Self, LabError> {
        let (runs, laws) = (condition.agents(), condition.laws());
        if runs.iter().all(|runs| !runs) {
            return Ok(Self::default());
        }
        let written = |what: &str| LabError::system::<io::Error>(format!("write {what}"));
        fs::create_dir_all(directory).map_err(written("the agents' directory"))?;
        let key_file = shared.scratch.join("group.key");
        write_key(&key_file).map_err(written("the group key"))?;
        let mut agents = Self::default();
        let reserved = reserved(&condition.experiment.expand(0));
        for (index, (host, law)) in stations.iter().zip(laws).enumerate() {
            if !runs[index] {
                continue;
            }
            let facts = &facts[index];
            let mut config = config(condition, &key_file, index, law, facts, reserved[index]);
            config.metrics = shared.metrics;
            let (daemon, agent) = Agent::spawn(shared, &config, index, host, directory)?;
            agents.running.0.push((daemon, agent));
        }
        agents.running.wait_until_ready(shared, Agent::is_ready)?;
        Ok(agents)
    }

    /// The time that the agents need to know each other; zero without agents.
    pub(crate) fn acquaintance(&self) -> Duration {
        acquaintance(self.running.0.len())
    }

    /// The socket of the local API of the agent on the station; `None` where none runs there.
    pub(crate) fn api_on(&mut self, station: usize) -> Option<PathBuf> {
        let mut agents = self.running.0.iter().map(|(_, agent)| agent);
        agents.find(|agent| agent.station == station).map(|agent| agent.api.clone())
    }

    /// Whether no agent runs.
    pub(crate) fn is_empty(&self) -> bool {
        self.running.0.is_empty()
    }

    /// Returns an error if an agent has ended by itself. Every [`BETWEEN_REQUESTS`] it also asks
    /// for the states of the reservations.
    pub(crate) fn check(&mut self) -> Result<(), LabError> {
        let now = clock::now();
        if self.next_request.is_none_or(|next| now >= next) {
            self.next_request = Some(now + BETWEEN_REQUESTS);
            self.update_reservations(now);
        }
        self.running.check()
    }

    /// Asks the agents for the states of their reservations. It stops at the first agent that does
    /// not answer in time, because the machine is then busy and each request could take as long.
    fn update_reservations(&mut self, now: Instant) {
        for (_, agent) in &mut self.running.0 {
            let Some(reservation) = &mut agent.reservation else { continue };
            match reservation_state(&agent.api) {
                Ok(state) => {
                    agent.has_answered = true;
                    reservation.update(now, state);
                }
                Err(error) => {
                    tracing::debug!(%error, "an agent did not answer the request for the state of its reservation");
                    return;
                }
            }
        }
    }

    /// Ends all agents of a run that ended at `end`. Returns the reservations by station until then, or an error
    /// if an agent did not undo its changes.
    pub(crate) fn stop(
        mut self,
        lease: &Lease,
        end: Instant,
    ) -> Result<BTreeMap<usize, ReservationLog>, LabError> {
        self.update_reservations(end);
        let silent = |agent: &Agent| agent.reservation.is_some() && !agent.has_answered;
        if let Some((daemon, _)) = self.running.0.iter().find(|(_, agent)| silent(agent)) {
            return Err(daemon.failed("it never gave the state of its reservation".to_owned()));
        }
        let reservations = self.running.0.iter();
        let reservations =
            reservations.map(|(_, of)| (of.station, of.reservation.unwrap_or_default()));
        let reservations = reservations.collect();
        self.running.stop(lease)?;
        Ok(reservations)
    }
}

impl Agent {
    fn spawn(
        shared: &SharedResources<'_>,
        config: &Config,
        station: usize,
        host: &Host,
        directory: &Path,
    ) -> Result<(Daemon, Self), LabError> {
        let failed = |what: &str| {
            LabError::system::<io::Error>(format!("{what} for the agent of {}", host.name))
        };
        let text = config.to_toml().map_err(io::Error::other);
        let config_path = file_of(host, directory, "toml");
        text.and_then(|text| fs::write(&config_path, text)).map_err(failed("write the file"))?;
        // The path of a socket must be short, and that of the logs' directory may be long.
        let notify_path = file_of(host, shared.scratch, "notify");
        let _ = fs::remove_file(&notify_path); // an earlier run may have left it
        let notify = UnixDatagram::bind(&notify_path).map_err(failed("bind the notify socket"))?;
        notify.set_nonblocking(true).map_err(failed("set up the notify socket"))?;
        let mut command = held_back(shared.wakeai);
        command.arg("agent").arg("--config").arg(&config_path);
        command.env("NOTIFY_SOCKET", &notify_path).stdout(Stdio::null());
        let log = file_of(host, directory, "log");
        let daemon = Daemon::spawn("the agent", &mut command, host, shared.lease, log)?;
        let agent = Self {
            station,
            notify,
            api: wakeai_host::state().join(format!("agent-{}.sock", host.netns().0)),
            reservation: config.reserve.is_some().then(ReservationLog::default),
            has_answered: false,
        };
        Ok((daemon, agent))
    }

    /// Whether the agent has sent `READY=1` since the last call (`sd_notify(3)`).
    fn is_ready(&self) -> bool {
        let mut message = [0; 4096];
        while let Ok(length) = self.notify.recv(&mut message) {
            if message[..length].split(|byte| *byte == b'\n').any(|line| line == b"READY=1") {
                return true;
            }
        }
        false
    }
}

/// Creates a group key and writes it to a file.
fn write_key(path: &Path) -> io::Result<()> {
    let mut key = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut key)?;
    let _ = fs::remove_file(path); // an earlier run may have left it
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    for byte in key {
        write!(file, "{byte:02x}")?;
    }
    writeln!(file)
}

/// The state of the reservation of the agent whose local API is `socket`.
fn reservation_state(socket: &Path) -> Result<ReservationState, AskError> {
    match wakeai_api::ask(socket, Request::Status, ANSWER_TIMEOUT)? {
        Body::Status(status) => {
            Ok(status.reservation.as_ref().map_or(ReservationState::None, Reservation::state))
        }
        _ => Err(AskError::other_answer(socket)),
    }
}

/// The configuration of a station's agent.
fn config(
    condition: &ResolvedCondition,
    key_file: &Path,
    index: usize,
    law: Option<LawConfig>,
    facts: &StationFacts,
    reserve: Option<Rate>,
) -> Config {
    let group = condition.experiment.group_of(index);
    let access_point = condition.experiment.access_point_of(group);
    let mut config = Config::new(STATION_INTERFACE, key_file);
    config.station = Some(station_number(index));
    config.bssid = Some(Bssid(bssid(group.bss)));
    config.link_rate = facts.link_rate;
    config.max = facts.max;
    config.max_down = facts.max_down;
    config.reserve = reserve;
    // The agent cannot find the broadcast address itself, because the kernel gives a TUN device
    // none.
    config.presence.broadcast = Some(STATION_BROADCAST);
    config.access_point.buffer = access_point.buffer.full_packets();
    if let Some(wifi) = access_point.wifi() {
        config.access_point.basic_rate = wifi.basic_rate;
    }
    config.law = law;
    // The lab has set the queues of its hosts, and a change of them would count as another network.
    config.datagrams.queue = Queue::Leave;
    config
}

#[cfg(test)]
mod tests {
    use wakeai_scenario::Scenario;
    use wakeai_units::Segments;

    use super::*;

    #[test]
    fn an_agents_file_says_what_its_station_is() {
        let text = "name = \"x\"\nduration = \"9s\"\naccess_point = { standard = \"802.11g\", buffer = 200 }\n\
                    stations = [{ name = \"a\", count = 3 }]\nflows = [{ from = \"a\", to = \"server\" }]\n\
                    conditions = [{ name = \"c\", law = \"fixed\", bounds = [{ stations = \"a\", ceiling = 50 }] }]";
        let condition = &Scenario::parse(text).unwrap().conditions()[0];
        let law = condition.laws().swap_remove(0);
        let facts =
            StationFacts { link_rate: Some(Rate::from_mbps(54)), ..StationFacts::default() };
        let reserve = Some(Rate::from_bps(9_660_000));
        let written = config(condition, Path::new("/run/group.key"), 2, law, &facts, reserve);
        let read = Config::parse(&written.to_toml().unwrap()).unwrap();
        assert_eq!(read, written);
        assert_eq!((read.station, read.access_point.buffer), (Some(3), 200));
        assert_eq!(read.link_rate, Some(Rate::from_mbps(54)));
        assert_eq!(read.presence.broadcast, Some(STATION_BROADCAST));
        assert_eq!(read.bssid.unwrap().to_string(), "02:57:41:4b:45:41");
        let bounds = LawConfig::by_hand(Segments::ZERO, Segments::new(50));
        assert_eq!((read.reserve, read.law), (reserve, Some(bounds)));
    }

    /// The law of a condition with `law`, and that of an agent with the same keys; `None` where a
    /// reader refuses them.
    fn both_readers(law: &str, keys: &str) -> [Option<LawConfig>; 2] {
        let scenario = format!(
            "name = \"x\"\nduration = \"9s\"\naccess_point = {{ standard = \"802.11g\" }}\n\
             stations = [{{ name = \"a\" }}]\nflows = [{{ from = \"a\", to = \"server\" }}]\n\
             conditions = [{{ name = \"c\", {law} }}]"
        );
        let scenario = Scenario::parse(&scenario).ok();
        let of_scenario =
            scenario.map(|scenario| scenario.conditions()[0].laws().swap_remove(0).unwrap());
        let config = format!("interface = \"w\"\nkey_file = \"/k\"\n[law]\n{keys}\n");
        [of_scenario, Config::parse(&config).ok().map(|config| config.law.unwrap())]
    }

    #[test]
    fn a_condition_and_an_agent_read_a_law_alike() {
        for (keys, accepted) in [
            ("queue_min = \"75ms\"", true),
            ("queue_min = \"76ms\"", false),
            ("queue_max = \"1ms\"", true),
            ("queue_max = \"999us\"", false),
            ("queue_min = \"1ms\"", true),
            ("queue_min = \"999us\"", false),
            ("queue_min = 5", false),
            ("queue_max = \"10s\"", true),
            ("queue_max = \"11s\"", false),
            ("queue_rounds_percent = 1", true),
            ("queue_rounds_percent = 0", false),
            ("queue_rounds_percent = 10000", true),
            ("queue_rounds_percent = 10001", false),
            ("downloads = false", true),
            ("downloads = 0", false),
            ("queue_rounds_percent = 50, queue_min = \"2ms\", queue_max = \"3ms\"", true),
        ] {
            let law = format!("law = {{ name = \"airtime\", {keys} }}");
            let of_agent = format!("name = \"airtime\"\n{}", keys.replace(", ", "\n"));
            let [scenario, agent] = both_readers(&law, &of_agent);
            assert_eq!(scenario, agent, "{keys}");
            assert_eq!(scenario.is_some(), accepted, "{keys}");
        }
        for (keys, accepted) in [
            ("ceiling = 50, small_queue = \"1B\"", true),
            ("ceiling = 50, small_queue = \"0B\"", false),
            ("ceiling = 50, small_queue = \"100MB\"", true),
            ("ceiling = 50, small_queue = \"101MB\"", false),
            ("floor = 5, small_queue = \"9kB\"", false),
        ] {
            let law = format!("law = \"fixed\", bounds = [{{ stations = \"a\", {keys} }}]");
            let of_agent = format!("name = \"fixed\"\n{}", keys.replace(", ", "\n"));
            let [scenario, agent] = both_readers(&law, &of_agent);
            assert_eq!(scenario, agent, "{keys}");
            assert_eq!(scenario.is_some(), accepted, "{keys}");
        }
    }
}
