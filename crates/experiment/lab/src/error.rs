//! The errors of the lab, and the exit status of each.

use std::io;

use wakeai_results::result::Report;
use wakeai_units::Duration;
use wakeai_world::{Made, RunError};

/// A lab run failed, was interrupted, or was not faithful.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The machine was too busy, so the figures of the run are not valid.
    #[error("the run {run} was not faithful: {lapse}")]
    Unfaithful {
        /// The run's condition and repeat.
        run: String,
        /// The bound that the run exceeded.
        lapse: Lapse,
        /// The report of all runs, including this run.
        report: Box<Report>,
    },
    /// A run failed after other runs had been made.
    #[error("{error}")]
    After {
        /// The failure.
        #[source]
        error: Box<LabError>,
        /// What was made before.
        made: Box<Made>,
    },
    /// A privilege, a program or a kernel feature is missing (exit status 77).
    #[error("{what} is missing: {remedy}")]
    Missing {
        /// The missing thing.
        what: String,
        /// What the user can do about it.
        remedy: String,
    },
    /// An error that can happen in the simulator, too: in the scenario or the records, or an
    /// interruption.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A namespace could not be made or entered.
    #[error(transparent)]
    Namespace(#[from] wakeai_host::NamespaceError),
    /// The lease (the record of the lab's changes on the host) could not be written.
    #[error(transparent)]
    Lease(#[from] wakeai_host::LeaseError),
    /// The directory of the agents' files could not be made.
    #[error("the lab's directory: {0}")]
    Make(#[from] wakeai_host::MakeError),
    /// A system call failed while the lab was built.
    #[error("cannot {action}: {source}")]
    System {
        /// The action that was tried.
        action: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// A child process (iperf3, an agent or a proxy) failed.
    #[error("{program} of {station} failed: {reason}{}", tail(log))]
    Child {
        /// The program.
        program: &'static str,
        /// The station of the program.
        station: String,
        /// The program's exit status, or the step that failed.
        reason: String,
        /// The end of the program's log.
        log: String,
    },
    /// Another program has changed what the lab had built, so the run measures something else.
    #[error(
        "another program has changed the network of the run, so its figures are not valid: {0}; find out which \
         program that is, and run the scenario again"
    )]
    Disturbed(Box<wakeai_host::Drift>),
    /// A kernel feature is missing, or a BPF program could not be loaded.
    #[error(transparent)]
    Kernel(#[from] wakeai_kernel::Error),
    /// The caller could not show the network that is kept.
    #[error("{0}")]
    Shown(String),
    /// The monitor failed.
    #[error("the monitor of the lab failed: {0}")]
    Monitor(String),
}

/// The bound that an unfaithful run exceeded. A run is faithful if the machine kept its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lapse {
    /// The emulated radio delivered packets too late.
    #[error(
        "packets were released late, p99 {p99} (allowed {allowed_p99}), max {max} (allowed \
         {allowed_max}), among {releases} packets. Run it on a quieter machine, at a lower rate, or with wider \
         bounds (--lateness-p99, --lateness-max)"
    )]
    Late {
        /// The number of packets that were delivered.
        releases: u64,
        /// 99th percentile of the lateness.
        p99: Duration,
        /// Largest lateness.
        max: Duration,
        /// The bound on `p99`.
        allowed_p99: Duration,
        /// The bound on `max`.
        allowed_max: Duration,
    },
    /// Agents or proxies waited too long for a processor.
    #[error(
        "ordinary processes, such as its agents and proxies, waited for a processor, p99 {p99} \
         (allowed {allowed}). Run it on a quieter machine, with fewer stations, or with a wider bound \
         (--waits-p99)"
    )]
    Starved {
        /// 99th percentile of the waits.
        p99: Duration,
        /// The bound on `p99`.
        allowed: Duration,
    },
}

impl LabError {
    /// Converts the error of a system call, for `map_err`; `action` is the action that was tried.
    pub(crate) fn system<E: Into<io::Error>>(action: impl Into<String>) -> impl FnOnce(E) -> Self {
        let action = action.into();
        move |source| Self::System { action, source: source.into() }
    }

    /// The error for a thing that is missing.
    pub(crate) fn missing(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Missing { what: what.into(), remedy: remedy.into() }
    }

    /// The failure of a program of `station` that has no log.
    pub(crate) fn child(program: &'static str, station: &str, reason: impl Into<String>) -> Self {
        let station = station.to_owned();
        Self::Child { program, station, reason: reason.into(), log: String::new() }
    }

    /// The exit status of `wakeai lab`: 77 for a missing privilege or feature, the value of
    /// [`RunError::exit_status`] for a [`RunError`], and 1 for everything else.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Run(error) => error.exit_status(),
            Self::After { error, .. } => error.exit_status(),
            Self::Missing { .. } => 77,
            Self::Namespace(error) if error.is_permission() => 77,
            Self::Kernel(error) if error.is_missing() => 77,
            _ => 1,
        }
    }
}

/// The error for an experiment that the lab cannot run.
pub(crate) fn unsupported(asked: String, remedy: impl Into<String>) -> RunError {
    RunError::Unsupported { world: "the lab", asked, remedy: remedy.into() }
}

fn tail(log: &str) -> String {
    if log.trim().is_empty() { String::new() } else { format!("; it wrote:\n{}", log.trim_end()) }
}
