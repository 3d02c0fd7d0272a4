//! Loads the BPF programs of an assignment (an algorithm and the connections that are to use it).

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd as _;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapCore as _, MapFlags, MapHandle};
use nix::fcntl::Flock;
use zerocopy::IntoBytes as _;

use super::{ASKED, Assigner, Assignment, Covered, Iterators};
use crate::bounded::HOLDS_A_RATE;
use crate::error::Error;
use crate::features::{CGROUP, ITERATE, MONITOR, explain};
use crate::place;
use crate::raw::AssignmentValue;
use crate::registration::{MOVED, TARGETS};
use crate::skeleton::assign::{AssignSkel, AssignSkelBuilder, OpenAssignSkel};
use crate::skeleton::quiet;

/// Loads and attaches the programs, in the machine's mount namespace. This namespace has the pins
/// (the names of BPF maps in a file system). Where connections are moved, it holds the lock on the
/// pins meanwhile, so that no process removes them.
pub(super) fn load(assignment: &Assignment<'_>, value: AssignmentValue) -> Result<Assigner, Error> {
    quiet();
    place::in_machine_mounts(|| {
        let _lock = match assignment.covered {
            Covered::Defaults { .. } => None,
            _ => Some(prepare().map_err(|error| Error::from_io(ASKED, error))?),
        };
        load_here(assignment, value).map_err(|error| explain(ASKED, needs(assignment), error))
    })
}

fn prepare() -> io::Result<Flock<File>> {
    let lock = place::lock()?;
    place::prepare()?;
    Ok(lock)
}

fn needs(assignment: &Assignment<'_>) -> &'static [&'static str] {
    match assignment.covered {
        Covered::Cgroup(_) => CGROUP,
        _ if is_aimed_by_default(assignment) => MONITOR,
        _ => ITERATE,
    }
}

fn load_here(
    assignment: &Assignment<'_>,
    value: AssignmentValue,
) -> Result<Assigner, libbpf_rs::Error> {
    let mut object = MaybeUninit::uninit();
    let mut open = AssignSkelBuilder::default().open(&mut object)?;
    choose_programs(&mut open, assignment);
    share_maps(&mut open, assignment)?;
    let skel = open.load()?;
    let only = 0_u32.to_ne_bytes();
    skel.maps.assignment.update(&only, value.as_bytes(), MapFlags::ANY)?;
    Ok(Assigner {
        value,
        assignment: MapHandle::try_from(&skel.maps.assignment)?,
        outcome: MapHandle::try_from(&skel.maps.outcome)?,
        iterators: iterators(&skel)?,
        hook: hook(&skel, assignment)?,
        before: match assignment.covered {
            Covered::Defaults { before } => before.map(str::to_owned),
            _ => None,
        },
        everywhere: assignment.covered.are_everywhere(),
    })
}

/// Selects the programs that are needed. The others are not loaded, because the kernel may not
/// support them.
fn choose_programs(open: &mut OpenAssignSkel<'_>, assignment: &Assignment<'_>) {
    let covered = &assignment.covered;
    open.progs.take_in_cgroup.set_autoload(matches!(covered, Covered::Cgroup(_)));
    open.progs.aim_new.set_autoload(is_aimed_by_default(assignment));
}

fn is_aimed_by_default(assignment: &Assignment<'_>) -> bool {
    matches!(assignment.covered, Covered::Defaults { .. }) && assignment.algorithm == HOLDS_A_RATE
}

/// Pins the map of moved connections, so that other processes find it when this process dies. Also
/// shares the algorithm's map of targets.
fn share_maps(open: &mut OpenAssignSkel<'_>, assignment: &Assignment<'_>) -> libbpf_rs::Result<()> {
    if assignment.covered.are_moved() {
        open.maps.moved_sockets.set_pin_path(place::pin(MOVED))?;
    }
    if place::pin(TARGETS).exists() {
        open.maps.socket_targets.set_pin_path(place::pin(TARGETS))
    } else {
        open.maps.socket_targets.set_max_entries(1)
    }
}

fn iterators(skel: &AssignSkel<'_>) -> libbpf_rs::Result<Iterators> {
    Ok(Iterators {
        take_existing: skel.progs.take_existing.attach()?,
        aim_existing: skel.progs.aim_existing.attach()?,
        give_back_moved: skel.progs.give_back_moved.attach()?,
        give_back_defaults: skel.progs.give_back_defaults.attach()?,
    })
}

fn hook(skel: &AssignSkel<'_>, assignment: &Assignment<'_>) -> libbpf_rs::Result<Option<Link>> {
    match assignment.covered {
        Covered::Cgroup(cgroup) => {
            skel.progs.take_in_cgroup.attach_cgroup(cgroup.as_raw_fd()).map(Some)
        }
        _ if is_aimed_by_default(assignment) => skel.progs.aim_new.attach().map(Some),
        _ => Ok(None),
    }
}
