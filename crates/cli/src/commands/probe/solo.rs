//! `wakeai probe solo`.

mod company;
mod table;

use std::sync::mpsc;

use serde::Serialize;
use wakeai_api::config::{Changed, Measured};
use wakeai_probe::ProbePeer;
use wakeai_probe::solo::SoloReport;
use wakeai_units::Rate;

use self::company::Company;
use super::listening::{listen, measured};
use super::write::write;
use crate::args::SoloArguments;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output;

pub(super) fn run(arguments: &SoloArguments) -> Result<(), Failure> {
    let interrupt = Interrupt::install()?;
    match (&arguments.to, arguments.token) {
        (Some(to), Some(token)) => {
            let addresses = to.addresses().map_err(Failure::failed)?;
            measure(arguments, &ProbePeer { addresses, token }, &interrupt)
        }
        _ => listen(&arguments.end, &interrupt, ("solo", "on the station"), true),
    }
}

/// The result, with the findings about other stations.
#[derive(Debug, Serialize)]
struct Solo {
    #[serde(flatten)]
    report: SoloReport,
    /// Whether there is no sign that other stations sent during the measurement.
    alone: bool,
    company: Company,
    /// The changes in the agent's configuration.
    written: Vec<Changed>,
}

fn measure(
    arguments: &SoloArguments,
    listener: &ProbePeer,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let stop = || interrupt.is_asked();
    let say = |step: &str| tracing::info!(step, "measuring");
    let (result, mut company) = std::thread::scope(|scope| {
        let (measures, end) = mpsc::channel();
        let watch = scope.spawn(move || company::watch(arguments.socket.as_deref(), &end));
        let result = wakeai_probe::probe_solo(listener, arguments.time, &stop, say);
        drop(measures);
        (result, watch.join().unwrap_or_default())
    });
    let report = measured(result, interrupt)?;
    company.unsteady = !report.up.is_steady() || !report.down.is_steady();
    if !arguments.end.json {
        output::write(&table::render(&report, &company))?;
    }
    let written = write(&arguments.write, for_agent(&report, &company));
    if arguments.end.json {
        let changed = written.as_ref().map_or_else(|_| Vec::new(), Clone::clone);
        let alone = company.is_alone();
        output::json(&Solo { report, alone, company, written: changed })?;
    }
    written.map(|_| ())
}

/// The value for the agent's configuration. It is the goodput of the upload, because the laws bound the station's
/// sending.
fn for_agent(report: &SoloReport, company: &Company) -> Result<Measured, String> {
    if !company.sending_peers.is_empty() {
        return Err("the station was not alone".to_owned());
    }
    let tenths = (report.up.goodput_mbps * 10.0).round() as u64;
    Ok(Measured::Max(Rate::from_bps(tenths * 100_000)))
}
