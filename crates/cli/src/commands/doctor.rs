//! `wakeai doctor`.

use std::path::Path;

use serde::Serialize;
use wakeai_kernel::Bounded;
use wakeai_kernel::features::{self, Features};

use crate::args::DoctorArguments;
use crate::failure::Failure;
use crate::output;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
enum Level {
    /// Present.
    Ok,
    /// Absent; the monitor and the bounds work without it.
    Note,
    /// Absent, and the monitor or the bounds need it.
    #[strum(serialize = "MISSING")]
    Missing,
}

/// One line of the diagnosis.
#[derive(Debug, Serialize)]
struct Finding {
    name: String,
    found: String,
    level: Level,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    consequence: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

/// The whole diagnosis.
#[derive(Debug, Serialize)]
struct Diagnosis {
    kernel: String,
    can_monitor: bool,
    can_bound: bool,
    findings: Vec<Finding>,
}

pub(crate) fn run(arguments: &DoctorArguments) -> Result<(), Failure> {
    let diagnosis = diagnose();
    if arguments.json {
        output::json(&diagnosis)?;
    } else {
        output::write(&text(&diagnosis))?;
    }
    let missing = diagnosis.findings.iter().filter(|finding| finding.level == Level::Missing);
    let lacks: Vec<_> = missing.map(|finding| finding.name.as_str()).collect();
    if lacks.is_empty() {
        return Ok(());
    }
    let problem = anyhow::anyhow!("required features are missing: {}", lacks.join(", "));
    Err(Failure::missing_if(true, problem))
}

fn diagnose() -> Diagnosis {
    let found = features::detect();
    let mut findings = of_kernel(&found);
    findings.extend([default_algorithm(), iperf3(), tun(), wifi()]);
    Diagnosis {
        can_monitor: found.to_monitor().is_ok(),
        can_bound: found.to_bound().is_ok(),
        kernel: found.kernel_release,
        findings,
    }
}

fn of_kernel(features: &Features) -> Vec<Finding> {
    let finding = |feature: &features::Feature| Finding {
        name: feature.name.to_owned(),
        found: feature.found.clone(),
        level: match &feature.problem {
            None => Level::Ok,
            Some(_) if Features::is_needed(feature.name) => Level::Missing,
            Some(_) => Level::Note,
        },
        ok: feature.problem.is_none(),
        consequence: feature.problem.as_ref().map(|problem| problem.consequence.to_owned()),
        remedy: feature.problem.as_ref().map(|problem| problem.remedy.to_owned()),
    };
    features.features.iter().map(finding).collect()
}

/// A finding about a requirement besides BPF, of the lab or of an agent with default settings.
fn other(name: &str, found: Option<String>, consequence: &str, remedy: &str) -> Finding {
    let ok = found.is_some();
    Finding {
        name: name.to_owned(),
        found: found.unwrap_or_else(|| "not found".to_owned()),
        level: if ok { Level::Ok } else { Level::Note },
        ok,
        consequence: (!ok).then(|| consequence.to_owned()),
        remedy: (!ok).then(|| remedy.to_owned()),
    }
}

/// The agent sets floors and pacing rates only for connections that use CUBIC, Reno or BBR.
fn default_algorithm() -> Finding {
    let found = wakeai_host::read_sysctl("net.ipv4.tcp_congestion_control").unwrap_or_default();
    let is_ours = Bounded::instead_of(&found).is_some() || Bounded::named(&found).is_some();
    let mut finding = other(
        "default algorithm",
        is_ours.then(|| found.clone()),
        "an agent here sets only ceilings, except for connections that select cubic, reno or bbr",
        "sysctl -w net.ipv4.tcp_congestion_control=cubic",
    );
    let stand_in = Bounded::instead_of(&found).map(|bounded| bounded.name);
    finding.found = match stand_in {
        Some(name) => format!("{found}, in whose place an agent puts {name}"),
        None => found,
    };
    finding
}

fn iperf3() -> Finding {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let program = std::env::split_paths(&path).map(|dir| dir.join("iperf3")).find(|p| p.is_file());
    other(
        "iperf3",
        program.map(|program| program.display().to_string()),
        "`wakeai lab` does not run",
        "install the package iperf3",
    )
}

fn tun() -> Finding {
    let device = Path::new("/dev/net/tun");
    other(
        "TUN devices",
        device.exists().then(|| device.display().to_string()),
        "`wakeai lab` cannot emulate the radio",
        "load the module tun (CONFIG_TUN)",
    )
}

fn wifi() -> Finding {
    let phys: Vec<_> = std::fs::read_dir("/sys/class/ieee80211")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    other(
        "Wi-Fi device",
        (!phys.is_empty()).then(|| phys.join(", ")),
        "the agent cannot ask for the access point's address and the PHY rate",
        "on a machine without Wi-Fi state `bssid` (and `link_rate`) in the agent's configuration",
    )
}

fn text(diagnosis: &Diagnosis) -> String {
    use std::fmt::Write as _;
    let mut text = format!("kernel {}\n", diagnosis.kernel);
    for finding in &diagnosis.findings {
        let mark: &str = finding.level.into();
        let _ = writeln!(text, "{mark:<7}  {}: {}", finding.name, finding.found);
        if let Some(consequence) = &finding.consequence {
            let _ = writeln!(text, "         so {consequence}");
        }
        if let Some(remedy) = &finding.remedy {
            let _ = writeln!(text, "         {remedy}");
        }
    }
    let monitor = if diagnosis.can_monitor { "works" } else { "does not work" };
    let bounds = if diagnosis.can_bound { "floors, ceilings and pacing" } else { "none" };
    let _ = writeln!(text, "here the monitor {monitor}; bounds on connections: {bounds}");
    text
}
