//! One assignment, from its start until its changes are undone.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use wakeai_api::Drift;
use wakeai_host::{
    Cgroup, Change, DEFAULT_ALGORITHM, Drifts, Guard, Lease, OtherChange, Outcome, Role, Stage,
    SysctlError, Watch, WatchOthers, set_sysctl, since_boot,
};
use wakeai_kernel::{
    Assigner, Assignment, Bounded, Control, Covered, HOLDS_A_RATE, MoveReport, parts, release,
};
use wakeai_units::{Duration, Instant, Rate};

use crate::control::{Answer, InForce, Listener, Request};
use crate::scope::{Found, Scope};
use crate::{AssignError, AssignOptions, check_algorithm, check_rate};

/// A report of [`run`] to its caller.
#[derive(Debug)]
pub enum Event {
    /// The assignment is in force from now on.
    InForce(InForce),
    /// A failure that does not end the assignment.
    Warning(String),
}

/// Makes the assignment and keeps it in force until `shutdown` is readable or the duration is over.
/// Then it undoes the changes. The calling thread moves into the network namespace that the options
/// name.
///
/// # Errors
/// [`AssignError`] where the assignment could not be made or kept; its changes are undone then, too.
pub fn run(
    options: &AssignOptions,
    shutdown: BorrowedFd<'_>,
    tell: &mut dyn FnMut(Event),
) -> Result<(), AssignError> {
    check_rate(&options.algorithm, options.rate)?;
    let found = Found::find(options)?;
    check_algorithm(&options.algorithm)?;
    let lease = Lease::take(Role::Use { exclusive: found.exclusive() })?;
    let outcome = hold(options, &found, &lease, shutdown, tell);
    for (change, reason) in release(lease) {
        tell(Event::Warning(format!(
            "could not be undone: {change} ({reason}); the next wakeai command tries again"
        )));
    }
    outcome
}

fn hold(
    options: &AssignOptions,
    found: &Found,
    lease: &Lease,
    shutdown: BorrowedFd<'_>,
    tell: &mut dyn FnMut(Event),
) -> Result<(), AssignError> {
    let started = since_boot();
    // The record is needed for the kernel's own algorithms, too, because the previous algorithm may
    // be one of Wakeai's.
    lease.record(parts())?;
    if Bounded::named(&options.algorithm).is_some() {
        Control::open()?;
    }
    let change = found.assigned(&options.algorithm).change();
    lease.record(change.clone())?;
    let assigner = match Assigner::open(&found.assignment(&options.algorithm, options.rate)) {
        Ok(assigner) => assigner,
        Err(error) => {
            lease.forget(&change)?;
            return Err(error.into());
        }
    };
    let mut running = Running {
        algorithm: &options.algorithm,
        found,
        lease,
        assigner,
        guard: None,
        successor: None,
        refused: None,
        started,
        // A duration that never ends leads to the end of the clock.
        deadline: options.duration.map(|of| started.checked_add(of).unwrap_or(Instant::MAX)),
        rate: options.rate,
        drifts: Drifts::default(),
        tell,
    };
    let outcome = running.run(shutdown);
    running.give_back(&change);
    outcome
}

/// An assignment that is in force.
struct Running<'a> {
    algorithm: &'a str,
    found: &'a Found,
    lease: &'a Lease,
    assigner: Assigner,
    /// The change that makes the algorithm the default of new connections.
    guard: Option<Guard>,
    /// The cgroup that has taken the place of the cgroup that was found at the start.
    successor: Option<Cgroup>,
    /// The reason why `successor` could not be covered at the last attempt.
    refused: Option<String>,
    started: Instant,
    deadline: Option<Instant>,
    rate: Option<Rate>,
    /// What other programs have changed of what the assignment holds on the host.
    drifts: Drifts,
    tell: &'a mut dyn FnMut(Event),
}

impl Running<'_> {
    fn run(&mut self, shutdown: BorrowedFd<'_>) -> Result<(), AssignError> {
        self.guard = self.set_default()?;
        if let Scope::Existing(cookies) = &self.found.scope {
            let MoveReport { moved, failed, .. } = self.assigner.take_existing(cookies)?;
            if failed > 0 {
                self.warn(format!("{failed} connections could not be moved to {}", self.algorithm));
            }
            if moved == 0 {
                return Err(AssignError::NoConnection);
            }
        }
        let listener = Listener::bind(self.lease)?;
        let mut watch = Watch::new(self.lease);
        let in_force = self.show()?;
        (self.tell)(Event::InForce(in_force));
        let follows = matches!(self.found.scope, Scope::Cgroup(_));
        while !listener.wait(shutdown, self.deadline, follows, &watch)? {
            self.follow();
            if !follows {
                watch.make_due(); // an answer says what is in force now
            }
            self.look(&mut watch)?;
            listener.serve(|request| self.answer(request));
        }
        Ok(())
    }

    /// Looks whether other programs have undone the assignment. It ends where it cannot be put back.
    fn look(&mut self, watch: &mut Watch) -> Result<(), AssignError> {
        let assignment = self.found.assignment(self.algorithm, self.rate);
        let cgroup = match &self.found.scope {
            Scope::Cgroup(first) => Some(self.successor.as_ref().unwrap_or(first)),
            _ => None,
        };
        let parts =
            AssignmentParts { assignment, cgroup, assigner: RefCell::new(&mut self.assigner) };
        for drift in watch.look(self.lease, &parts) {
            let is_needed = !matches!(drift.change, Change::Socket { .. });
            if is_needed && matches!(drift.outcome, Outcome::Lost(_)) {
                return Err(AssignError::Lost(Box::new(drift)));
            }
            self.drifts.add(drift);
        }
        Ok(())
    }

    /// Makes the algorithm the default of new connections, where the scope has a default.
    fn set_default(&self) -> Result<Option<Guard>, AssignError> {
        Ok(match &self.found.scope {
            Scope::Namespace => {
                let set = set_sysctl(self.lease, DEFAULT_ALGORITHM, self.algorithm);
                Some(set.map_err(default_refused)?)
            }
            Scope::Route(route, _) => Some(route.set_algorithm(self.lease, self.algorithm)?),
            Scope::Cgroup(_) | Scope::Existing(_) => None,
        })
    }

    fn show(&mut self) -> Result<InForce, AssignError> {
        let left = self.deadline.map(|end| end.saturating_since(since_boot()));
        Ok(InForce {
            id: std::process::id(),
            algorithm: self.algorithm.to_owned(),
            scope: self.found.kind().to_owned(),
            name: self.found.name(),
            netns: self.found.netns.0,
            to: self.found.destination_text(),
            rate_mbps: self.rate.map(Rate::as_mbps_f64),
            connections: self.assigner.count()?,
            running_s: since_boot().saturating_since(self.started).as_secs_f64(),
            left_s: left.map(Duration::as_secs_f64),
            drifts: self
                .drifts
                .last()
                .map(|(age, drift)| Drift {
                    change: drift.change.what(),
                    found: drift.found.clone(),
                    outcome: drift.outcome.to_string(),
                    age_s: age.as_secs_f64(),
                })
                .collect(),
        })
    }

    /// Answers the request of another process.
    fn answer(&mut self, request: Request) -> Answer {
        if let Request::SetRate(bits_per_second) = request {
            if self.algorithm != HOLDS_A_RATE {
                return Err(format!(
                    "{} has no target rate; only {HOLDS_A_RATE} has one",
                    self.algorithm
                ));
            }
            let rate = Rate::from_bps(bits_per_second);
            self.assigner.aim(rate.bytes_per_second()).map_err(|error| error.to_string())?;
            self.rate = Some(rate);
        }
        self.show().map_err(|error| error.to_string())
    }

    /// Covers the new cgroup of a unit that was started again. The connections of the earlier
    /// cgroup remain assigned to this process. A cgroup that cannot be covered is tried again. A
    /// reason is reported only once.
    fn follow(&mut self) {
        let Scope::Cgroup(first) = &self.found.scope else { return };
        let Some(next) = self.successor.as_ref().unwrap_or(first).successor() else { return };
        let assignment = self.found.assignment(self.algorithm, self.rate);
        let covered = Covered::Cgroup(next.as_fd());
        match Assigner::open(&Assignment { covered, ..assignment }) {
            Ok(assigner) => {
                self.assigner = assigner;
                self.successor = Some(next);
                self.refused = None;
            }
            Err(error) => {
                let reason = format!("{}: {error:#}", next.path().display());
                if self.refused.as_ref() != Some(&reason) {
                    self.refused = Some(reason.clone());
                    self.warn(reason);
                }
            }
        }
    }

    /// Restores the default first, so that no new connection gets the algorithm. Then moves the
    /// connections back to their algorithms. The algorithm is unloaded later, when the lease is
    /// released.
    fn give_back(mut self, change: &Change) {
        self.assigner.stop();
        if let Some(Err(error)) = self.guard.take().map(|guard| guard.restore(self.lease)) {
            self.warn(error.to_string());
        }
        match self.assigner.give_back() {
            Err(error) => self.warn(error.to_string()),
            Ok(report) => {
                if report.failed > 0 {
                    self.warn(format!(
                        "the algorithm of {} connections could not be restored",
                        report.failed
                    ));
                }
                if let Err(error) = self.lease.forget(change) {
                    self.warn(error.to_string());
                }
            }
        }
    }

    fn warn(&mut self, text: String) {
        (self.tell)(Event::Warning(text));
    }
}

/// What an assignment has in the kernel.
struct AssignmentParts<'a> {
    assignment: Assignment<'a>,
    /// The cgroup whose new connections are moved.
    cgroup: Option<&'a Cgroup>,
    assigner: RefCell<&'a mut Assigner>,
}

impl WatchOthers for AssignmentParts<'_> {
    fn holds(&self, change: &OtherChange) -> Result<(), String> {
        match (change.stage, self.cgroup) {
            (Stage::Shared, _) => match Control::check_registered() {
                Err(error) if Bounded::named(self.assignment.algorithm).is_some() => {
                    Err(error.to_string())
                }
                _ => Ok(()),
            },
            // The program of a cgroup that was removed went with it; `Running::follow` waits for another one.
            (_, Some(cgroup)) if cgroup.is_there() && !self.assigner.borrow().is_attached() => {
                Err("no program that moves new connections of the cgroup".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn put_back(&self, change: &OtherChange) -> io::Result<()> {
        if let (Stage::Whole, Some(cgroup)) = (change.stage, self.cgroup) {
            let covered = Covered::Cgroup(cgroup.as_fd());
            let again = Assigner::open(&Assignment { covered, ..self.assignment });
            **self.assigner.borrow_mut() = again.map_err(io::Error::other)?;
        }
        Ok(())
    }
}

fn default_refused(source: SysctlError) -> AssignError {
    match &source {
        SysctlError::Io { source: io, .. } if io.kind() == io::ErrorKind::PermissionDenied => {
            let allowed = wakeai_host::read_sysctl("net.ipv4.tcp_allowed_congestion_control");
            AssignError::NotAllowed { allowed: allowed.unwrap_or_default(), source }
        }
        _ => AssignError::Default(source),
    }
}
