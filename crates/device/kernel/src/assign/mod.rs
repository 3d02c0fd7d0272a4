//! Applies an algorithm to the connections of an assignment.

mod assignment;
mod load;

use libbpf_rs::query::LinkTypeInfo;
use libbpf_rs::{Link, MapCore as _, MapFlags, MapHandle};
use wakeai_host::Namespace;
use zerocopy::{FromZeros as _, IntoBytes as _};

pub use assignment::{Assignment, Covered, Destination};

use crate::bounded::is_available;
use crate::connections::{MoveReport, run_with};
use crate::error::Error;
use crate::features::{ITERATE, explain};
use crate::netns::unreadable;
use crate::raw::{AssignOutcomeValue, AssignmentValue, name_field};

/// An assignment in the kernel. Until this value is dropped, new connections of a cgroup are moved,
/// and new connections that have the algorithm by default get the target rate. Dropping it moves no
/// connection back.
///
/// Order of calls: [`Self::open`]; [`Self::take_existing`] where existing connections are covered;
/// [`Self::aim`]; [`Self::stop`] and [`Self::give_back`] at the end.
#[derive(Debug)]
pub struct Assigner {
    value: AssignmentValue,
    assignment: MapHandle,
    outcome: MapHandle,
    iterators: Iterators,
    hook: Option<Link>,
    /// Where the assignment covers connections that have the algorithm by default, this is the
    /// algorithm that they would have had otherwise. `None` stands for the default of their
    /// namespace.
    before: Option<String>,
    everywhere: bool,
}

/// The programs for existing sockets.
#[derive(Debug)]
struct Iterators {
    take_existing: Link,
    aim_existing: Link,
    give_back_moved: Link,
    give_back_defaults: Link,
}

const ASKED: &str = "apply an algorithm";

impl Assigner {
    /// Loads the programs, and attaches the program for new connections.
    ///
    /// Where connections are moved, or where the algorithm is `wakeai_av`, the caller has recorded
    /// [`parts`](crate::parts) in its lease. Then no other process removes the maps that all
    /// processes share, such as the map of moved connections.
    ///
    /// # Errors
    ///
    /// Where a privilege or feature is missing.
    pub fn open(assignment: &Assignment<'_>) -> Result<Self, Error> {
        let netns_cookie = crate::netns_cookie().map_err(|error| unreadable(ASKED, error))?;
        let value = assignment.to_raw(netns_cookie)?;
        load::load(assignment, value)
    }

    /// Moves existing connections of the calling thread's network namespace that the assignment
    /// covers. With `cookies` it moves only the sockets that have one of these cookies.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn take_existing(&mut self, cookies: &[u64]) -> Result<MoveReport, Error> {
        let mut all = MoveReport::default();
        let everything = [0];
        for cookie in if cookies.is_empty() { &everything } else { cookies } {
            self.value.cookie = *cookie;
            self.write()?;
            all = all.plus(self.run(&self.iterators.take_existing)?);
        }
        self.value.cookie = 0;
        self.write()?;
        Ok(all)
    }

    /// Sets the target rate, in payload bytes per second, of all existing and new connections of
    /// the assignment; 0 stands for no target. Only `wakeai_av` uses it. Returns the number of
    /// existing connections.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn aim(&mut self, bytes_per_second: u64) -> Result<u32, Error> {
        self.value.rate = bytes_per_second;
        self.write()?;
        Ok(self.in_namespaces(|this| this.run(&this.iterators.aim_existing))?.moved)
    }

    /// The number of connections of the assignment.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn count(&mut self) -> Result<u32, Error> {
        self.aim(self.value.rate)
    }

    /// Whether the program for new connections is attached, where the assignment has one. The
    /// kernel detaches the program of a cgroup that is removed, too; other programs can detach it
    /// with `bpftool link detach`.
    pub fn is_attached(&self) -> bool {
        let Some(Ok(info)) = self.hook.as_ref().map(Link::info) else { return true };
        match info.info {
            LinkTypeInfo::Cgroup(group) => group.cgroup_id != 0,
            _ => true, // the kernel detaches no program of a tracepoint
        }
    }

    /// Stops moving new connections.
    pub fn stop(&mut self) {
        self.hook = None;
    }

    /// Moves every connection back to the algorithm that it had before, or would have had. Where
    /// the kernel no longer has that algorithm, the connection gets the present default.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn give_back(&mut self) -> Result<MoveReport, Error> {
        self.in_namespaces(|this| {
            this.value.otherwise = this.otherwise();
            this.write()?;
            let link = if this.value.by_default == 0 {
                &this.iterators.give_back_moved
            } else {
                &this.iterators.give_back_defaults
            };
            this.run(link)
        })
    }

    /// The algorithm for connections whose previous algorithm is not known or not available. It is
    /// the one that they would have had, or else the default of the calling thread's network
    /// namespace. Where the default cannot be read, it is Reno, which every kernel has.
    fn otherwise(&self) -> [i8; 16] {
        let before = self.before.clone().filter(|name| is_available(name));
        let default = || wakeai_host::read_sysctl(wakeai_host::DEFAULT_ALGORITHM).ok();
        let found = before.or_else(default).and_then(|name| name_field(ASKED, &name).ok());
        found.unwrap_or_else(|| name_field(ASKED, "reno").expect("it has 4 bytes"))
    }

    /// Runs `work` in every network namespace if the assignment covers all, and otherwise only in
    /// the calling thread's. Returns the sums of the reports, or the first error; an error does not
    /// end the loop.
    fn in_namespaces(
        &mut self,
        mut work: impl FnMut(&mut Self) -> Result<MoveReport, Error> + Send,
    ) -> Result<MoveReport, Error> {
        if !self.everywhere {
            return work(self);
        }
        let mut result = Ok(MoveReport::default());
        for namespace in Namespace::all() {
            match namespace.run(|| work(self)) {
                Ok(done) => result = result.and_then(|all| Ok(all.plus(done?))),
                Err(error) => tracing::warn!(%error, "its connections are not reached"),
            }
        }
        result
    }

    fn write(&self) -> Result<(), Error> {
        let written =
            self.assignment.update(&0_u32.to_ne_bytes(), self.value.as_bytes(), MapFlags::ANY);
        written.map_err(|error| explain(ASKED, ITERATE, error))
    }

    /// Runs an iterator over the sockets of the calling thread's network namespace.
    fn run(&self, program: &Link) -> Result<MoveReport, Error> {
        let nothing = AssignOutcomeValue::new_zeroed();
        let done = run_with(program, ASKED, (&self.outcome, nothing), &mut Vec::new())?;
        Ok(MoveReport { moved: done.done, failed: done.failed })
    }
}
