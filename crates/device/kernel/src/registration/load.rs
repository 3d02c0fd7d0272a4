//! Loads and registers the algorithms, and pins their shared maps and the program that bounds receive windows.

use std::io;
use std::mem::MaybeUninit;

use libbpf_rs::skel::{OpenSkel, Skel as _, SkelBuilder};
use libbpf_rs::{MapCore as _, MapMut, OpenMapMut, OpenObject};

use super::{HEARTBEATS, INTERFACES, LOAD, RETIRED, SOCKETS, TARGETS, WINDOWS};
use crate::bounded::{Bounded, STALE_AFTER};
use crate::error::Error;
use crate::features::{self, BOUND, CongControl, Features, explain, tick_us};
use crate::place;
use crate::skeleton::algorithms::types::rodata;
use crate::skeleton::algorithms::{AlgorithmsSkelBuilder, OpenAlgorithmsSkel};

/// Registers all of [`Bounded::ALL`].
pub(super) fn register() -> Result<(), Error> {
    let kernel = features::detect();
    register_for(&kernel).map_err(|error| explain(LOAD, BOUND, error))
}

/// Loads the object of all algorithms, and registers them one after another.
fn register_for(kernel: &Features) -> libbpf_rs::Result<()> {
    let short = kernel.cong_control == Some(CongControl::Short);
    let mut object = MaybeUninit::uninit();
    let mut open = AlgorithmsSkelBuilder::default().open(&mut object)?;
    set_knobs(&mut open, kernel);
    open.progs.bound_windows.set_autoload(kernel.receive_windows);
    let maps = &mut open.maps;
    share(&mut maps.socket_bounds, SOCKETS)?;
    share(&mut maps.interface_bounds, INTERFACES)?;
    share(&mut maps.heartbeats, HEARTBEATS)?;
    share(&mut maps.wakeai_retired, RETIRED)?;
    share(&mut maps.socket_targets, TARGETS)?;
    choose_hooks(open.open_object_mut(), kernel, short)?;
    let mut skel = open.load()?;
    if kernel.receive_windows {
        skel.progs.bound_windows.attach()?.pin(place::pin(WINDOWS))?;
    }
    Bounded::ALL.iter().try_for_each(|algorithm| {
        let name = map_name(algorithm, short);
        let map = skel.object_mut().maps_mut().find(|map| map.name() == &*name);
        attach(&mut map.ok_or_else(|| missing(&name))?, kernel, algorithm.name)
    })
}

fn set_knobs(open: &mut OpenAlgorithmsSkel<'_>, kernel: &Features) {
    let Some(rodata) = open.maps.rodata_data.as_deref_mut() else { return };
    // Each algorithm has knobs of its own; the pattern names every field, so that none can be forgotten.
    let rodata {
        knobs_cubic,
        knobs_reno,
        knobs_bbr,
        knobs_rtt,
        knobs_av,
        knobs_compound,
        bounds_windows_cubic,
        bounds_windows_reno,
        bounds_windows_bbr,
        bounds_windows_rtt,
        bounds_windows_av,
        bounds_windows_compound,
        windows_stale_after_ms,
        ..
    } = rodata;
    let stale_after_ms = STALE_AFTER.as_millis() as u32;
    for knobs in [knobs_cubic, knobs_reno, knobs_bbr, knobs_rtt, knobs_av, knobs_compound] {
        knobs.stale_after_ms = stale_after_ms;
        knobs.tick_us = tick_us();
    }
    *windows_stale_after_ms = stale_after_ms;
    for bounds_windows in [
        bounds_windows_cubic,
        bounds_windows_reno,
        bounds_windows_bbr,
        bounds_windows_rtt,
        bounds_windows_av,
        bounds_windows_compound,
    ] {
        *bounds_windows = kernel.receive_windows.into();
    }
}

/// The name of an algorithm's `struct_ops` map for kernels whose hook `cong_control` is `short` (two arguments, before
/// Linux 6.10) or not.
fn map_name(algorithm: &Bounded, short: bool) -> String {
    format!("{}{}", algorithm.name, if short { "_s" } else { "" })
}

/// The name of an algorithm's program for this hook.
fn hook_name(algorithm: &Bounded, short: bool) -> String {
    format!("{}_cong_control{}", algorithm.name, if short { "_short" } else { "" })
}

/// Of the two versions of each algorithm, whose hooks `cong_control` differ, lets only the one load that fits the
/// kernel.
fn choose_hooks(
    object: &mut OpenObject,
    kernel: &Features,
    is_short: bool,
) -> libbpf_rs::Result<()> {
    for algorithm in Bounded::ALL {
        for short in [false, true] {
            let (name, fits) = (hook_name(&algorithm, short), short == is_short);
            let hook = object.progs_mut().find(|program| program.name() == &*name);
            hook.ok_or_else(|| missing(&name))?.set_autoload(fits);
            let name = map_name(&algorithm, short);
            let map = object.maps_mut().find(|map| map.name() == &*name);
            prepare(&mut map.ok_or_else(|| missing(&name))?, kernel, fits)?;
        }
    }
    Ok(())
}

fn missing(part: &str) -> libbpf_rs::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("the BPF object has no {part}")).into()
}

/// Pins a map of the algorithms under `name`, where other agents find it.
fn share(map: &mut OpenMapMut<'_>, name: &str) -> libbpf_rs::Result<()> {
    map.set_pin_path(place::pin(name))
}

/// Lets the map be created only if it `fits` the kernel.
fn prepare(map: &mut OpenMapMut<'_>, kernel: &Features, fits: bool) -> libbpf_rs::Result<()> {
    map.set_autocreate(fits)?;
    // The section's name makes libbpf set BPF_F_LINK, which kernels without links refuse.
    if kernel.struct_ops_link { Ok(()) } else { map.set_map_flags(0) }
}

/// Registers the algorithm and pins the registration. Where the kernel has links for `struct_ops`,
/// it pins the link, and otherwise the `struct_ops` map.
fn attach(map: &mut MapMut<'_>, kernel: &Features, name: &str) -> libbpf_rs::Result<()> {
    let mut link = map.attach_struct_ops()?;
    if kernel.struct_ops_link {
        return link.pin(place::pin(name));
    }
    // Without links a registration outlives its owner, if libbpf does not remove it when `link` is
    // dropped. `disconnect` prevents this.
    link.disconnect();
    map.pin(place::pin(name))
}
