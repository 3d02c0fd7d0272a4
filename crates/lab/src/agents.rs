//! The agents of a condition with a law: one process in each station's namespace.

mod asked;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::Ipv4Addr;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde::Serialize;
use wakeai_host::Lease;
use wakeai_scenario::ResolvedCondition;
use wakeai_units::{Duration, Instant};
use wakeai_world::StationFacts;
use wakeai_world::agent::{AgentLaw, BSSID, acquaintance, station_number};
use wakeai_world::reservations::{Course, reserved};

use crate::clock;
use crate::error::LabError;
use crate::host::{Child, Host, STATION_BROADCAST, STATION_INTERFACE, dying_with_us};
use crate::interrupt::Interrupt;
use crate::run::Bench;

/// How long an agent may take to start (it loads BPF programs) or to put everything back.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two questions what has become of a reservation: an agent's tick.
const BETWEEN_QUESTIONS: Duration = Duration::from_millis(500);
/// Bytes of an agent's log that an error shows.
const TAIL_BYTES: usize = 2_000;

/// The running agents of one run.
#[derive(Debug, Default)]
pub(crate) struct Agents {
    running: Vec<Agent>,
    next_question: Option<Instant>,
}

#[derive(Debug)]
struct Agent {
    child: Child,
    /// Index of its station.
    station: usize,
    ready: UnixDatagram,
    log: PathBuf,
    /// Of its local API.
    socket: PathBuf,
    /// What it says of its reservation, where it has one to ask for.
    reservation: Option<Course>,
    has_answered: bool,
}

impl Agents {
    /// Starts an agent on every station that the condition names, and waits until all are ready.
    /// Configurations and logs go into `directory`; the key and the sockets, which are of no use
    /// after the run, do not.
    pub(crate) fn start(
        bench: &Bench<'_>,
        condition: &ResolvedCondition,
        facts: &[StationFacts],
        stations: &[Host],
        directory: &Path,
    ) -> Result<Self, LabError> {
        let laws = AgentLaw::of_stations(condition);
        if laws.iter().all(Option::is_none) {
            return Ok(Self::default());
        }
        let written = |what: &str| LabError::system::<io::Error>(format!("write {what}"));
        fs::create_dir_all(directory).map_err(written("the agents' directory"))?;
        let key_file = bench.scratch.join("group.key");
        write_key(&key_file).map_err(written("the group key"))?;
        let bssid = BSSID.map(|octet| format!("{octet:02x}")).join(":");
        let mut agents = Self::default();
        let reserved = reserved(&condition.scenario.expand(0));
        for (index, (host, law)) in stations.iter().zip(laws).enumerate() {
            let Some(law) = law else { continue };
            let access_point = &condition.scenario.access_point;
            let config = Config {
                interface: STATION_INTERFACE,
                key_file: &key_file,
                station: station_number(index),
                bssid: &bssid,
                link_rate: facts[index].link_rate.map(|rate| rate.to_string()),
                max: facts[index].max.map(|rate| rate.to_string()),
                reserve: reserved[index].map(|rate| rate.to_string()),
                presence: PresenceSection { broadcast: STATION_BROADCAST },
                access_point: AccessPointSection {
                    buffer: access_point.buffer,
                    basic_rate: access_point.wifi().map(|wifi| wifi.basic_rate.to_string()),
                },
                law: LawSection::of(law),
            };
            agents.running.push(Agent::spawn(bench, &config, index, host, directory)?);
        }
        for agent in &mut agents.running {
            agent.wait_until_ready(bench.interrupt)?;
        }
        Ok(agents)
    }

    /// How long they need to know each other; nothing where none runs.
    pub(crate) fn acquaintance(&self) -> Duration {
        let agents = self.running.len();
        if agents > 0 { acquaintance(agents) } else { Duration::ZERO }
    }

    /// Whether no station runs one.
    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// An error where an agent has ended by itself; once in a while asks what has become of
    /// reservations.
    pub(crate) fn look(&mut self) -> Result<(), LabError> {
        let now = clock::now();
        let asks = self.next_question.is_none_or(|next| now >= next);
        if asks {
            self.next_question = Some(now + BETWEEN_QUESTIONS);
        }
        if asks {
            self.ask(now);
        }
        for agent in &mut self.running {
            if let Ok(Some(status)) = agent.child.try_wait() {
                return Err(agent.failed(format!("it ended in mid-run ({status})")));
            }
        }
        Ok(())
    }

    /// What has become of reservations. One agent that is held up ends the round: where one is,
    /// others are.
    fn ask(&mut self, now: Instant) {
        for agent in &mut self.running {
            let Some(reservation) = &mut agent.reservation else { continue };
            match asked::standing(&agent.socket) {
                Ok(standing) => {
                    agent.has_answered = true;
                    reservation.look(now, standing);
                }
                Err(error) => {
                    tracing::debug!(%error, "an agent does not say what it has reserved");
                    return;
                }
            }
        }
    }

    /// Asks all agents to put everything back and to end; an error where one did not do so. Says
    /// what has become of their reservations, by station.
    pub(crate) fn stop(mut self, lease: &Lease) -> Result<BTreeMap<usize, Course>, LabError> {
        self.ask(clock::now());
        let silent = self.running.iter().find(|of| of.reservation.is_some() && !of.has_answered);
        if let Some(agent) = silent {
            return Err(agent.failed("it never said what became of its reservation".to_owned()));
        }
        let said = self.running.iter().map(|of| (of.station, of.reservation.unwrap_or_default()));
        let reservations = said.collect();
        self.running.iter().for_each(|agent| agent.child.terminate());
        let mut result = Ok(());
        for mut agent in std::mem::take(&mut self.running) {
            let failure = match agent.child.wait_for(PATIENCE) {
                Some(status) if status.success() => None,
                Some(status) => Some(format!("it ended with {status} on SIGTERM")),
                None => Some(format!("it did not end within {PATIENCE} of SIGTERM")),
            };
            if let Some(reason) = failure {
                result = result.and(Err(agent.failed(reason)));
            }
            agent.child.end(lease)?;
        }
        result.map(|()| reservations)
    }
}

impl Drop for Agents {
    /// Where a run fails: agents put their changes back themselves, if they are given the time.
    fn drop(&mut self) {
        self.running.iter().for_each(|agent| agent.child.terminate());
        for agent in &mut self.running {
            let _ = agent.child.wait_for(PATIENCE);
        }
    }
}

/// The largest ceiling that an agent's configuration takes: as good as none.
const MAX_CEILING: u32 = 1_000_000;

#[derive(Serialize)]
struct Config<'a> {
    interface: &'a str,
    key_file: &'a Path,
    station: u64,
    bssid: &'a str,
    link_rate: Option<String>,
    max: Option<String>,
    reserve: Option<String>,
    presence: PresenceSection,
    access_point: AccessPointSection,
    law: LawSection,
}

#[derive(Serialize)]
struct PresenceSection {
    /// A TUN device is no broadcast link to the kernel: the agent would not find its address.
    broadcast: Ipv4Addr,
}

#[derive(Serialize)]
struct AccessPointSection {
    buffer: u32,
    basic_rate: Option<String>,
}

#[derive(Serialize)]
struct LawSection {
    name: &'static str,
    floor: Option<u32>,
    ceiling: Option<u32>,
}

impl LawSection {
    fn of(law: AgentLaw) -> Self {
        let named = |name| Self { name, floor: None, ceiling: None };
        match law {
            AgentLaw::Watch => named("none"),
            AgentLaw::Fixed(floor, ceiling) => Self {
                floor: Some(floor.get()),
                ceiling: Some(ceiling.get().min(MAX_CEILING)),
                ..named("fixed")
            },
            AgentLaw::Named(law) => named(law.name()),
        }
    }
}

impl Agent {
    fn spawn(
        bench: &Bench<'_>,
        config: &Config<'_>,
        station: usize,
        host: &Host,
        directory: &Path,
    ) -> Result<Self, LabError> {
        let failed = |what: &str| {
            LabError::system::<io::Error>(format!("{what} for the agent of {}", host.name))
        };
        let path = |suffix: &str| directory.join(format!("{}.{suffix}", host.name));
        let text = toml::to_string(config).map_err(io::Error::other);
        let config_path = path("toml");
        text.and_then(|text| fs::write(&config_path, text)).map_err(failed("write the file"))?;
        let log = path("log");
        let log_file = File::create(&log).map_err(failed("create the log"))?;
        // A short path, which a socket can have wherever the logs are.
        let notify_path = bench.scratch.join(format!("{}.notify", host.name));
        let _ = fs::remove_file(&notify_path); // of the run before
        let ready = UnixDatagram::bind(&notify_path).map_err(failed("bind the notify socket"))?;
        ready.set_nonblocking(true).map_err(failed("set up the notify socket"))?;
        let mut command = dying_with_us(bench.wakeai);
        command.arg("agent").arg("--config").arg(&config_path);
        command.env("NOTIFY_SOCKET", &notify_path);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log_file);
        Ok(Self {
            child: Child::spawn(&mut command, host, bench.lease)?,
            station,
            ready,
            log,
            socket: PathBuf::from(format!("/run/wakeai/agent-{}.sock", host.netns().0)),
            reservation: config.reserve.is_some().then(Course::default),
            has_answered: false,
        })
    }

    /// `READY=1`, as `sd_notify(3)` has it.
    fn wait_until_ready(&mut self, interrupt: &Interrupt) -> Result<(), LabError> {
        let deadline = clock::now() + PATIENCE;
        let mut message = [0; 4096];
        loop {
            interrupt.check()?;
            if let Ok(length) = self.ready.recv(&mut message) {
                if message[..length].split(|byte| *byte == b'\n').any(|line| line == b"READY=1") {
                    return Ok(());
                }
                continue;
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(self.failed(format!("it ended before it was ready ({status})")));
            }
            if clock::now() >= deadline {
                return Err(self.failed(format!("it was not ready within {PATIENCE}")));
            }
            clock::sleep(Duration::from_millis(5));
        }
    }

    fn failed(&self, reason: String) -> LabError {
        let log = fs::read(&self.log).unwrap_or_default();
        let tail = &log[log.len().saturating_sub(TAIL_BYTES)..];
        LabError::Child {
            program: "the agent",
            station: self.child.station.clone(),
            reason,
            log: String::from_utf8_lossy(tail).into_owned(),
        }
    }
}

/// A fresh key for this run alone.
fn write_key(path: &Path) -> io::Result<()> {
    let mut key = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut key)?;
    let _ = fs::remove_file(path); // of the run before
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    for byte in key {
        write!(file, "{byte:02x}")?;
    }
    writeln!(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_s_file_says_what_its_station_is() {
        let config = Config {
            interface: STATION_INTERFACE,
            key_file: Path::new("/run/group.key"),
            station: 3,
            bssid: "02:57:41:4b:45:41",
            link_rate: Some(wakeai_units::Rate::from_mbps(54).to_string()),
            max: None,
            reserve: Some(wakeai_units::Rate::from_bps(9_660_000).to_string()),
            presence: PresenceSection { broadcast: STATION_BROADCAST },
            access_point: AccessPointSection { buffer: 300, basic_rate: None },
            law: LawSection { name: "fixed", floor: Some(1), ceiling: Some(50) },
        };
        let expected = "interface = \"wlan0\"\nkey_file = \"/run/group.key\"\nstation = 3\n\
                        bssid = \"02:57:41:4b:45:41\"\nlink_rate = \"54Mbit/s\"\nreserve = \"9.66Mbit/s\"\n\n\
                        [presence]\nbroadcast = \"10.73.255.255\"\n\n\
                        [access_point]\nbuffer = 300\n\n\
                        [law]\nname = \"fixed\"\nfloor = 1\nceiling = 50\n";
        assert_eq!(toml::to_string(&config).unwrap(), expected);
    }
}
