//! Loads and registers the algorithms, and pins their shared maps.

use std::mem::MaybeUninit;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapMut, OpenMapMut};

use super::{HEARTBEATS, INTERFACES, LOAD, RETIRED, SOCKETS, TARGETS};
use crate::bounded::STALE_AFTER;
use crate::error::Error;
use crate::features::{self, BOUND, CongControl, explain, tick_us};
use crate::place;
use crate::skeleton::wakeai_av::WakeaiAvSkelBuilder;
use crate::skeleton::wakeai_compound::WakeaiCompoundSkelBuilder;
use crate::skeleton::wakeai_cubic::WakeaiCubicSkelBuilder;
use crate::skeleton::wakeai_reno::WakeaiRenoSkelBuilder;
use crate::skeleton::wakeai_rtt::WakeaiRttSkelBuilder;

/// Registers all of [`crate::Bounded::ALL`].
pub(super) fn register() -> Result<(), Error> {
    let kernel = Kernel::find();
    let registered = [cubic, reno, rtt, av, compound].into_iter().try_for_each(|load| load(kernel));
    registered.map_err(|error| explain(LOAD, BOUND, error))
}

/// The features of the running kernel on which loading depends.
#[derive(Clone, Copy)]
struct Kernel {
    /// Whether the hook `cong_control` has two arguments (before Linux 6.10).
    short: bool,
    /// Whether BPF links can hold registrations (`struct_ops`).
    links: bool,
    /// The length of a jiffy.
    tick_us: u32,
}

impl Kernel {
    fn find() -> Self {
        let found = features::detect();
        let short = found.cong_control == Some(CongControl::Short);
        Self { short, links: found.struct_ops_link, tick_us: tick_us() }
    }
}

/// Defines a function that loads one algorithm. The skeletons are different types with the same members, except for
/// the two maps that have the algorithm's name.
macro_rules! algorithm {
    ($algorithm:ident, $builder:ident, $long:ident, $short:ident $(, $map:ident: $pin:expr)?) => {
        fn $algorithm(kernel: Kernel) -> libbpf_rs::Result<()> {
            let mut object = MaybeUninit::uninit();
            let mut open = $builder::default().open(&mut object)?;
            if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
                rodata.knobs.stale_after_ms = STALE_AFTER.as_millis() as u32;
                rodata.knobs.tick_us = kernel.tick_us;
            }
            share(&mut open.maps.socket_bounds, SOCKETS)?;
            share(&mut open.maps.interface_bounds, INTERFACES)?;
            share(&mut open.maps.heartbeats, HEARTBEATS)?;
            share(&mut open.maps.wakeai_retired, RETIRED)?;
            $(share(&mut open.maps.$map, $pin)?;)?
            open.progs.cong_control.set_autoload(!kernel.short);
            open.progs.cong_control_short.set_autoload(kernel.short);
            prepare(&mut open.maps.$long, kernel, !kernel.short)?;
            prepare(&mut open.maps.$short, kernel, kernel.short)?;
            let mut skel = open.load()?;
            let map = if kernel.short { &mut skel.maps.$short } else { &mut skel.maps.$long };
            attach(map, kernel, stringify!($long))
        }
    };
}

algorithm!(cubic, WakeaiCubicSkelBuilder, wakeai_cubic, wakeai_cubic_s);
algorithm!(reno, WakeaiRenoSkelBuilder, wakeai_reno, wakeai_reno_s);
algorithm!(rtt, WakeaiRttSkelBuilder, wakeai_rtt, wakeai_rtt_s);
algorithm!(av, WakeaiAvSkelBuilder, wakeai_av, wakeai_av_s, socket_targets: TARGETS);
algorithm!(compound, WakeaiCompoundSkelBuilder, wakeai_compound, wakeai_compound_s);

/// Makes the algorithms share one map. The first algorithm creates it and pins it under `name`.
fn share(map: &mut OpenMapMut<'_>, name: &str) -> libbpf_rs::Result<()> {
    map.set_pin_path(place::pin(name))
}

/// Lets the map be created only if it `fits` the kernel.
fn prepare(map: &mut OpenMapMut<'_>, kernel: Kernel, fits: bool) -> libbpf_rs::Result<()> {
    map.set_autocreate(fits)?;
    // The section's name makes libbpf set BPF_F_LINK, which kernels without links refuse.
    if kernel.links { Ok(()) } else { map.set_map_flags(0) }
}

/// Registers the algorithm and pins the registration. Where the kernel has links for `struct_ops`,
/// it pins the link, and otherwise the `struct_ops` map.
fn attach(map: &mut MapMut<'_>, kernel: Kernel, name: &str) -> libbpf_rs::Result<()> {
    let mut link = map.attach_struct_ops()?;
    if kernel.links {
        return link.pin(place::pin(name));
    }
    // Without links a registration outlives its owner, if libbpf does not remove it when `link` is
    // dropped. `disconnect` prevents this.
    link.disconnect();
    map.pin(place::pin(name))
}
