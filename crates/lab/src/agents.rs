//! The agents of a condition with a law: one process in each station's namespace. The lab reads
//! the state of each one's reservation over its local API.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::Ipv4Addr;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde::{Deserialize, Serialize};
use wakeai_control::{Share, Standing};
use wakeai_host::Lease;
use wakeai_scenario::ResolvedCondition;
use wakeai_units::{Duration, Instant};
use wakeai_world::agent::{AgentLaw, BSSID, acquaintance, station_number};
use wakeai_world::reservations::{ReservationLog, reserved};
use wakeai_world::{STATION_BROADCAST, StationFacts};

use crate::clock;
use crate::daemons::{Daemon, Daemons, file_of};
use crate::error::LabError;
use crate::host::{Host, STATION_INTERFACE, dying_with_us};
use crate::run::Bench;

/// The time between two requests for the state of a reservation: the agent's tick.
const BETWEEN_REQUESTS: Duration = Duration::from_millis(500);
/// An agent usually answers within a millisecond. One that does not is asked again later, so that it does not
/// delay the run.
const ANSWER_TIMEOUT: std::time::Duration = std::time::Duration::from_millis(20);
const STATUS_REQUEST: &[u8] = b"{\"version\":1,\"request\":\"status\"}\n";

/// The running agents of one run.
#[derive(Debug, Default)]
pub(crate) struct Agents {
    running: Daemons<Agent>,
    next_request: Option<Instant>,
}

#[derive(Debug)]
struct Agent {
    /// Index of its station.
    station: usize,
    /// The socket for its `READY=1`.
    notify: UnixDatagram,
    /// The socket of its local API.
    api: PathBuf,
    /// `None` where its configuration has no reservation.
    reservation: Option<ReservationLog>,
    has_answered: bool,
}

impl Agents {
    /// Starts an agent on every station that the condition names, and waits until all are ready.
    /// Configurations and logs go into `directory`, the key and the sockets into the scratch directory.
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
            let (daemon, agent) = Agent::spawn(bench, &config, index, host, directory)?;
            agents.running.push(daemon, agent);
        }
        agents.running.wait_until_ready(bench, Agent::is_ready)?;
        Ok(agents)
    }

    /// The time that they need to know each other; zero without agents.
    pub(crate) fn acquaintance(&self) -> Duration {
        acquaintance(self.running.len())
    }

    /// Whether no agent runs.
    pub(crate) fn is_empty(&self) -> bool {
        self.running.len() == 0
    }

    /// An error where an agent has ended by itself; asks for the state of reservations when that is
    /// due.
    pub(crate) fn check(&mut self) -> Result<(), LabError> {
        let now = clock::now();
        if self.next_request.is_none_or(|next| now >= next) {
            self.next_request = Some(now + BETWEEN_REQUESTS);
            self.update_reservations(now);
        }
        self.running.check()
    }

    /// Asks all agents for the state of their reservations, up to the first that does not answer in time: the
    /// machine is busy then, and each further request could take as long.
    fn update_reservations(&mut self, now: Instant) {
        for agent in self.running.states_mut() {
            let Some(reservation) = &mut agent.reservation else { continue };
            match standing(&agent.api) {
                Ok(standing) => {
                    agent.has_answered = true;
                    reservation.update(now, standing);
                }
                Err(error) => {
                    tracing::debug!(%error, "an agent does not say what it has reserved");
                    return;
                }
            }
        }
    }

    /// Ends all agents; an error where one did not put everything back. Returns the reservations, by
    /// station.
    pub(crate) fn stop(
        mut self,
        lease: &Lease,
    ) -> Result<BTreeMap<usize, ReservationLog>, LabError> {
        self.update_reservations(clock::now());
        let silent = |agent: &Agent| agent.reservation.is_some() && !agent.has_answered;
        if let Some(daemon) = self.running.find(silent) {
            return Err(daemon.failed("it never gave the state of its reservation".to_owned()));
        }
        let reservations = self.running.states();
        let reservations = reservations.map(|of| (of.station, of.reservation.unwrap_or_default()));
        let reservations = reservations.collect();
        self.running.stop(lease)?;
        Ok(reservations)
    }
}

/// The largest ceiling that an agent's configuration accepts; no window reaches it.
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
    /// The agent cannot find this address itself, because to the kernel a TUN device is no broadcast link.
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
    ) -> Result<(Daemon, Self), LabError> {
        let failed = |what: &str| {
            LabError::system::<io::Error>(format!("{what} for the agent of {}", host.name))
        };
        let text = toml::to_string(config).map_err(io::Error::other);
        let config_path = file_of(host, directory, "toml");
        text.and_then(|text| fs::write(&config_path, text)).map_err(failed("write the file"))?;
        // A socket's path must be short, and the path of the logs need not be.
        let notify_path = file_of(host, bench.scratch, "notify");
        let _ = fs::remove_file(&notify_path); // of an earlier run
        let notify = UnixDatagram::bind(&notify_path).map_err(failed("bind the notify socket"))?;
        notify.set_nonblocking(true).map_err(failed("set up the notify socket"))?;
        let mut command = dying_with_us(bench.wakeai);
        command.arg("agent").arg("--config").arg(&config_path);
        command.env("NOTIFY_SOCKET", &notify_path).stdout(Stdio::null());
        let log = file_of(host, directory, "log");
        let daemon = Daemon::spawn("the agent", &mut command, host, bench.lease, log)?;
        let agent = Self {
            station,
            notify,
            api: PathBuf::from(format!("/run/wakeai/agent-{}.sock", host.netns().0)),
            reservation: config.reserve.is_some().then(ReservationLog::default),
            has_answered: false,
        };
        Ok((daemon, agent))
    }

    /// Whether it has sent `READY=1` since the last call, as `sd_notify(3)` has it.
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

/// Writes a new key.
fn write_key(path: &Path) -> io::Result<()> {
    let mut key = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut key)?;
    let _ = fs::remove_file(path); // of an earlier run
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    for byte in key {
        write!(file, "{byte:02x}")?;
    }
    writeln!(file)
}

/// The parts of an answer (`docs/reference/agent.md`) that the lab uses.
#[derive(Deserialize)]
struct Answer {
    status: Status,
}

#[derive(Deserialize)]
struct Status {
    reservation: Option<Reservation>,
}

#[derive(Deserialize)]
struct Reservation {
    standing: Word,
    share: Option<f64>,
    taken: Option<f64>,
    limit: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Waiting,
    Admitted,
    Refused,
    Unmeasured,
}

/// The state of the reservation of the agent whose local API is `socket`.
fn standing(socket: &Path) -> io::Result<Standing> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
    stream.write_all(STATUS_REQUEST)?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    Ok(parse(&line)?)
}

fn parse(line: &str) -> serde_json::Result<Standing> {
    let answer: Answer = serde_json::from_str(line)?;
    Ok(answer.status.reservation.map_or(Standing::None, |said| {
        let (own, taken, limit) = (share(said.share), share(said.taken), share(said.limit));
        match said.standing {
            Word::Waiting => Standing::Waiting,
            Word::Unmeasured => Standing::Unmeasured,
            Word::Admitted => Standing::Admitted { share: own },
            Word::Refused => Standing::Refused { share: own, taken, limit },
        }
    }))
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "to the nearest that there is"
)]
fn share(part: Option<f64>) -> Share {
    // A share above the whole may be requested; it is refused.
    Share::from_ppm((part.unwrap_or(0.0) * f64::from(Share::WHOLE.ppm())).round() as u32)
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

    fn said(reservation: &str) -> Standing {
        let answer = format!("{{\"version\":1,\"status\":{{\"reservation\":{reservation}}}}}");
        parse(&answer).unwrap()
    }

    #[test]
    fn every_state_of_a_reservation_is_parsed() {
        let percent = Share::from_percent;
        assert_eq!(said("null"), Standing::None);
        assert_eq!(said("{\"standing\":\"waiting\"}"), Standing::Waiting);
        assert_eq!(said("{\"standing\":\"unmeasured\",\"share\":null}"), Standing::Unmeasured);
        let admitted = said("{\"standing\":\"admitted\",\"share\":0.4}");
        assert_eq!(admitted, Standing::Admitted { share: percent(40) });
        assert_eq!(
            said("{\"standing\":\"refused\",\"share\":1.2,\"taken\":0.4,\"limit\":0.8}"),
            Standing::Refused { share: percent(120), taken: percent(40), limit: percent(80) }
        );
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        assert!(parse("").is_err());
        assert!(parse("{\"version\":1,\"error\":\"busy\"}").is_err());
    }
}
