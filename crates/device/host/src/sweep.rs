//! Undoes the changes of processes on the host. A process records its changes in its lease, and
//! undoes them when it releases the lease. A sweep undoes the changes of processes that died.

use std::fmt;
use std::io;

use crate::change::{Change, Guard, Stage};
use crate::lease::Lease;
use crate::process::ProcessId;
use crate::registry::{Holder, Registry};
use crate::remove::Undone;
use crate::undo::{UndoKinds, undo};

/// A change that a sweep has undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    /// The process that made the change; `None` for what processes share.
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
        let undone = undo(&self.0, &[]).and_then(|_| Ok(lease.forget(&self.0)?));
        undone.map_err(|error| SweepError::Undo { change: self.0, reason: error.to_string() })
    }
}

impl Lease {
    /// Undoes every change that is still recorded, the newest first, and ends the lease. What processes
    /// share is undone by the last of them. Returns the changes that could not be undone, with the
    /// reasons; the next [`crate::sweep`] tries to undo them again.
    pub fn release(self, kinds: UndoKinds<'_>) -> Vec<(Change, String)> {
        let (registry, mut holder) = self.into_parts();
        let _lock = match registry.lock() {
            Ok(lock) => lock,
            Err(error) => {
                tracing::warn!(%error, "the leases could not be locked; the next wakeai command undoes the changes");
                return Vec::new();
            }
        };
        let own = holder.changes.iter().rev().filter(|change| change.stage() != Stage::Shared);
        let mut failed = undo_all(own, kinds);
        let all = std::mem::take(&mut holder.changes);
        holder.changes = failed.iter().map(|(change, _)| change.clone()).rev().collect();
        let kept =
            if failed.is_empty() { registry.remove(&holder) } else { registry.write(&holder) };
        if let Err(error) = kept {
            tracing::warn!(%error, "the lease file could not be updated");
        }
        let is_unheld = |change: &Change| all.contains(change) && !is_held(&registry, change);
        let unheld: Vec<_> = shared(kinds).filter(is_unheld).collect();
        failed.extend(undo_all(unheld.iter(), kinds));
        failed
    }
}

/// Undoes these changes; returns those that could not be undone, with the reasons.
fn undo_all<'a>(
    changes: impl Iterator<Item = &'a Change>,
    kinds: UndoKinds<'_>,
) -> Vec<(Change, String)> {
    let mut failed = Vec::new();
    for change in changes {
        match undo(change, kinds) {
            Ok(Undone::Done | Undone::Nothing) => {}
            Ok(Undone::Kept(reason)) => tracing::warn!("left alone: {change}: {reason}"),
            Err(error) => failed.push((change.clone(), error.to_string())),
        }
    }
    failed
}

/// The changes that processes share.
fn shared(kinds: UndoKinds<'_>) -> impl Iterator<Item = Change> {
    kinds.iter().filter_map(|kind| kind.shared())
}

/// Whether a living process has recorded the change. It is also `true` where that is not known,
/// because the lease of a living process cannot be read or the leases cannot be listed.
fn is_held(registry: &Registry, change: &Change) -> bool {
    let holds = |holder: &Holder| holder.changes.contains(change) && holder.process.is_alive();
    match registry.read() {
        Ok((holders, any_unread)) => any_unread || holders.iter().any(holds),
        Err(error) => {
            tracing::warn!(%error, "the leases cannot be read: {change} stay");
            true
        }
    }
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
/// command that may touch the host calls it first. It needs root.
///
/// # Errors
///
/// The errors are the second part of the result. A change that cannot be undone does not end the
/// sweep.
pub fn sweep(kinds: UndoKinds<'_>) -> (Vec<Removed>, Vec<SweepError>) {
    sweep_in(&Registry::system(), kinds)
}

pub(crate) fn sweep_in(
    registry: &Registry,
    kinds: UndoKinds<'_>,
) -> (Vec<Removed>, Vec<SweepError>) {
    let mut sweep = Sweep { kinds, removed: Vec::new(), errors: Vec::new(), seen: Vec::new() };
    if let Err(error) = sweep.run(registry) {
        sweep.errors.push(error.into());
    }
    (sweep.removed, sweep.errors)
}

struct Sweep<'a> {
    kinds: UndoKinds<'a>,
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
        for stage in [Stage::Defaults, Stage::Part, Stage::Whole] {
            for (holder, is_undone) in &mut dead {
                *is_undone &= self.undo(holder, stage);
            }
        }
        let was_held = self.undo_shared(registry);
        for (holder, mut is_undone) in dead {
            is_undone &= self.undo(&holder, Stage::Rest);
            if is_undone {
                registry.remove(&holder)?;
            }
        }
        if was_held {
            // The last holder may have been one of the processes that this sweep has killed.
            self.undo_shared(registry);
        }
        Ok(())
    }

    /// Undoes a dead process's changes of this stage, the newest first; returns `false` where one could
    /// not be undone.
    fn undo(&mut self, holder: &Holder, now: Stage) -> bool {
        let changes = holder.changes.iter().rev().filter(|change| change.stage() == now);
        changes.fold(true, |all, change| all & self.undo_one(Some(holder.process), change))
    }

    /// Undoes a change of a dead process, or of none; returns `false` where that was not possible.
    fn undo_one(&mut self, process: Option<ProcessId>, change: &Change) -> bool {
        let undone = undo(change, self.kinds);
        let (is_undone, change) = (undone.is_ok(), change.clone());
        match undone.map_err(|error| error.to_string()) {
            Ok(Undone::Done) => self.removed.push(Removed { process, change }),
            Ok(Undone::Nothing) => {}
            Ok(Undone::Kept(reason)) => self.errors.push(SweepError::Kept { change, reason }),
            Err(reason) => self.errors.push(SweepError::Undo { change, reason }),
        }
        is_undone
    }

    /// Undoes what processes share and no living process holds; returns whether anything is held.
    fn undo_shared(&mut self, registry: &Registry) -> bool {
        let mut any_held = false;
        for change in shared(self.kinds) {
            if is_held(registry, &change) {
                any_held = true;
            } else {
                self.undo_one(None, &change);
            }
        }
        any_held
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::{FileId, OtherChange};
    use crate::lease::LeaseError;
    use crate::namespace::NetnsId;
    use crate::registry::Role;
    use crate::undo::UndoKind;
    use std::cell::Cell;

    /// What processes share, which this function removes.
    struct Parts<F>(F);

    impl<F: Fn() -> bool> UndoKind for Parts<F> {
        fn name(&self) -> &'static str {
            "parts"
        }

        fn shared(&self) -> Option<Change> {
            Some(parts())
        }

        fn undo(&self, _: &OtherChange) -> Result<bool, Box<dyn std::error::Error>> {
            Ok(self.0())
        }
    }

    /// Connections, of which those with the algorithm `stuck` cannot be moved.
    struct Connections;

    impl UndoKind for Connections {
        fn name(&self) -> &'static str {
            "connections"
        }

        fn undo(&self, change: &OtherChange) -> Result<bool, Box<dyn std::error::Error>> {
            if change.what == "stuck" { Err("stuck".into()) } else { Ok(true) }
        }
    }

    fn other(name: &str, what: &str, stage: Stage) -> Change {
        let (name, what, details) = (name.to_owned(), what.to_owned(), String::new());
        Change::Other(OtherChange { name, what, stage, details })
    }

    fn parts() -> Change {
        other("parts", "parts", Stage::Shared)
    }

    fn connections(algorithm: &str) -> Change {
        other("connections", algorithm, Stage::Whole)
    }

    fn dead() -> ProcessId {
        let me = ProcessId::current().unwrap();
        ProcessId { start_time: me.start_time - 1, ..me }
    }

    /// Makes a directory, and returns its record.
    fn made(path: &std::path::Path) -> Change {
        std::fs::create_dir(path).unwrap();
        let made = FileId::of(&std::fs::symlink_metadata(path).unwrap());
        Change::Directory { path: path.to_owned(), made: Some(made) }
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

        let (removed, errors) = sweep_in(&registry, &[]);
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!(removed, [Removed { process: Some(dead()), change }]);
        assert!(!left.exists());
        assert!(sweep_in(&registry, &[]).0.is_empty());
    }

    #[test]
    fn the_kernels_parts_are_unloaded_before_namespaces_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::at(&dir.path().join("leases"));
        let namespace = dir.path().join("stands-for-a-namespace");
        let changes = vec![made(&namespace), parts()];
        let _ = registry.lock().unwrap();
        registry.write(&Holder { process: dead(), sequence: 0, role: Role::Lab, changes }).unwrap();
        let (removed, errors) = sweep_in(&registry, &[&Parts(|| namespace.exists())]);
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!(removed.len(), 2, "{removed:?}");
        assert_eq!(removed[0].change, parts());
    }

    #[test]
    fn connections_are_restored_before_the_kernels_parts_are_unloaded() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::at(&dir.path().join("leases"));
        let changes = vec![parts(), connections("wakeai_rtt")];
        let role = Role::Use { exclusive: None };
        let _ = registry.lock().unwrap();
        registry.write(&Holder { process: dead(), sequence: 0, role, changes }).unwrap();
        let (removed, errors) = sweep_in(&registry, &[&Parts(|| true), &Connections]);
        assert!(errors.is_empty(), "{errors:?}");
        let removed: Vec<_> = removed.into_iter().map(|removed| removed.change).collect();
        assert_eq!(removed, [connections("wakeai_rtt"), parts()]);
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
        let (removed, errors) = sweep_in(&registry, &[]);
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
        let ends = Parts(|| {
            child.borrow_mut().kill().unwrap();
            child.borrow_mut().wait().unwrap();
            false
        });
        let (removed, errors) = sweep_in(&registry, &[&ends]);
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
        let (removed, errors) = sweep_in(&registry, &[]);
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
        let (removed, errors) = sweep_in(&registry, &[]);
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
        assert_eq!(sweep_in(&registry, &[&Connections]).1.len(), 1);
        assert_eq!(sweep_in(&registry, &[]).1.len(), 1, "a command without the kind keeps it, too");
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
        first.release(&[]);
        assert!(take(Some("the route to 192.0.2.0/24")).is_ok());
    }

    #[test]
    fn a_live_process_keeps_its_changes_and_the_kernels_parts() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::at(dir.path());
        let lease = Lease::take_in(registry.clone(), agent()).unwrap();
        let file = dir.path().join("held");
        lease.record(made(&file)).unwrap();
        lease.record(parts()).unwrap();

        let (removed, errors) = sweep_in(&registry, &[&Parts(|| panic!("the parts are held"))]);
        assert!(removed.is_empty() && errors.is_empty());
        assert!(file.exists());

        let unloaded = Cell::new(0);
        let failed = lease.release(&[&Parts(|| {
            unloaded.set(unloaded.get() + 1);
            true
        })]);
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
        let (removed, errors) = sweep_in(&registry, &[]);
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
        let (removed, errors) = sweep_in(&registry, &[&Parts(|| panic!("the parts may be held"))]);
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
        let (removed, _) = sweep_in(&registry, &[]);
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
        let change = Change::Directory { path: stuck, made: None };
        registry
            .write(&Holder { process: dead(), sequence: 0, role: Role::Lab, changes: vec![change] })
            .unwrap();
        assert_eq!(sweep_in(&registry, &[]).1.len(), 1);
        assert_eq!(sweep_in(&registry, &[]).1.len(), 1);
    }
}
