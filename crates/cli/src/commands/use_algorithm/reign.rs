//! One while it is in force.

use std::os::fd::AsFd as _;
use std::time::Instant;

use wakeai_host::Cgroup;
use wakeai_kernel::{Assigner, Assignment, Covered};
use wakeai_units::Rate;

use super::algorithm::AIMED;
use super::control::{Answer, InForce, Request};
use super::scope::Ruled;
use crate::failure::{Failure, note};
use crate::output;

/// What it is asked about.
pub(super) struct Reign<'a> {
    pub(super) algorithm: &'a str,
    pub(super) ruled: &'a Ruled,
    pub(super) assigner: &'a mut Assigner,
    /// What has taken the place of the cgroup that was found at the start.
    pub(super) cgroup: Option<Cgroup>,
    pub(super) started: Instant,
    pub(super) deadline: Option<Instant>,
    pub(super) rate: Option<Rate>,
}

impl Reign<'_> {
    /// Says that it is in force.
    pub(super) fn announce(&mut self, json: bool) -> Result<(), Failure> {
        let in_force = self.show()?;
        if json {
            return output::json(&in_force).map(|_| ());
        }
        let InForce { algorithm, id, .. } = &in_force;
        let words = in_force.words();
        note(format_args!("{algorithm} rules {words}; Ctrl-C or `wakeai use --undo {id}` ends it"));
        Ok(())
    }

    fn show(&mut self) -> Result<InForce, Failure> {
        let left = self.deadline.map(|end| end.saturating_duration_since(Instant::now()));
        Ok(InForce {
            id: std::process::id(),
            algorithm: self.algorithm.to_owned(),
            scope: self.ruled.kind().to_owned(),
            name: self.ruled.name(),
            netns: self.ruled.netns.0,
            to: self.ruled.to.map(|to| to.to_string()),
            rate_mbps: self.rate.map(Rate::as_mbps_f64),
            connections: self.assigner.count()?,
            running_s: self.started.elapsed().as_secs_f64(),
            left_s: left.map(|left| left.as_secs_f64()),
        })
    }

    /// A unit that is started again gets another cgroup in the old one's place: what is opened there
    /// is ruled too. Those before are still known as this process's.
    pub(super) fn follow(&mut self) {
        let last = self.cgroup.as_ref().or(self.ruled.cgroup());
        let Some(next) = last.and_then(Cgroup::successor) else { return };
        let assignment = self.ruled.assignment(self.algorithm, self.rate);
        let covered = Covered::Cgroup(next.as_fd());
        match Assigner::open(&Assignment { covered, ..assignment }) {
            Ok(assigner) => *self.assigner = assigner,
            Err(error) => note(format_args!("warning: {}: {error:#}", next.path().display())),
        }
        self.cgroup = Some(next);
    }

    /// What somebody who asks is told.
    pub(super) fn answer(&mut self, request: Request) -> Answer {
        let algorithm = self.algorithm;
        if let Request::SetRate(bits_per_second) = request {
            if algorithm != AIMED {
                return Err(format!("{algorithm} has no target rate, {AIMED} has"));
            }
            let rate = Rate::from_bps(bits_per_second);
            self.assigner.aim(rate.bytes_per_second()).map_err(|error| error.to_string())?;
            self.rate = Some(rate);
        }
        self.show().map_err(|failure| failure.to_string())
    }
}
