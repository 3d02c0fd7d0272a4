//! `wakeai probe air`.

mod interval;
mod text;

use std::time::{Duration, Instant};

use serde::Serialize;
use wakeai_agent::{Link, ReadError, WifiReader};

use self::interval::Interval;
use super::listening::interrupted;
use crate::args::AirArguments;
use crate::failure::{Failure, note};
use crate::interrupt::Interrupt;
use crate::output;

/// The interval at which a pause checks for a signal.
const STEP: Duration = Duration::from_millis(50);

/// The result.
#[derive(Debug, Serialize)]
struct AirReport {
    /// One entry for each station of the network namespace.
    interfaces: Vec<AirStation>,
}

/// One station.
#[derive(Debug, Serialize)]
struct AirStation {
    #[serde(flatten)]
    link: Link,
    /// The figures between the two readings. It is `None` if the station joined the access point between them.
    interval: Option<Interval>,
    /// The names of the figures that the driver does not report.
    does_not_tell: Vec<&'static str>,
}

pub(super) fn run(arguments: &AirArguments) -> Result<(), Failure> {
    let interrupt = Interrupt::install()?;
    let reader = WifiReader::open().map_err(failure)?;
    let stations = reader.stations(arguments.interface.as_deref()).map_err(failure)?;
    let before = read(&reader, &stations)?;
    pause(Instant::now(), arguments.interval.into(), &interrupt)?;
    let mut interfaces = Vec::new();
    for (index, at, before) in before {
        let link = reader.link(index).map_err(failure)?;
        let interval = Interval::between(&before, &link, at.elapsed());
        let mut does_not_tell = link.not_told();
        does_not_tell.extend(interval.as_ref().and_then(Interval::not_told));
        interfaces.push(AirStation { link, interval, does_not_tell });
    }
    if arguments.json {
        return output::json(&AirReport { interfaces }).map(|_| ());
    }
    let texts: Vec<String> = interfaces.iter().map(text::render).collect();
    output::write(&texts.join("\n")).map(|_| ())
}

/// The links of the stations that have an access point. Each link has the moment of its reading.
fn read(reader: &WifiReader, stations: &[u32]) -> Result<Vec<(u32, Instant, Link)>, Failure> {
    let mut found = Vec::new();
    let mut without = Vec::new();
    for index in stations {
        match reader.link(*index) {
            Ok(link) => found.push((*index, Instant::now(), link)),
            Err(error @ ReadError::NotAssociated(_)) => without.push(error),
            Err(error) => return Err(failure(error)),
        }
    }
    let last = if found.is_empty() { without.pop() } else { None };
    without.iter().for_each(note);
    last.map_or(Ok(found), |error| Err(failure(error)))
}

/// Waits until the interval has passed, or a signal has arrived.
fn pause(began: Instant, interval: Duration, interrupt: &Interrupt) -> Result<(), Failure> {
    loop {
        if interrupt.is_asked() {
            return Err(interrupted(interrupt));
        }
        let left = interval.saturating_sub(began.elapsed());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(STEP));
    }
}

fn failure(error: ReadError) -> Failure {
    Failure::missing_if(error.is_missing(), error)
}
