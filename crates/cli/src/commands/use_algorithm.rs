//! `wakeai use`.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;

use anyhow::anyhow;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use wakeai_assign::{AssignError, Event, InForce};

use crate::args::UseArguments;
use crate::failure::{Failure, note};
use crate::interrupt::ignores;
use crate::output::{self, OutputReader};

pub(crate) fn run(arguments: &UseArguments) -> Result<(), Failure> {
    let UseArguments { algorithm, rate, undo, set, json, .. } = arguments;
    if let Some(algorithm) = algorithm {
        wakeai_assign::check_rate(algorithm, *rate)?;
    }
    if !nix::unistd::geteuid().is_root() {
        let missing = "`wakeai use` needs CAP_NET_ADMIN, CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN: \
                       run as root";
        return Err(Failure::missing_if(true, anyhow!(missing)));
    }
    match (algorithm, undo, set, *rate) {
        (Some(algorithm), ..) => assign(algorithm, arguments),
        (_, Some(id), ..) => {
            if wakeai_assign::end(*id)? == 0 {
                note("nothing is in force");
            }
            Ok(())
        }
        (_, _, Some(id), Some(rate)) => {
            let connections = wakeai_assign::set_rate(*id, rate)?.connections;
            let each = format!("{rate:#} for each of {connections} connections, and for new ones");
            note(format_args!("{id}: {each}"));
            Ok(())
        }
        (.., Some(_)) => {
            Err(Failure::usage(anyhow!("--rate goes with an algorithm or with --set")))
        }
        _ => list(*json),
    }
}

impl From<AssignError> for Failure {
    fn from(error: AssignError) -> Self {
        match error {
            error if error.is_usage() => Self::usage(error),
            error @ AssignError::Lost(_) => Self::lost(error),
            error => Self::missing_if(error.is_missing(), error),
        }
    }
}

fn assign(algorithm: &str, arguments: &UseArguments) -> Result<(), Failure> {
    // The handlers are installed before anything is changed. From then on a signal ends the assignment in good order.
    let shutdown = signals().map_err(Failure::failed)?;
    let options = arguments.options(algorithm.to_owned());
    wakeai_assign::run(&options, shutdown.as_fd(), &mut |event| match event {
        Event::Warning(text) => note(format_args!("warning: {text}")),
        Event::InForce(in_force) if arguments.json => {
            if let Err(failure) = output::json(&in_force) {
                note(failure); // the assignment goes on although its output is not read
            }
        }
        Event::InForce(in_force) => {
            let InForce { algorithm, id, .. } = &in_force;
            let covered = in_force.words();
            let end = format!("Ctrl-C or `wakeai use --undo {id}` ends it");
            note(format_args!("{algorithm} applies to {covered}; {end}"));
        }
    })?;
    Ok(())
}

/// A stream that becomes readable when SIGINT, SIGTERM or SIGHUP arrives. From here on these signals do not kill the
/// process. SIGHUP stays ignored if it was ignored before (nohup(1)).
fn signals() -> io::Result<UnixStream> {
    let (read, write) = UnixStream::pair()?;
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        if signal != SIGHUP || !ignores(signal)? {
            signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
        }
    }
    Ok(read)
}

fn list(json: bool) -> Result<(), Failure> {
    let (all, silent): (Vec<_>, Vec<_>) =
        wakeai_assign::in_force()?.into_iter().partition(Result::is_ok);
    silent.into_iter().filter_map(Result::err).for_each(note);
    let all: Vec<_> = all.into_iter().flatten().collect();
    if !json {
        for in_force in &all {
            for drift in &in_force.drifts {
                note(format_args!("{}: {}", in_force.id, drift.words()));
            }
        }
        return output::write(&table(&all)).map(|_| ());
    }
    for in_force in &all {
        if output::json(in_force)? == OutputReader::Gone {
            break;
        }
    }
    Ok(())
}

/// The columns of the table. The columns from [`FIRST_NUMBER`] on are numbers.
const HEADER: [&str; 8] =
    ["ID", "algorithm", "applies to", "to", "rate Mbit/s", "connections", "since s", "left s"];
const FIRST_NUMBER: usize = 4;

fn table(all: &[InForce]) -> String {
    if all.is_empty() {
        return "nothing is in force\n".to_owned();
    }
    output::table("", HEADER, FIRST_NUMBER, all.iter().map(row))
}

fn row(in_force: &InForce) -> [String; 8] {
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1}"));
    [
        in_force.id.to_string(),
        in_force.algorithm.clone(),
        format!("{} {}", in_force.scope, in_force.name),
        in_force.to.clone().unwrap_or_else(|| "-".to_owned()),
        number(in_force.rate_mbps),
        in_force.connections.to_string(),
        number(Some(in_force.running_s)),
        number(in_force.left_s),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_line_with_its_id_and_its_rate() {
        let in_force = InForce {
            id: 4711,
            algorithm: "wakeai_av".to_owned(),
            scope: "cgroup".to_owned(),
            name: "/sys/fs/cgroup/x".to_owned(),
            netns: 1,
            to: None,
            rate_mbps: Some(5.0),
            connections: 3,
            running_s: 1.25,
            left_s: None,
            drifts: Vec::new(),
        };
        let text = table(&[in_force]);
        let line = text.lines().nth(1).unwrap();
        let words: Vec<_> = line.split_whitespace().collect();
        let expected =
            ["4711", "wakeai_av", "cgroup", "/sys/fs/cgroup/x", "-", "5.0", "3", "1.2", "-"];
        assert_eq!(words, expected);
        assert_eq!(table(&[]), "nothing is in force\n");
    }
}
