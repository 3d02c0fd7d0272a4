//! One that is in force, from its start until everything is as before.

use std::time::Instant;

use anyhow::anyhow;
use wakeai_host::{Change, Lease, LeaseError, Role, RouteGuard, SysctlError, SysctlGuard};
use wakeai_kernel::{Assigner, Control, MoveReport};
use wakeai_units::Rate;

use super::algorithm::{is_ours, require};
use super::control::Listener;
use super::reign::Reign;
use super::scope::{Ruled, Scope};
use super::wait::{Ended, Signals};
use crate::args::UseArguments;
use crate::failure::{Failure, note};

const DEFAULT_ALGORITHM: &str = "net.ipv4.tcp_congestion_control";

pub(super) fn run(algorithm: &str, arguments: &UseArguments) -> Result<(), Failure> {
    let ruled = Ruled::find(arguments)?;
    require(algorithm)?;
    // Before anything is changed: from here on a signal ends it in good order.
    let signals = Signals::catch().map_err(Failure::failed)?;
    let role = Role::Use { exclusive: ruled.exclusive() };
    let lease = Lease::take(role).map_err(no_lease)?;

    let mut held = Held { algorithm, ruled: &ruled, lease: &lease, guard: None, assigner: None };
    let outcome = held.rule(arguments, &signals);
    held.let_go();
    for (change, reason) in lease.release(&|| Control::unload().map_err(Into::into)) {
        note(format_args!("warning: not put back: {change} ({reason})"));
    }
    outcome
}

fn no_lease(error: LeaseError) -> Failure {
    match error {
        LeaseError::UseRuns { .. } | LeaseError::AgentRuns { .. } | LeaseError::Held { .. } => {
            Failure::usage(error)
        }
        LeaseError::Io(ref io) => {
            Failure::missing_if(io.kind() == std::io::ErrorKind::PermissionDenied, error)
        }
    }
}

/// What was changed.
struct Held<'a> {
    algorithm: &'a str,
    ruled: &'a Ruled,
    lease: &'a Lease,
    guard: Option<Guard>,
    assigner: Option<(Assigner, Change)>,
}

/// What gives out the algorithm.
enum Guard {
    Sysctl(SysctlGuard),
    Route(RouteGuard),
}

impl Held<'_> {
    fn rule(&mut self, arguments: &UseArguments, signals: &Signals) -> Result<(), Failure> {
        let started = Instant::now();
        // Even where the algorithm is not ours: what was there before may be.
        self.lease.record(Change::KernelParts).map_err(Failure::failed)?;
        if is_ours(self.algorithm) {
            Control::open()?;
        }
        self.assign(arguments.rate)?;
        self.guard = self.give_out()?;
        let Some((assigner, _)) = &mut self.assigner else { return Ok(()) };
        if let Scope::Existing(cookies) = &self.ruled.scope {
            check(assigner.take_existing(cookies)?)?;
        }
        let listener = Listener::bind(self.lease).map_err(Failure::failed)?;
        let deadline = arguments.duration.map(|duration| started + duration.into());
        let (algorithm, ruled, rate) = (self.algorithm, self.ruled, arguments.rate);
        let mut reign = Reign { algorithm, ruled, assigner, cgroup: None, started, deadline, rate };
        reign.announce(arguments.json)?;
        let follows = ruled.cgroup().is_some();
        while signals.wait(&listener, deadline, follows).map_err(Failure::failed)? == Ended::No {
            listener.serve(|request| reign.answer(request));
            reign.follow();
        }
        Ok(())
    }

    /// Writes down whose connections are assigned, and loads what assigns them.
    fn assign(&mut self, rate: Option<Rate>) -> Result<(), Failure> {
        let owner = std::process::id();
        let change = Change::Connections(self.ruled.assigned(self.algorithm, owner));
        self.lease.record(change.clone()).map_err(Failure::failed)?;
        match Assigner::open(&self.ruled.assignment(self.algorithm, rate)) {
            Ok(assigner) => self.assigner = Some((assigner, change)),
            Err(error) => {
                self.lease.forget(&change).map_err(Failure::failed)?;
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Makes the algorithm what new connections get.
    fn give_out(&self) -> Result<Option<Guard>, Failure> {
        match &self.ruled.scope {
            Scope::Namespace => SysctlGuard::set(self.lease, DEFAULT_ALGORITHM, self.algorithm)
                .map(|guard| Some(Guard::Sysctl(guard)))
                .map_err(refused),
            Scope::Route(route, _) => route
                .set_algorithm(self.lease, self.algorithm)
                .map(|guard| Some(Guard::Route(guard)))
                .map_err(Failure::failed),
            Scope::Cgroup(_) | Scope::Existing(_) => Ok(None),
        }
    }

    /// What gives out the algorithm first, so that nothing new comes to it; then its connections.
    /// The algorithm itself goes with the lease.
    fn let_go(&mut self) {
        if let Some((assigner, _)) = &mut self.assigner {
            assigner.stop();
        }
        let restored = match self.guard.take() {
            None => Ok(()),
            Some(Guard::Sysctl(guard)) => guard.restore(self.lease).map_err(anyhow::Error::from),
            Some(Guard::Route(guard)) => guard.restore(self.lease).map_err(anyhow::Error::from),
        };
        if let Err(error) = restored {
            note(format_args!("warning: {error:#}"));
        }
        let Some((mut assigner, change)) = self.assigner.take() else { return };
        let given_back = assigner.give_back().map_err(anyhow::Error::from).and_then(|report| {
            if report.failed > 0 {
                note(format_args!("warning: {} connections not given back", report.failed));
            }
            Ok(self.lease.forget(&change)?)
        });
        if let Err(error) = given_back {
            note(format_args!("warning: {error:#}"));
        }
    }
}

/// A namespace other than the first takes only some algorithms as its default.
fn refused(error: SysctlError) -> Failure {
    let is_refused = matches!(&error, SysctlError::Io { source, .. }
        if source.kind() == std::io::ErrorKind::PermissionDenied);
    if !is_refused {
        return Failure::failed(error);
    }
    let allowed = wakeai_host::read_sysctl("net.ipv4.tcp_allowed_congestion_control");
    let context = format!(
        "this network namespace may have one of {} as its default; the first namespace's sysctl \
         net.ipv4.tcp_allowed_congestion_control allows more",
        allowed.unwrap_or_default()
    );
    Failure::missing_if(true, anyhow::Error::new(error).context(context))
}

fn check(report: MoveReport) -> Result<(), Failure> {
    if report.failed > 0 {
        note(format_args!("warning: {} connections refused it", report.failed));
    }
    if report.moved == 0 {
        let none = "there is no such connection; `wakeai monitor` and `ss -te` show them";
        return Err(Failure::failed(anyhow!(none)));
    }
    Ok(())
}
