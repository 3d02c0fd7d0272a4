//! Those that are in force on this machine: shown, changed and ended.

use std::time::{Duration, Instant};

use anyhow::anyhow;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use wakeai_host::{Holder, Role};
use wakeai_units::Rate;

use super::control::{InForce, Request, ask};
use super::table;
use crate::args::Which;
use crate::failure::{Failure, note};
use crate::output::{self, Reader};

/// Giving thousands of connections back takes a second, and unloading the algorithms some.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) fn list(json: bool) -> Result<(), Failure> {
    let mut all = Vec::new();
    for holder in holders()? {
        match ask(id(&holder), Request::Show) {
            Ok(Ok(in_force)) => all.push(in_force),
            Ok(Err(reason)) => note(format_args!("{}: {reason}", holder.process)),
            Err(error) => note(format_args!("{} does not answer: {error}", holder.process)),
        }
    }
    if !json {
        return output::write(&table::render(&all)).map(|_| ());
    }
    for in_force in &all {
        if output::json(in_force)? == Reader::Gone {
            break;
        }
    }
    Ok(())
}

pub(super) fn set_rate(wanted: u32, rate: Rate) -> Result<(), Failure> {
    one(wanted)?;
    let answer = ask(wanted, Request::SetRate(rate.bits_per_second()))
        .map_err(|error| Failure::failed(anyhow!("{wanted} does not answer: {error}")))?;
    let InForce { connections, .. } =
        answer.map_err(|reason| Failure::usage(anyhow!("{wanted}: {reason}")))?;
    note(format_args!("{wanted}: {rate} for each of {connections} connections, and for new ones"));
    Ok(())
}

pub(super) fn undo(which: Which) -> Result<(), Failure> {
    let ending = match which {
        Which::All => holders()?,
        Which::One(id) => vec![one(id)?],
    };
    if ending.is_empty() {
        note("nothing is in force");
    }
    // The newest first, so that each finds what it found when it began.
    ending.iter().rev().try_for_each(end)
}

fn end(holder: &Holder) -> Result<(), Failure> {
    let process = holder.process;
    match kill(Pid::from_raw(process.pid), Signal::SIGTERM) {
        Ok(()) | Err(Errno::ESRCH) => {} // it may have ended since
        Err(errno) => return Err(Failure::failed(anyhow!("cannot end {process}: {errno}"))),
    }
    let give_up = Instant::now() + PATIENCE;
    while process.is_alive() {
        if Instant::now() > give_up {
            return Err(Failure::failed(anyhow!(
                "{process} was told to end and has not; `kill -9 {process}` and `wakeai sweep` do it"
            )));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// The oldest first.
fn holders() -> Result<Vec<Holder>, Failure> {
    let mut all = wakeai_host::holders().map_err(Failure::failed)?;
    all.retain(|holder| matches!(holder.role, Role::Use { .. }));
    all.sort_by_key(|holder| (holder.process.start_time, holder.process.pid));
    Ok(all)
}

fn one(wanted: u32) -> Result<Holder, Failure> {
    holders()?.into_iter().find(|holder| id(holder) == wanted).ok_or_else(|| {
        Failure::usage(anyhow!("found ID {wanted}, expected one that `wakeai use --list` shows"))
    })
}

fn id(holder: &Holder) -> u32 {
    holder.process.pid.cast_unsigned()
}
