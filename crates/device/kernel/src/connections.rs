//! Moves established connections to another algorithm, with a TCP iterator.

use std::io::Read as _;
use std::mem::MaybeUninit;
use std::sync::{Mutex, PoisonError};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Iter, Link, MapCore as _, MapFlags, MapHandle};
use zerocopy::{FromBytes, FromZeros as _, Immutable, IntoBytes};

use crate::error::Error;
use crate::features::{ITERATE, explain};
use crate::raw::{MoveRequest, name_field};
use crate::skeleton::connections::ConnectionsSkelBuilder;
use crate::skeleton::quiet;

/// The result of [`move_connections`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MoveReport {
    /// Sockets that were changed.
    pub moved: u32,
    /// Sockets that the kernel refused to change.
    pub failed: u32,
}

impl MoveReport {
    /// Adds the counts of `other`.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { moved: self.moved + other.moved, failed: self.failed + other.failed }
    }
}

/// Moves TCP sockets of the calling thread's network namespace to the algorithm `to`. These are the
/// sockets whose algorithm is one of `from` (at most 8), or, if `from` is empty, all whose
/// algorithm is not `to`. With `ifindex` only those are moved that are routed over that interface.
/// Listening sockets are moved, too, and with them the connections that they accept later.
///
/// # Errors
///
/// Where a privilege or feature is missing, or a name is not valid.
pub fn move_connections(
    from: &[&str],
    to: &str,
    ifindex: Option<u32>,
) -> Result<MoveReport, Error> {
    let asked = format!("move connections to {to}");
    let mut request = MoveRequest { ifindex: ifindex.unwrap_or(0), ..MoveRequest::new_zeroed() };
    request.to = name_field(&asked, to)?;
    if from.len() > request.from.len() {
        let problem = format!("{} names were given, 8 are allowed", from.len());
        return Err(Error::refused(asked, problem));
    }
    request.from_count = from.len() as u32;
    for (field, from) in request.from.iter_mut().zip(from) {
        *field = name_field(&asked, from)?;
    }
    with_mover(&asked, |mover| {
        let done = run_with(&mover.link, &asked, (&mover.request, request), &mut Vec::new())?;
        Ok(MoveReport { moved: done.moved, failed: done.failed })
    })
}

/// Runs an iterator as [`run_iterator`] does, with a request: the only value of a map. Returns the request as the
/// program left it.
pub(crate) fn run_with<T: FromBytes + Immutable + IntoBytes>(
    program: &Link,
    asked: &str,
    (map, request): (&MapHandle, T),
    written: &mut Vec<u8>,
) -> Result<T, Error> {
    let failed = |error| explain(asked, ITERATE, error);
    let only = 0_u32.to_ne_bytes();
    map.update(&only, request.as_bytes(), MapFlags::ANY).map_err(failed)?;
    run_iterator(program, asked, written)?;
    let done = map.lookup(&only, MapFlags::ANY).map_err(failed)?;
    let done = done.and_then(|bytes| T::read_from_bytes(&bytes).ok());
    Ok(done.unwrap_or(request))
}

/// Runs an iterator by reading from it; one over sockets visits those of the calling thread's network namespace. Replaces the
/// content of `written` by the bytes that its program writes; a caller that keeps the buffer spares the kernel its pages.
pub(crate) fn run_iterator(
    program: &Link,
    asked: &str,
    written: &mut Vec<u8>,
) -> Result<(), Error> {
    written.clear();
    let mut iterator = Iter::new(program).map_err(|error| explain(asked, ITERATE, error))?;
    iterator.read_to_end(written).map_err(|error| Error::from_io(asked, error))?;
    Ok(())
}

/// The loaded program that moves connections.
struct Mover {
    link: Link,
    /// The program's global variable: a [`MoveRequest`].
    request: MapHandle,
}

/// The program of this process, once it is loaded. Loading it takes much longer than running it, and most
/// processes that move connections do so several times.
static MOVER: Mutex<Option<Mover>> = Mutex::new(None);

/// Loads the program that [`move_connections`] runs. Without this the first call loads it. A process that
/// calls this and then forks shares the program with its child; the two must not move connections at the same time.
///
/// # Errors
///
/// Where a privilege or feature is missing.
pub fn prepare_to_move() -> Result<(), Error> {
    with_mover("move connections", |_| Ok(()))
}

fn with_mover<T>(asked: &str, work: impl FnOnce(&Mover) -> Result<T, Error>) -> Result<T, Error> {
    let mut mover = MOVER.lock().unwrap_or_else(PoisonError::into_inner);
    if mover.is_none() {
        *mover = Some(Mover::load().map_err(|error| explain(asked, ITERATE, error))?);
    }
    mover.as_ref().map_or_else(|| unreachable!("it was just loaded"), work)
}

impl Mover {
    fn load() -> libbpf_rs::Result<Self> {
        quiet();
        let mut object = MaybeUninit::uninit();
        let open = ConnectionsSkelBuilder::default().open(&mut object)?;
        let skel = open.load()?;
        // The link and the handle keep the program and its map; the rest of the skeleton is dropped.
        let link = skel.progs.move_connections.attach()?;
        Ok(Self { link, request: MapHandle::try_from(&skel.maps.bss)? })
    }
}
