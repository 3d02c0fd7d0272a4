//! `wakeai probe buffer`.

mod table;

use serde::Serialize;
use wakeai_api::config::{Changed, Measured};
use wakeai_probe::buffer::{BufferReport, Drops};
use wakeai_probe::{BufferProbe, ProbePeer, ProbeProgress, Token};

use super::listening::{listen, measured};
use super::write::write;
use crate::args::{BufferArguments, OtherEnd};
use crate::failure::{Failure, note};
use crate::interrupt::Interrupt;
use crate::output;

pub(super) fn run(arguments: &BufferArguments) -> Result<(), Failure> {
    let interrupt = Interrupt::install()?;
    if arguments.end.listen.is_some() {
        let other = ("buffer", "on a machine with a cable to the access point");
        listen(&arguments.end, &interrupt, other, false)
    } else {
        measure(arguments, &interrupt)
    }
}

fn measure(arguments: &BufferArguments, interrupt: &Interrupt) -> Result<(), Failure> {
    let BufferArguments { end, to, token, runs, rate, write: _ } = arguments;
    if to.len() != token.len() || to.len() > 2 {
        return Err(Failure::usage(anyhow::anyhow!(
            "found {} --to and {} --token; expected one of each, or two of each in the same order",
            to.len(),
            token.len()
        )));
    }
    let peer = |(to, token): (&OtherEnd, &Token)| {
        let addresses = to.addresses().map_err(Failure::failed)?;
        Ok(ProbePeer { addresses, token: *token })
    };
    let peers: Vec<ProbePeer> = to.iter().zip(token).map(peer).collect::<Result<_, Failure>>()?;
    let (station, second) = (peers[0].clone(), peers.get(1).cloned());
    let probe = BufferProbe { station, second, runs: *runs, limit: *rate };
    let say = |progress: &ProbeProgress| {
        let ProbeProgress { stage, sent, arrived, rate } = progress;
        tracing::info!(?stage, sent, arrived, %rate, "burst");
    };
    let report = wakeai_probe::probe_buffer(&probe, &|| interrupt.is_asked(), say);
    let report = measured(report, interrupt)?;
    if !end.json {
        output::write(&table::render(&report))?;
    }
    let written = write(&arguments.write, for_agent(&report));
    if end.json {
        let written = written.as_deref().unwrap_or_default();
        output::json(&BufferAnswer { report: &report, written })?;
    }
    written?;
    if probe.second.is_none() {
        note("one queue for all stations or one for each: not tested, which needs a second --to");
    }
    Ok(())
}

/// The result, and the changes in the agent's configuration.
#[derive(Serialize)]
struct BufferAnswer<'a> {
    #[serde(flatten)]
    report: &'a BufferReport,
    written: &'a [Changed],
}

/// The value for the agent's configuration: the buffer in packets of full length.
fn for_agent(report: &BufferReport) -> Result<Measured, String> {
    match (report.packets, report.drops) {
        (_, Drops::Aqm) => {
            Err("active queue management keeps the queue shorter than its limit, which \
                                the measurement has not seen"
                .to_owned())
        }
        (Some(found), _) => Ok(Measured::Buffer(found.median.round() as u32)),
        (None, _) => Err("the buffer was not found".to_owned()),
    }
}
