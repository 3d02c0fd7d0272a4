//! `wakeai medium`.

use anyhow::anyhow;
use wakeai_air::hwsim::{self, Options, RadioReport, Report};
use wakeai_scenario::Scenario;

use super::experiment::{Bar, load_file};
use crate::args::MediumArguments;
use crate::failure::{Failure, note};
use crate::output;

pub(crate) fn run(arguments: &MediumArguments) -> Result<(), Failure> {
    let MediumArguments { scenario, seed, set, radio, pcap, json } = arguments;
    let scenario: Scenario = load_file(scenario, set)?;
    let options = Options { seed: *seed, radios: radio.clone(), pcap: pcap.clone() };
    let bar = Bar::new(false)?;
    bar.clear();
    let ready = || {
        note(format_args!(
            "the air of this namespace's hwsim radios is that of {}, until Ctrl-C; after that they deliver every frame at \
             once again, and nothing is lost",
            scenario.name
        ));
        for key in without_effect(&scenario) {
            note(key);
        }
    };
    let report = hwsim::run(&options, &scenario, &bar, &ready)
        .map_err(|error| Failure::with_status(error.exit_status(), error))?;
    if *json {
        output::json(&report)?;
    } else {
        output::write(&text(&report))?;
    }
    if let Some(path) = pcap {
        note(format_args!("the capture is in {}", path.display()));
    }
    if report.faithful {
        return Ok(());
    }
    Err(Failure::failed(anyhow!(
        "the driver lost or freed frames, so the air was not what the scenario says: offer less, or use a quieter machine"
    )))
}

/// A sentence for each group of keys that other programs decide here.
fn without_effect(scenario: &Scenario) -> Vec<&'static str> {
    let mut words = Vec::new();
    if scenario.stations.iter().any(|group| group.radio.is_some())
        && scenario.has_key("stations", "rate")
    {
        words.push(
            "stations.rate has no effect: each radio's rate control chooses; `iw dev IF set bitrates` pins it",
        );
    }
    if !scenario.flows.is_empty() {
        words.push("flows, conditions and the wire have no effect: other programs send here");
    }
    if scenario.events.iter().any(|event| event.rate.is_some() || event.wired_delay.is_some()) {
        words.push("of events only frame_error_rate has an effect");
    }
    words
}

fn text(report: &Report) -> String {
    let rows = report.radios.iter().map(row);
    let heads = [
        "radio",
        "address",
        "MHz",
        "sent",
        "carried",
        "attempts",
        "unanswered",
        "queue full",
        "lost",
        "received",
    ];
    let table = output::table("", heads, 2, rows);
    let lost = report.not_carried;
    format!(
        "{table}\n{:.1} s, {} accesses to the air, {} of them in collisions, {} frames in {} transmissions.\n\
         Not carried: {} found a full queue, {} unanswered, {} lost in the full socket, {} freed by the driver, {} of \
         unknown radios, {} refused by their receiver, {} malformed; {} requests for Block Ack declined.\n\
         Frames were handed over at most {:.3} ms late, 99 % within {:.3} ms.\n",
        report.seconds,
        report.accesses,
        report.collisions,
        report.mpdus,
        report.ppdus,
        lost.queue_full,
        lost.unanswered,
        lost.socket_full,
        lost.freed_by_driver,
        lost.unknown_radio,
        lost.refused_by_receiver,
        lost.malformed,
        lost.declined_addba,
        report.lateness_max_ms,
        report.lateness_p99_ms,
    )
}

/// The row of a radio.
fn row(radio: &RadioReport) -> [String; 10] {
    let RadioReport {
        name,
        address,
        frequency_mhz,
        sent,
        carried,
        attempts,
        unanswered,
        queue_full,
        socket_full,
        received,
    } = radio;
    [
        name.clone(),
        address.clone(),
        frequency_mhz.to_string(),
        sent.to_string(),
        carried.to_string(),
        attempts.to_string(),
        unanswered.to_string(),
        queue_full.to_string(),
        socket_full.to_string(),
        received.to_string(),
    ]
}
