//! Moves established connections to another algorithm, with a TCP iterator.

use std::io::Read;
use std::mem::MaybeUninit;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Iter, Link};

use crate::error::Error;
use crate::features::{ITERATE, explain};
use crate::raw::name_field;
use crate::skeleton::connections::ConnectionsSkelBuilder;
use crate::skeleton::connections::types::move_request;
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
    let mut request = move_request { ifindex: ifindex.unwrap_or(0), ..move_request::default() };
    request.to = name(&asked, to)?;
    if from.len() > request.from.len() {
        let problem = format!("{} names were given, 8 are allowed", from.len());
        return Err(Error::refused(asked, problem));
    }
    request.from_count = from.len() as u32;
    for (field, from) in request.from.iter_mut().zip(from) {
        *field = name(&asked, from)?;
    }
    run(&asked, request)
}

/// Runs an iterator over the sockets of the calling thread's network namespace by reading from it. Returns the
/// bytes that its program has written.
pub(crate) fn run_iterator(program: &Link, asked: &str) -> Result<Vec<u8>, Error> {
    let mut written = Vec::new();
    let mut iterator = Iter::new(program).map_err(|error| explain(asked, ITERATE, error))?;
    iterator.read_to_end(&mut written).map_err(|error| Error::from_io(asked, error))?;
    Ok(written)
}

fn name(asked: &str, name: &str) -> Result<[i8; 16], Error> {
    name_field(name)
        .ok_or_else(|| Error::refused(asked, format!("\"{name}\" is not a name of 1 to 15 bytes")))
}

fn run(asked: &str, request: move_request) -> Result<MoveReport, Error> {
    quiet();
    let failed = |error| explain(asked, ITERATE, error);
    let mut object = MaybeUninit::uninit();
    let mut open = ConnectionsSkelBuilder::default().open(&mut object).map_err(failed)?;
    if let Some(bss) = open.maps.bss_data.as_deref_mut() {
        bss.request = request;
    }
    let skel = open.load().map_err(failed)?;
    let link = skel.progs.move_connections.attach().map_err(failed)?;
    run_iterator(&link, asked)?;
    let done = skel.maps.bss_data.as_deref().map(|bss| bss.request).unwrap_or_default();
    Ok(MoveReport { moved: done.moved, failed: done.failed })
}
