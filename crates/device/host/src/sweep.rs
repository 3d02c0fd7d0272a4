//! Undoes the changes of processes on the host. A process records its changes in its lease, and
//! undoes them when it releases the lease. A sweep undoes the changes of processes that died.

use std::fmt;
use std::io;

use crate::change::{Assigned, Change, Guard};
use crate::lease::Lease;
use crate::process::ProcessId;
use crate::registry::{Holder, Registry};
use crate::remove::Undone;
use crate::undo::{Stage, stage, undo};

/// Removes the kernel's parts: the registrations of algorithms and the pinned BPF maps that all
/// processes share. Returns `true` where there were any. It is called only when no live process
/// holds [`Change::KernelParts`].
pub type KernelUnload<'a> = &'a dyn Fn() -> Result<bool, Box<dyn std::error::Error>>;

/// The parts of undoing that need the `kernel` crate, which this crate does not depend on. Both
/// methods return `true` where there was anything to undo.
pub trait KernelUndo {
    /// See [`KernelUnload`].
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    fn unload(&self) -> Result<bool, Box<dyn std::error::Error>>;

    /// Moves connections back to the algorithm that they had before.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    fn give_back(&self, assigned: &Assigned) -> Result<bool, Box<dyn std::error::Error>>;
}

/// A change that a sweep has undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    /// The process that made the change; `None` for the kernel's parts, which belong to no single
    /// process.
    pub process: Option<ProcessId>,
    /// The change.
    pub change: Change,
}

impl fmt::Display for Removed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.process {
            Some(process) => write!(f, "{} left by process {process}", self.change),
            None => write!(f, "{} that no running process holds", self.change),
        }
    }
}

/// A failure to undo changes.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The leases could not be read.
    #[error("cannot read the records of changes in {state}/leases: {0}", state = crate::state().display())]
    Registry(#[from] io::Error),
    /// A change could not be undone. It stays in the lease for the next sweep.
    #[error("cannot undo {change}: {reason}; the next wakeai command tries again")]
    Undo {
        /// The change.
        change: Change,
        /// The reason.
        reason: String,
    },
    /// Something else has taken the place of what the process made. It stays, and the change is no
    /// longer recorded.
    #[error("left alone: {change}: {reason}")]
    Kept {
        /// The change.
        change: Change,
        /// The reason.
        reason: String,
    },
}

impl Guard {
    /// Restores the previous setting, and removes the change from the lease. A setting that was
    /// changed again since stays.
    ///
    /// # Errors
    ///
    /// [`SweepError::Undo`].
    pub fn restore(self, lease: &Lease) -> Result<(), SweepError> {
        let undone = undo(&self.0).and_then(|_| lease.forget(&self.0).map_err(io::Error::other));
        undone.map_err(|error| SweepError::Undo { change: self.0, reason: error.to_string() })
    }
}

impl Lease {
    /// Undoes every change that is still recorded, the newest first, and ends the lease. The last
    /// live process that holds the kernel's parts unloads them. Returns the changes that could not
    /// be undone, with the reasons; the next [`crate::sweep`] tries to undo them again.
    pub fn release(self, unload: KernelUnload<'_>) -> Vec<(Change, String)> {
        let (registry, mut holder) = self.into_parts();
        let mut failed = Vec::new();
        match registry.lock() {
            Ok(_lock) => {
                failed.extend(undo_all(&holder));
                let held_kernel_parts = holder.changes.contains(&Change::KernelParts);
                holder.changes = failed.iter().map(|(change, _)| change.clone()).rev().collect();
                let kept = if failed.is_empty() {
                    registry.remove(&holder)
                } else {
                    registry.write(&holder)
                };
                if let Err(error) = kept {
                    tracing::warn!(%error, "the lease file could not be updated");
                }
                if held_kernel_parts
                    && !kernel_parts_held(&registry)
                    && let Err(error) = unload()
                {
                    failed.push((Change::KernelParts, error.to_string()));
                }
            }
            Err(error) => {
                tracing::warn!(%error, "the leases could not be locked; the next wakeai command undoes the changes");
            }
        }
        failed
    }
}

/// Undoes the changes of one lease, the newest first; returns those that could not be undone.
fn undo_all(holder: &Holder) -> Vec<(Change, String)> {
    let mut failed = Vec::new();
    for change in holder.changes.iter().rev() {
        match undo(change) {
            Ok(Undone::Done | Undone::Nothing) => {}
            Ok(Undone::Kept(reason)) => tracing::warn!("left alone: {change}: {reason}"),
            Err(error) => failed.push((change.clone(), error.to_string())),
        }
    }
    failed
}

/// Whether a live process holds the kernel's parts. It is also `true` where that is not known,
/// because the lease of a live process cannot be read or the leases cannot be listed.
fn kernel_parts_held(registry: &Registry) -> bool {
    let held = || -> io::Result<bool> {
        let mut holders = registry.holders()?.into_iter();
        let holds = |holder: &Holder| holder.changes.contains(&Change::KernelParts);
        let held = holders.any(|holder| holds(&holder) && holder.process.is_alive());
        Ok(held || !registry.unread()?.is_empty())
    };
    held().unwrap_or_else(|error| {
        tracing::warn!(%error, "the leases cannot be read: the BPF parts stay");
        true
    })
}

/// The live processes that hold leases.
///
/// # Errors
///
/// Where the leases cannot be read.
pub fn holders() -> Result<Vec<Holder>, SweepError> {
    let registry = Registry::system();
    if !registry.exists() {
        return Ok(Vec::new());
    }
    let _lock = registry.lock()?;
    Ok(registry.holders()?.into_iter().filter(|holder| holder.process.is_alive()).collect())
}

/// Undoes the changes of dead processes, and returns what was undone, with the errors. Every
/// command calls it first. It needs root.
///
/// # Errors
///
/// The errors are the second part of the result. A change that cannot be undone does not end the
/// sweep.
pub fn sweep(kernel: &dyn KernelUndo) -> (Vec<Removed>, Vec<SweepError>) {
    sweep_in(&Registry::system(), kernel)
}

pub(crate) fn sweep_in(
    registry: &Registry,
    kernel: &dyn KernelUndo,
) -> (Vec<Removed>, Vec<SweepError>) {
    let mut sweep = Sweep { kernel, removed: Vec::new(), errors: Vec::new(), seen: Vec::new() };
    if let Err(error) = sweep.run(registry) {
        sweep.errors.push(error.into());
    }
    (sweep.removed, sweep.errors)
}

struct Sweep<'a> {
    kernel: &'a dyn KernelUndo,
    removed: Vec<Removed>,
    errors: Vec<SweepError>,
    /// The leases of earlier rounds. They are not undone again.
    seen: Vec<(ProcessId, u32)>,
}

impl Sweep<'_> {
    fn run(&mut self, registry: &Registry) -> io::Result<()> {
        let _lock = registry.lock()?;
        registry.remove_unfinished()?;
        let mut dead = self.newly_dead(registry)?;
        loop {
            self.round(registry, dead)?;
            // A process may have ended meanwhile, such as an agent of a dead lab, which the kernel or
            // the round kills. It leaves a lease of its own.
            dead = self.newly_dead(registry)?;
            if dead.is_empty() {
                return Ok(());
            }
        }
    }

    /// The leases of dead processes that no earlier round has undone. A process that was killed a
    /// moment ago is waited for: while the kernel frees what it holds, it still counts as alive.
    fn newly_dead(&mut self, registry: &Registry) -> io::Result<Vec<Holder>> {
        let is_new = |holder: &Holder| !self.seen.contains(&(holder.process, holder.sequence));
        let mut dead = registry.holders()?;
        for holder in &dead {
            holder.process.wait_if_ending();
        }
        dead.retain(|holder| is_new(holder) && !holder.process.is_alive());
        self.seen.extend(dead.iter().map(|holder| (holder.process, holder.sequence)));
        Ok(dead)
    }

    fn round(&mut self, registry: &Registry, dead: Vec<Holder>) -> io::Result<()> {
        let mut dead: Vec<_> = dead.into_iter().map(|holder| (holder, true)).collect();
        for stage in [Stage::Defaults, Stage::RouteConnections, Stage::Connections] {
            for (holder, is_undone) in &mut dead {
                *is_undone &= self.undo(holder, stage);
            }
        }
        let unloaded = self.unload_unless_held(registry);
        for (holder, mut is_undone) in dead {
            is_undone &= self.undo(&holder, Stage::Rest);
            if is_undone {
                registry.remove(&holder)?;
            }
        }
        if !unloaded {
            // The last holder may have been one of the processes that this sweep has killed.
            self.unload_unless_held(registry);
        }
        Ok(())
    }

    /// Undoes a dead process's changes of this stage, the newest first; returns `false` where one could
    /// not be undone.
    fn undo(&mut self, holder: &Holder, now: Stage) -> bool {
        let mut all = true;
        for change in holder.changes.iter().rev().filter(|change| stage(change) == now) {
            let undone = match change {
                Change::Connections(assigned) => self
                    .kernel
                    .give_back(assigned)
                    .map(|any| if any { Undone::Done } else { Undone::Nothing }),
                other => undo(other).map_err(Into::into),
            };
            match undone {
                Ok(Undone::Done) => {
                    let change = change.clone();
                    self.removed.push(Removed { process: Some(holder.process), change });
                }
                Ok(Undone::Nothing) => {}
                Ok(Undone::Kept(reason)) => {
                    self.errors.push(SweepError::Kept { change: change.clone(), reason });
                }
                Err(error) => {
                    all = false;
                    self.fail(change, &*error);
                }
            }
        }
        all
    }

    /// Unloads the kernel's parts; returns `false` where a live process holds them.
    fn unload_unless_held(&mut self, registry: &Registry) -> bool {
        if kernel_parts_held(registry) {
            return false;
        }
        match self.kernel.unload() {
            Ok(true) => {
                self.removed.push(Removed { process: None, change: Change::KernelParts });
            }
            Ok(false) => {}
            Err(error) => self.fail(&Change::KernelParts, &*error),
        }
        true
    }

    fn fail(&mut self, change: &Change, error: &dyn std::error::Error) {
        self.errors.push(SweepError::Undo { change: change.clone(), reason: error.to_string() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::{AssignedWay, FileId};
    use crate::lease::LeaseError;
    use crate::namespace::NetnsId;
    use crate::registry::Role;
    use std::cell::Cell;

    /// A kernel whose parts are unloaded by this function.
    struct Kernel<F>(F);

    impl<F: Fn() -> bool> KernelUndo for Kernel<F> {
        fn unload(&self) -> Result<bool, Box<dyn std::error::Error>> {
            Ok(self.0())
        }

        fn give_back(&self, assigned: &Assigned) -> Result<bool, Box<dyn std::error::Error>> {
            if assigned.algorithm == "stuck" { Err("stuck".into()) } else { Ok(true) }
        }
    }

    /// A kernel without parts.
    const EMPTY: Kernel<fn() -> bool> = Kernel(|| false);

    fn dead() -> ProcessId {
        let me = ProcessId::current().unwrap();
        ProcessId { start_time: me.start_time - 1, ..me }
    }

    /// Makes a file, and returns its record.
    fn made(path: &std::path::Path) -> Change {
        std::fs::write(path, "").unwrap();
        let made = FileId::of(&std::fs::symlink_metadata(path).unwrap());
        Change::File { path: path.to_owned(), made: Some(made) }
    }

    fn agent() -> Role {
        Role::Agent { netns: NetnsId(7), interface: "wlan0".to_owned() }
    }

    #[test]
    fn changes_of_a_dead_process_are_undone_once_and_returned() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::at(&dir.path().join("leases"));
        let left = dir.path().join("agent.sock");
        let change = made(&left);
        let _ = registry.lock().unwrap();
        registry
            .write(&Holder {
                process: dead(),
                sequence: 0,
                role: agent(),
                changes: vec![change.clone()],
            })
            .unwrap();

        let (removed, errors) = sweep_in(&registry, &EMPTY);
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!(removed, [Removed { process: Some(dead()), change }]);
        assert!(!left.exists());
        assert!(sweep_in(&registry, &EMPTY).0.is_empty());
    }

    #[test]
    fn the_kernels_parts_are_unloaded_before_namespaces_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::at(&dir.path().join("leases"));
        let namespace = dir.path().join("stands-for-a-namespace");
        let changes = vec![made(&namespace), Change::KernelParts];
        let _ = registry.lock().unwrap();
        registry.write(&Holder { process: dead(), sequence: 0, role: Role::Lab, changes }).unwrap();
        let (removed, errors) = sweep_in(&registry, &Kernel(|| namespace.exists()));
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!(removed.len(), 2, "{removed:?}");
        assert_eq!(removed[0].change, Change::KernelParts);
    }

    fn connections(algorithm: &str) -> Change {
        let way = AssignedWay::Moved { owner: 7 };
        Change::Connections(Assigned { netns: None, algorithm: algorithm.to_owned(), way })
    }

    #[test]
    fn connections_are_restored_before_the_kernels_parts_are_unloaded() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::at(&dir.path().join("leases"));
        let changes = vec![Change::KernelParts, connections("wakeai_rtt")];
        let role = Role::Use { exclusive: None };
        let _ = registry.lock().unwrap();
        registry.write(&Holder { process: dead(), sequence: 0, role, changes }).unwrap();
        let (removed, errors) = sweep_in(&registry, &Kernel(|| true));
        assert!(errors.is_empty(), "{errors:?}");
        let removed: Vec<_> = removed.into_iter().map(|removed| removed.change).collect();
        assert_eq!(removed, [connections("wakeai_rtt"), Change::KernelParts]);
        assert!(registry.holders().unwrap().is_empty());
    }

    #[test]
    fn a_sweep_undoes_the_changes_of_the_processes_that_it_kills_too() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::at(&dir.path().join("leases"));
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let agents = ProcessId::of(child.id()).unwrap();
        let socket = dir.path().join("socket");
        let changes = vec![made(&socket)];
        let role = agent();
        let _ = registry.lock().unwrap();
        registry.write(&Holder { process: agents, sequence: 0, role, changes }).unwrap();
        let (role, changes) = (Role::Lab, vec![Change::Process(agents)]);
        registry.write(&Holder { process: dead(), sequence: 0, role, changes }).unwrap();
        let (removed, errors) = sweep_in(&registry, &EMPTY);
        child.wait().unwrap();
        assert!(errors.is_empty() && removed.len() == 2, "{removed:?} {errors:?}");
        assert!(!socket.exists() && registry.holders().unwrap().is_empty());
    }

    #[test]
    fn a_process_that_ends_by_itself_during_a_sweep_is_swept_too() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::at(&dir.path().join("leases"));
        let child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let agents = ProcessId::of(child.id()).unwrap();
        let child = std::cell::RefCell::new(child);
        let socket = dir.path().join("socket");
        let changes = vec![made(&socket)];
        let _ = registry.lock().unwrap();
        registry.write(&Holder { process: agents, sequence: 0, role: agent(), changes }).unwrap();
        let (role, changes) = (Role::Lab, vec![Change::Process(agents)]);
        registry.write(&Holder { process: dead(), sequence: 0, role, changes }).unwrap();
        // The round calls this before it undoes the lease of the lab.
        let ends = Kernel(|| {
            child.borrow_mut().kill().unwrap();
            child.borrow_mut().wait().unwrap();
            false
        });
        let (removed, errors) = sweep_in(&registry, &ends);
        assert!(errors.is_empty() && removed.len() == 1, "{removed:?} {errors:?}");
        assert!(!socket.exists() && registry.holders().unwrap().is_empty());
    }

    #[test]
    fn a_process_that_was_killed_and_has_not_ended_yet_is_swept_too() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::at(&dir.path().join("leases"));
        // The kernel needs a while to free 512 MB.
        let large = ["if=/dev/zero", "of=/dev/null", "bs=512M", "status=none"];
        let mut child = std::process::Command::new("dd").args(large).spawn().unwrap();
        let process = ProcessId::of(child.id()).unwrap();
        let resident = || {
            let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
            line.map_or(0, |line| line.trim().split(' ').next().unwrap().parse::<u64>().unwrap())
        };
        while resident() < 500_000 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let socket = dir.path().join("socket");
        let changes = vec![made(&socket)];
        let _ = registry.lock().unwrap();
        registry.write(&Holder { process, sequence: 0, role: agent(), changes }).unwrap();
        child.kill().unwrap();
        let (removed, errors) = sweep_in(&registry, &EMPTY);
        child.wait().unwrap();
        assert!(errors.is_empty() && removed.len() == 1, "{removed:?} {errors:?}");
        assert!(!socket.exists() && registry.holders().unwrap().is_empty());
    }

    #[test]
    fn an_unfinished_lease_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::at(&dir.path().join("leases"));
        let _ = registry.lock().unwrap();
        let unfinished = dir.path().join("leases/1-1-0.new");
        std::fs::write(&unfinished, "{").unwrap();
        let (removed, errors) = sweep_in(&registry, &EMPTY);
        assert!(removed.is_empty() && errors.is_empty() && !unfinished.exists());
    }

    #[test]
    fn connections_that_cannot_be_moved_back_stay_recorded() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::at(&dir.path().join("leases"));
        let role = Role::Use { exclusive: None };
        let changes = vec![connections("stuck")];
        let _ = registry.lock().unwrap();
        registry.write(&Holder { process: dead(), sequence: 0, role, changes }).unwrap();
        assert_eq!(sweep_in(&registry, &EMPTY).1.len(), 1);
        assert_eq!(registry.holders().unwrap().len(), 1);
    }

    #[test]
    fn a_target_belongs_to_one_process_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::at(dir.path());
        let role = |what: Option<&str>| Role::Use { exclusive: what.map(str::to_owned) };
        let take = |what| Lease::take_in(registry.clone(), role(what));
        let first = take(Some("the route to 192.0.2.0/24")).unwrap();
        let second = take(Some("the route to 192.0.2.0/24")).unwrap_err();
        assert!(second.to_string().contains("--undo"), "{second}");
        let (_, _, _) = (take(Some("another")).unwrap(), take(None).unwrap(), take(None).unwrap());
        first.release(&|| Ok(false));
        assert!(take(Some("the route to 192.0.2.0/24")).is_ok());
    }

    #[test]
    fn a_live_process_keeps_its_changes_and_the_kernels_parts() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::at(dir.path());
        let lease = Lease::take_in(registry.clone(), agent()).unwrap();
        let file = dir.path().join("held");
        lease.record(made(&file)).unwrap();
        lease.record(Change::KernelParts).unwrap();

        let (removed, errors) = sweep_in(&registry, &Kernel(|| panic!("the parts are held")));
        assert!(removed.is_empty() && errors.is_empty());
        assert!(file.exists());

        let unloaded = Cell::new(0);
        let failed = lease.release(&|| {
            unloaded.set(unloaded.get() + 1);
            Ok(true)
        });
        assert!(failed.is_empty() && !file.exists());
        assert_eq!(unloaded.get(), 1, "the last holder unloads");
    }

    #[test]
    fn a_namespace_has_one_live_agent() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::at(dir.path());
        let _ = registry.lock().unwrap();
        registry
            .write(&Holder { process: dead(), sequence: 0, role: agent(), changes: vec![] })
            .unwrap();
        let _first = Lease::take_in(registry.clone(), agent()).unwrap();
        let second = Lease::take_in(registry, agent()).unwrap_err();
        assert!(matches!(second, LeaseError::AgentRuns { .. }));
        assert!(second.to_string().contains("wlan0"));
    }

    #[test]
    fn an_unreadable_lease_is_set_aside() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::at(dir.path());
        std::fs::write(dir.path().join("1-1.json"), "{").unwrap();
        let (removed, errors) = sweep_in(&registry, &EMPTY);
        assert!(removed.is_empty() && errors.is_empty());
        assert!(dir.path().join("1-1.unreadable").exists());
    }

    #[test]
    fn an_unreadable_lease_of_a_living_process_stays() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::at(dir.path());
        let me = ProcessId::current().unwrap();
        let lease = dir.path().join(format!("{}-{}-0.json", me.pid, me.start_time));
        std::fs::write(&lease, r#"{"process":{"pid":1},"role":{"role":"of-a-later-version"}}"#)
            .unwrap();
        let (removed, errors) = sweep_in(&registry, &Kernel(|| panic!("the parts may be held")));
        assert!(removed.is_empty() && errors.is_empty(), "{removed:?} {errors:?}");
        assert!(lease.exists(), "its process still needs it");
    }

    #[test]
    fn a_lease_that_others_may_write_is_not_obeyed() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::at(&dir.path().join("leases"));
        let precious = dir.path().join("precious");
        let holder =
            Holder { process: dead(), sequence: 0, role: agent(), changes: vec![made(&precious)] };
        let _ = registry.lock().unwrap();
        registry.write(&holder).unwrap();
        let name = format!("{}-{}-0.json", dead().pid, dead().start_time);
        let lease = dir.path().join("leases").join(name);
        std::fs::set_permissions(&lease, std::fs::Permissions::from_mode(0o666)).unwrap();
        let (removed, _) = sweep_in(&registry, &EMPTY);
        assert!(removed.is_empty(), "{removed:?}");
        assert!(precious.exists());
        assert!(lease.with_extension("unreadable").exists(), "it is kept for inspection");
    }

    #[test]
    fn a_change_that_cannot_be_undone_stays_recorded() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::at(&dir.path().join("leases"));
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let stuck = file.join("under-a-file"); // ENOTDIR
        let _ = registry.lock().unwrap();
        let change = Change::File { path: stuck, made: None };
        registry
            .write(&Holder { process: dead(), sequence: 0, role: Role::Lab, changes: vec![change] })
            .unwrap();
        assert_eq!(sweep_in(&registry, &EMPTY).1.len(), 1);
        assert_eq!(sweep_in(&registry, &EMPTY).1.len(), 1);
    }
}
