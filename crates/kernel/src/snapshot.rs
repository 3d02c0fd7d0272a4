//! Connections are read by a TCP iterator.

use std::mem::MaybeUninit;

use libbpf_rs::Link;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use wakeai_connection::Figures;
use zerocopy::FromBytes as _;

use crate::connections::run_iterator;
use crate::error::Error;
use crate::features::{ITERATE, explain};
use crate::libbpf::quiet;
use crate::raw::{SnapshotValue, Socket, name_of};
use crate::skeleton::snapshot::SnapshotSkelBuilder;

/// One connection, read by the TCP iterator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpSnapshot {
    /// Which one.
    pub socket: Socket,
    /// What it is doing.
    pub figures: Figures,
    /// Its congestion control algorithm.
    pub algorithm: String,
}

/// A loaded iterator program that reads connections.
#[derive(Debug)]
pub struct Snapshotter {
    program: Link,
}

const ASKED: &str = "read TCP connections";

impl Snapshotter {
    /// Loads the program.
    ///
    /// # Errors
    ///
    /// Where a privilege or feature is missing.
    pub fn open() -> Result<Self, Error> {
        quiet();
        let failed = |error| explain(ASKED, ITERATE, error);
        let mut object = MaybeUninit::uninit();
        let open = SnapshotSkelBuilder::default().open(&mut object).map_err(failed)?;
        let skel = open.load().map_err(failed)?;
        // The link keeps the program; the rest of the skeleton may go.
        let program = skel.progs.snapshot_connections.attach().map_err(failed)?;
        Ok(Self { program })
    }

    /// The connections of the calling thread's network namespace that may still send (established,
    /// or closed by one end with data under way); with `ifindex` only those routed over that
    /// interface. They are read one after another, so not at one moment.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn snapshot(&self, ifindex: Option<u32>) -> Result<Vec<TcpSnapshot>, Error> {
        let bytes = run_iterator(&self.program, ASKED)?;
        let whole = bytes.chunks_exact(size_of::<SnapshotValue>());
        Ok(whole
            .filter_map(|bytes| SnapshotValue::read_from_bytes(bytes).ok())
            .filter(|value| ifindex.is_none_or(|asked| asked == value.socket.ifindex))
            .map(|value| TcpSnapshot {
                socket: value.socket.to_socket(),
                figures: value.figures.to_figures(value.socket.ifindex),
                algorithm: name_of(&value.algorithm),
            })
            .collect())
    }
}

/// [`Snapshotter::snapshot`] with a program loaded for this once.
///
/// # Errors
///
/// Where a privilege or feature is missing.
pub fn snapshot(ifindex: Option<u32>) -> Result<Vec<TcpSnapshot>, Error> {
    Snapshotter::open()?.snapshot(ifindex)
}
