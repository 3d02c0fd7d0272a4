//! Looks at all machines before an experiment: what each is, what is in the way, and what to do about it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{LineStyle, Table};
use serde::Serialize;
use wakeai_host::read_clock;
use wakeai_scenario::Scenario;
use wakeai_units::Duration;
use wakeai_world::{Progress, RunError, chosen};

use crate::control::verdict::others_while_idle;
use crate::control::{
    CONNECT_PATIENCE, FieldOptions, Helper, HelperError, bring, connect_all, each, pause, random,
    remove_program,
};
use crate::error::FieldError;
use crate::machines::Place;
use crate::protocol::{Air, Answer, Ask, Facts, InspectAsk, Token, Way};

/// The exchanges by which a clock is measured.
const EXCHANGES: u32 = 5;
/// A difference of the wall clocks from which on it is said.
const WALL_DIFFERENCE_S: f64 = 10.0;
/// The time over which the use of the channel by others is measured.
const LISTEN: Duration = Duration::from_secs(3);
/// The memory that a helper needs for samples.
const LEAST_FREE_MB: u64 = 100;

/// What was found on all machines.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CheckReport {
    /// The server, then the stations.
    pub machines: Vec<MachineCheck>,
}

/// What was found on one machine. What is not known is `None`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct MachineCheck {
    /// The station's name, or `server`.
    pub station: String,
    /// Where the machine is.
    pub machine: String,
    /// Whether it is reached, and its helper answers.
    pub reached: bool,
    /// The version of Wakeai there.
    pub version: Option<String>,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// Whether the helper is root.
    pub root: bool,
    /// The default congestion control, and the others that there are.
    pub default_algorithm: Option<String>,
    /// All congestion controls.
    pub algorithms: Vec<String>,
    /// Whether iperf3 is installed. The experiment itself does not need it.
    pub iperf3: bool,
    /// By how much the wall clock is ahead of this machine's, seconds.
    pub clock_ahead_s: Option<f64>,
    /// The most by which an agreed time may be wrong there, milliseconds.
    pub clock_error_ms: Option<f64>,
    /// The interface, and its address.
    pub interface: Option<String>,
    /// The address.
    pub address: Option<String>,
    /// The access point.
    pub bssid: Option<String>,
    /// The centre of the primary channel, MHz.
    pub frequency_mhz: Option<u32>,
    /// The PHY rate of the last frame to the access point, Mbit/s.
    pub rate_mbps: Option<f64>,
    /// The signal, dBm.
    pub signal_dbm: Option<i8>,
    /// Whether the radio saves power.
    pub power_saving: Option<bool>,
    /// A program that may scan or roam meanwhile.
    pub roams: Option<String>,
    /// Whether ssh goes over the interface of the experiment.
    pub ssh_over_measured: Option<bool>,
    /// The share of the channel's time that others use, per cent.
    pub others_percent: Option<f64>,
    /// The time of a connection to the server and one exchange, milliseconds.
    pub server_ms: Option<f64>,
    /// The stations whose broadcasts it hears.
    pub hears: Option<usize>,
    /// What is in the way, and what to do.
    pub problems: Vec<Problem>,
}

/// What is in the way.
#[derive(Clone, Debug, Serialize)]
pub struct Problem {
    /// What was found.
    pub found: String,
    /// What to do.
    pub remedy: String,
    /// Whether no experiment is possible with it. Others make the figures worse, or worth less.
    pub fatal: bool,
}

impl MachineCheck {
    fn problem(&mut self, fatal: bool, found: impl Into<String>, remedy: &str) {
        self.problems.push(Problem { found: found.into(), remedy: remedy.to_owned(), fatal });
    }
}

/// Looks at all machines of `scenario`. Nothing is left on them.
///
/// # Errors
///
/// [`FieldError`], where the files do not fit, or the user interrupts the command. A machine that is not ready is no error: the
/// report says so.
pub fn check(
    options: &FieldOptions,
    scenario: &Scenario,
    progress: &dyn Progress,
) -> Result<CheckReport, FieldError> {
    let conditions = chosen(scenario, &options.run.conditions)?;
    let names: Vec<String> =
        scenario.expand_stations().into_iter().map(|station| station.name).collect();
    let machines = options.machines.of_stations(&names)?;
    let interrupted = || progress.is_interrupted();
    let session = random(8);
    let new = |machine| Helper::new(machine, &session, &options.program, options.grace);
    let mut helpers: Vec<Helper<'_>> = machines.into_iter().map(new).collect();
    let result = found(&mut helpers, options, &conditions, &interrupted);
    each(&mut helpers, |helper| {
        helper.end();
        if !helper.machine_is_local() {
            remove_program(helper);
        }
    });
    result
}

fn found(
    helpers: &mut [Helper<'_>],
    options: &FieldOptions,
    conditions: &[wakeai_scenario::ResolvedCondition],
    interrupted: &(dyn Fn() -> bool + Sync),
) -> Result<CheckReport, FieldError> {
    if let Some(programs) = &options.programs {
        bring(helpers, programs, interrupted)?;
    }
    let unreachable = connect_all(helpers, interrupted);
    if interrupted() {
        return Err(RunError::Interrupted.into());
    }
    let mut report = CheckReport::default();
    for (helper, problem) in helpers.iter_mut().zip(&unreachable) {
        let mut machine = MachineCheck {
            station: helper.machine.station.clone(),
            machine: helper.machine.place.to_string(),
            ..MachineCheck::default()
        };
        if let Some(problem) = problem {
            let remedy = remedy_of(problem, &helper.machine.place);
            machine.problem(true, problem.to_string(), remedy);
        } else {
            let clock = helper.measure_clock(EXCHANGES, Duration::from_secs(5), interrupted);
            machine.clock_error_ms = clock.ok().map(|clock| clock.error.as_millis_f64());
        }
        report.machines.push(machine);
    }
    for (index, (helper, machine)) in helpers.iter().zip(&mut report.machines).enumerate() {
        let station = index.checked_sub(1);
        let runs_agent = |condition: &wakeai_scenario::ResolvedCondition| {
            station.is_some_and(|station| condition.agents()[station])
        };
        if let Some((facts, welcome)) = helper.facts.as_ref().zip(helper.welcome.as_ref()) {
            machine.reached = true;
            machine.version = Some(welcome.version.clone());
            of_facts(machine, facts, index == 0, conditions.iter().any(runs_agent));
        }
    }
    same_access_point(&mut report);
    of_network(helpers, options, &mut report, interrupted)?;
    Ok(report)
}

fn remedy_of(problem: &HelperError, place: &Place) -> &'static str {
    match (problem, place) {
        (HelperError::Refused(_), _) => "do what the machine says",
        (_, Place::Ssh(_)) => {
            "`ssh -o BatchMode=yes` with that name has to run `wakeai`: check name, key and known hosts, and the path (`program` of the \
             machines file, or --programs)"
        }
        (_, Place::Adb(_)) => {
            "`adb -s SERIAL shell` has to run `wakeai`: check the cable, the permission on the device, and the path"
        }
        (_, Place::Local) => "run the command as root",
    }
}

/// What the machine says of itself.
fn of_facts(machine: &mut MachineCheck, facts: &Facts, is_server: bool, runs_agent: bool) {
    machine.kernel = Some(facts.kernel.clone());
    machine.root = facts.root;
    machine.default_algorithm = Some(facts.default_algorithm.clone());
    machine.algorithms.clone_from(&facts.algorithms);
    machine.iperf3 = facts.iperf3;
    machine.interface.clone_from(&facts.way.interface);
    machine.address = facts.way.address.map(|address| address.to_string());
    let here = read_clock(nix::time::ClockId::CLOCK_REALTIME).as_nanos();
    let ahead = (i128::from(facts.wall_ns) - i128::from(here)) as f64 / 1e9;
    machine.clock_ahead_s = Some(ahead);
    if ahead.abs() > WALL_DIFFERENCE_S {
        machine.problem(
            false,
            format!("its wall clock is {ahead:+.0} s from this machine's"),
            "set it, so that logs can be compared; the runs themselves use another clock",
        );
    }
    of_interface(machine, facts, is_server);
    of_kernel(machine, facts, runs_agent);
}

/// The interface, and who else may disturb it.
fn of_interface(machine: &mut MachineCheck, facts: &Facts, is_server: bool) {
    match &facts.way.interface {
        None => machine.problem(
            true,
            "the interface that leads to the server was not found",
            "name `interface` in the machines file",
        ),
        Some(name) if !facts.up => {
            let found = format!("{name} is down, or has no carrier");
            machine.problem(true, found, "join the network, or name another interface");
        }
        Some(_) => {}
    }
    if let Some(air) = &facts.air {
        of_air(machine, air);
    }
    machine.power_saving = facts.power_saving;
    if facts.power_saving == Some(true) {
        machine.problem(
            false,
            "its radio saves power, which delays what it receives",
            "iw dev INTERFACE set power_save off",
        );
    }
    if let Some(program) = facts.roams.as_ref().filter(|_| facts.air.is_some()) {
        machine.problem(
            false,
            format!("{program} runs, and may scan or roam meanwhile"),
            "bind the connection to one BSSID, for example `nmcli connection modify NAME wifi.bssid ADDRESS`",
        );
    }
    machine.roams.clone_from(&facts.roams);
    let ssh_interface = facts.ssh_interface.as_ref();
    machine.ssh_over_measured =
        ssh_interface.map(|name| Some(name) == facts.way.interface.as_ref());
    let same = machine.ssh_over_measured == Some(true);
    if same && !is_server && facts.ssh_interface.as_deref() != Some("lo") {
        machine.problem(
            false,
            "ssh itself goes over the measured interface",
            "use a wired one for ssh where there is one; a run carries less than 2 kbit/s over it",
        );
    }
}

/// Whether the machine can run the agents of conditions, and be monitored.
fn of_kernel(machine: &mut MachineCheck, facts: &Facts, runs_agent: bool) {
    if runs_agent {
        for_agent(machine, facts);
    }
    if facts.root && facts.no_monitor.is_some() {
        let why = facts.no_monitor.clone().unwrap_or_default();
        machine.problem(false, why, "its round-trip times are those of tcp_info, without events");
    }
    if facts.free_mb.is_some_and(|free| free < LEAST_FREE_MB) {
        let free = facts.free_mb.unwrap_or(0);
        machine.problem(
            false,
            format!("{free} MB of memory are free"),
            "end other programs: samples are kept in memory",
        );
    }
}

fn for_agent(machine: &mut MachineCheck, facts: &Facts) {
    if !facts.root {
        machine.problem(
            true,
            "a condition runs an agent on it, and the helper is not root",
            "allow `sudo -n wakeai` there, log in as root, or leave the station out of `agents`",
        );
    } else if let Some(why) = &facts.no_agent {
        machine.problem(true, why.clone(), "`wakeai doctor` on the machine says more");
    }
    if let Some(pid) = facts.agent {
        machine.problem(
            true,
            format!("an agent runs already (pid {pid})"),
            "stop it for the experiment: systemctl stop wakeai-agent",
        );
    }
}

fn of_air(machine: &mut MachineCheck, air: &Air) {
    machine.bssid.clone_from(&air.bssid);
    machine.frequency_mhz = air.frequency_mhz;
    machine.rate_mbps = air.tx_mbps;
    machine.signal_dbm = air.signal_dbm;
}

/// Stations at different access points do not share the air.
fn same_access_point(report: &mut CheckReport) {
    let mut counts = BTreeMap::<String, usize>::new();
    for machine in &report.machines[1..] {
        if let Some(bssid) = &machine.bssid {
            *counts.entry(bssid.clone()).or_default() += 1;
        }
    }
    let Some(most) = counts.iter().max_by_key(|(_, count)| **count).map(|(name, _)| name.clone())
    else {
        return;
    };
    for machine in &mut report.machines[1..] {
        if let Some(other) = machine.bssid.clone().filter(|other| *other != most) {
            machine.problem(
                false,
                format!("it is at the access point {other}, and others at {most}"),
                "bind all stations to one access point: only those share the air",
            );
        }
    }
}

/// The tests of the network: whether the server is reached, whether stations hear each other, and who else uses the channel.
fn of_network(
    helpers: &mut [Helper<'_>],
    options: &FieldOptions,
    report: &mut CheckReport,
    interrupted: &(dyn Fn() -> bool + Sync),
) -> Result<(), FieldError> {
    let (port, token) = (options.machines.port, Token(random(16)));
    let patience = Duration::from_secs(10);
    let listening = helpers[0].facts.is_some().then(|| {
        let ask = Ask::Listen { port: Some(port), token: token.clone() };
        helpers[0].ask(ask, patience, interrupted)
    });
    if let Some(Err(error)) = &listening {
        let found = format!("the server cannot listen at port {port}: {error}");
        report.machines[0].problem(true, found, "name another `port` in the machines file");
    }
    if let (Some(Ok(_)), Some(address)) = (&listening, helpers[0].machine.address) {
        let to = SocketAddr::new(address, port);
        let reached = each(&mut helpers[1..], |helper| {
            let way = helper.facts.as_ref()?.way.clone();
            let ask = Ask::Reach { way, to, token: token.clone() };
            Some(helper.ask(ask, patience, interrupted))
        });
        for (machine, reached) in report.machines[1..].iter_mut().zip(reached) {
            match reached {
                Some(Ok(Answer::Reached { took_ns })) => {
                    machine.server_ms = Some(Duration::from_nanos(took_ns).as_millis_f64());
                }
                Some(Err(error)) => machine.problem(
                    true,
                    format!("it does not reach the server at {to}: {error}"),
                    "open TCP and UDP of that port in the firewall of the server, and check the route",
                ),
                _ => {}
            }
        }
        let stop = Ask::Listen { port: None, token: token.clone() };
        let _ = helpers[0].ask(stop, patience, interrupted);
    }
    heard(helpers, report, &token, port, interrupted);
    let shares = others_now(helpers, interrupted)?;
    for (machine, share) in report.machines.iter_mut().zip(shares) {
        machine.others_percent = share;
        if let Some(found) = too_much(share, options.max_load_percent) {
            let remedy = "take a channel or an hour that others do not use, or allow more";
            machine.problem(true, found, remedy);
        }
    }
    Ok(())
}

/// For each machine, the share of its channel's time that others use now, per cent, while the experiment sends nothing; `None`
/// where the driver does not tell.
pub(crate) fn others_now(
    helpers: &mut [Helper<'_>],
    interrupted: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<Option<f64>>, RunError> {
    let before = each(helpers, |helper| air_again(helper, interrupted));
    if before.iter().all(Option::is_none) {
        return Ok(vec![None; helpers.len()]);
    }
    pause(LISTEN, interrupted).map_err(|_| RunError::Interrupted)?;
    let after = each(helpers, |helper| air_again(helper, interrupted));
    let both = before.into_iter().zip(after);
    let shares = both.map(|(before, after)| others_while_idle(before.as_ref()?, after.as_ref()?));
    Ok(shares.map(|share| share.map(|share| share * 100.0)).collect())
}

/// What is wrong where others use this share of a channel, per cent, and `most` is allowed.
pub(crate) fn too_much(share: Option<f64>, most: u32) -> Option<String> {
    let share = share.filter(|share| *share > f64::from(most))?;
    Some(format!("others use {share:.0} % of its channel, and --max-load allows {most} %"))
}

fn air_again(helper: &mut Helper<'_>, interrupted: &dyn Fn() -> bool) -> Option<Air> {
    let way = helper.facts.as_ref().filter(|facts| facts.air.is_some())?.way.clone();
    let ask = Ask::Inspect(InspectAsk { way, server: None });
    match helper.ask(ask, CONNECT_PATIENCE, interrupted) {
        Ok(Answer::Facts(facts)) => facts.air,
        _ => None,
    }
}

/// Whether the stations hear each other's broadcasts, by which agents count each other.
fn heard(
    helpers: &mut [Helper<'_>],
    report: &mut CheckReport,
    token: &Token,
    port: u16,
    interrupted: &(dyn Fn() -> bool + Sync),
) {
    let stations = helpers[1..].iter().filter(|helper| helper.facts.is_some()).count();
    if stations < 2 {
        return;
    }
    let heard = each(&mut helpers[1..], |helper| {
        let way: Way = helper.facts.as_ref()?.way.clone();
        let own = helper
            .machine
            .station
            .bytes()
            .fold(7_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        let to = helper.machine.broadcast;
        let ask = Ask::Shout { way, port, token: token.clone(), own, to };
        match helper.ask(ask, Duration::from_secs(10), interrupted) {
            Ok(Answer::Heard { from }) => Some(from.len()),
            _ => None,
        }
    });
    for (machine, heard) in report.machines[1..].iter_mut().zip(heard) {
        machine.hears = heard;
        if let Some(few) = heard.filter(|count| *count + 1 < stations) {
            machine.problem(
                false,
                format!("it hears the broadcasts of {few} of {} other stations", stations - 1),
                "turn client isolation off at the access point, and allow UDP broadcasts in the firewalls: agents count each other \
                 by them",
            );
        }
    }
}

impl CheckReport {
    /// Whether an experiment is possible.
    pub fn is_ready(&self) -> bool {
        self.machines.iter().flat_map(|machine| &machine.problems).all(|problem| !problem.fatal)
    }

    /// What each machine is.
    fn machines_table(&self) -> String {
        let header = [
            "station",
            "machine",
            "reached",
            "version",
            "kernel",
            "root",
            "algorithms",
            "iperf3",
            "wall clock",
            "agreed times",
        ];
        let row = |one: &MachineCheck| {
            vec![
                one.station.clone(),
                one.machine.clone(),
                words(Some(one.reached)),
                or_dash(one.version.clone()),
                or_dash(one.kernel.clone()),
                words(one.reached.then_some(one.root)),
                or_dash(one.reached.then(|| one.algorithms.join(" "))),
                words(one.reached.then_some(one.iperf3)),
                or_dash(one.clock_ahead_s.map(|ahead| format!("{ahead:+.1} s"))),
                or_dash(one.clock_error_ms.map(|ms| format!("± {ms:.1} ms"))),
            ]
        };
        table(&header, self.machines.iter().map(row))
    }

    /// The network of each machine.
    fn network_table(&self) -> String {
        let header = [
            "station",
            "interface",
            "address",
            "BSSID",
            "MHz",
            "Mbit/s",
            "dBm",
            "saves\npower",
            "may roam",
            "ssh over\nit, too",
            "others",
            "server",
            "hears",
        ];
        let row = |one: &MachineCheck| {
            vec![
                one.station.clone(),
                or_dash(one.interface.clone()),
                or_dash(one.address.clone()),
                or_dash(one.bssid.clone()),
                or_dash(one.frequency_mhz.map(|mhz| mhz.to_string())),
                or_dash(one.rate_mbps.map(|rate| format!("{rate:.0}"))),
                or_dash(one.signal_dbm.map(|dbm| dbm.to_string())),
                words(one.power_saving),
                or_dash(one.roams.clone()),
                words(one.ssh_over_measured),
                or_dash(one.others_percent.map(|share| format!("{share:.0} %"))),
                or_dash(one.server_ms.map(|ms| format!("{ms:.1} ms"))),
                or_dash(one.hears.map(|count| count.to_string())),
            ]
        };
        table(&header, self.machines.iter().map(row))
    }

    /// The report as text: two tables with a row for each machine, and the problems.
    pub fn render(&self) -> String {
        let mut text = format!("{}\n\n{}\n", self.machines_table(), self.network_table());
        for one in &self.machines {
            for Problem { found, remedy, fatal } in &one.problems {
                let kind = if *fatal { "PROBLEM" } else { "note" };
                let _ = writeln!(text, "{kind}: {}: {found}\n  {remedy}", one.station); // writing to a String never fails
            }
        }
        text.push_str(if self.is_ready() { "ready\n" } else { "not ready\n" });
        text
    }
}

fn table(header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none()));
    table.set_header(header).add_rows(rows);
    table.trim_fmt()
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

fn words(is_so: Option<bool>) -> String {
    or_dash(is_so.map(|so| if so { "yes" } else { "no" }.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_have_a_column_for_everything_that_is_looked_at() {
        let mut found = MachineCheck {
            station: "tablet".to_owned(),
            machine: "root@tablet.lan".to_owned(),
            reached: true,
            version: Some("1.2.3".to_owned()),
            kernel: Some("6.12.0".to_owned()),
            root: true,
            algorithms: ["cubic", "reno"].map(str::to_owned).to_vec(),
            iperf3: false,
            clock_ahead_s: Some(-3_600.0),
            clock_error_ms: Some(0.25),
            interface: Some("wlan0".to_owned()),
            address: Some("192.0.2.7".to_owned()),
            bssid: Some("02:00:00:00:00:01".to_owned()),
            frequency_mhz: Some(5_180),
            rate_mbps: Some(65.0),
            signal_dbm: Some(-61),
            power_saving: Some(true),
            roams: Some("NetworkManager".to_owned()),
            ssh_over_measured: Some(false),
            others_percent: Some(34.4),
            server_ms: Some(2.5),
            hears: Some(5),
            ..MachineCheck::default()
        };
        found.problem(true, "its radio is off", "switch it on");
        let lost = MachineCheck { station: "phone".to_owned(), ..MachineCheck::default() };
        let report = CheckReport { machines: vec![found, lost] };
        let text = report.render();
        let row = |number: usize| -> Vec<&str> {
            let mut rows = text.lines().filter(|line| line.trim_start().starts_with("tablet"));
            rows.nth(number).unwrap().split_whitespace().collect()
        };
        let first = "tablet root@tablet.lan yes 1.2.3 6.12.0 yes cubic reno no -3600.0 s ± 0.2 ms";
        assert_eq!(row(0).join(" "), first, "{text}");
        let second = "tablet wlan0 192.0.2.7 02:00:00:00:00:01 5180 65 -61 yes NetworkManager no 34 % 2.5 ms 5";
        assert_eq!(row(1).join(" "), second, "{text}");
        let lost = text.lines().find(|line| line.trim_start().starts_with("phone")).unwrap();
        assert_eq!(lost.split_whitespace().collect::<Vec<_>>().join(" "), "phone no - - - - - - -");
        assert!(
            text.ends_with("PROBLEM: tablet: its radio is off\n  switch it on\nnot ready\n"),
            "{text}"
        );
    }

    #[test]
    fn others_may_use_as_much_as_is_allowed() {
        assert_eq!(too_much(Some(20.0), 20), None);
        assert_eq!(too_much(None, 20), None, "the driver does not tell");
        let said = too_much(Some(20.6), 20).unwrap();
        assert_eq!(said, "others use 21 % of its channel, and --max-load allows 20 %");
    }
}
