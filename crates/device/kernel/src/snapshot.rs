//! Reads connections with BPF iterators.

use std::mem::MaybeUninit;
use std::os::fd::AsFd as _;
use std::sync::Arc;

use libbpf_rs::Link;
use libbpf_rs::MapHandle;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use wakeai_connection::{Figures, Receiving};
use wakeai_units::Duration;
use zerocopy::{FromBytes as _, IntoBytes as _};

use crate::connections::{run_iterator, run_with};
use crate::error::Error;
use crate::features::{ITERATE, explain, tick_us};
use crate::raw::{NAME_BYTES, SnapshotRequest, SnapshotValue, Socket, name_of};
use crate::skeleton::quiet;
use crate::skeleton::snapshot::SnapshotSkelBuilder;

/// One connection, as an iterator has read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpSnapshot {
    /// The connection.
    pub socket: Socket,
    /// Its figures.
    pub figures: Figures,
    /// The figures of this end as a receiver.
    pub receiving: Receiving,
    /// Its congestion control algorithm. Connections that are read together share the name.
    pub algorithm: Arc<str>,
}

/// Loaded iterator programs that read connections.
#[derive(Debug)]
pub struct Snapshotter {
    /// Visits all connections.
    all: Link,
    /// Visits the connections that the last visit to all connections has marked. `None` where the kernel refuses the
    /// iterator over `BPF_MAP_TYPE_SK_STORAGE`, as some hardened ones do: then every call visits all connections.
    marked: Option<Link>,
    /// The programs' global variable: a [`SnapshotRequest`].
    request: MapHandle,
    /// The last visit to all connections.
    last: Option<Visit>,
    /// What the programs have written.
    written: Vec<u8>,
}

/// A visit to all connections.
#[derive(Clone, Copy, Debug)]
struct Visit {
    /// The request. The program has counted the idle connections in it.
    request: SnapshotRequest,
    /// The number of connections that it has read.
    read: usize,
    /// The number of later calls that have used its marks.
    reused: u32,
}

impl Visit {
    /// Whether there are so many connections that not every call visits all.
    fn finds_many(&self) -> bool {
        let SnapshotRequest { idle, idle_most, .. } = self.request;
        let busy = self.read.saturating_sub(idle.min(idle_most) as usize);
        idle > idle_most.saturating_mul(MANY) || busy > idle_most as usize
    }
}

const ASKED: &str = "read TCP connections";

/// If there are more idle connections than this many times `idle_most` (the most that are read),
/// not every call visits all connections, because the kernel takes about a microsecond for each. The same holds if there
/// are more than `idle_most` others: the kernel searches its whole table of connections for them, and one more that is found
/// late changes little.
const MANY: u32 = 10;
/// The number of calls between two visits to all connections, if there are so many connections.
const REUSED: u32 = 3;

impl Snapshotter {
    /// Loads the programs.
    ///
    /// # Errors
    ///
    /// Where a privilege or feature is missing.
    pub fn open() -> Result<Self, Error> {
        quiet();
        let failed = |error| explain(ASKED, ITERATE, error);
        Self::load(true).or_else(|_| Self::load(false)).map_err(failed)
    }

    /// Loads the programs, without the one for marked connections unless `marks` is set.
    fn load(marks: bool) -> libbpf_rs::Result<Self> {
        let mut object = MaybeUninit::uninit();
        let mut open = SnapshotSkelBuilder::default().open(&mut object)?;
        open.progs.snapshot_marked.set_autoload(marks);
        let skel = open.load()?;
        // The links and the handle keep the programs and their maps; the rest of the skeleton is dropped.
        let all = skel.progs.snapshot_connections.attach()?;
        let map = skel.maps.marked.as_fd();
        let marked = marks.then(|| skel.progs.snapshot_marked.attach_iter(map)).transpose()?;
        let request = MapHandle::try_from(&skel.maps.bss)?;
        Ok(Self { all, marked, request, last: None, written: Vec::new() })
    }

    /// Whether every call visits all connections, also on a machine with very many, because this kernel refuses the
    /// iterator that would visit some of them.
    pub fn always_visits_all(&self) -> bool {
        self.marked.is_none()
    }

    /// The connections of the calling thread's network namespace that may still send or receive (established, or closed
    /// by one end); with `ifindex` only those routed over that interface. They are read one after
    /// another, not at one moment.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn snapshot(&mut self, ifindex: Option<u32>) -> Result<Vec<TcpSnapshot>, Error> {
        self.read(ifindex, Duration::ZERO, u32::MAX).map(|(connections, _)| connections)
    }

    /// Reads the connections of one interface as [`Snapshotter::snapshot`] does, but leaves out the
    /// idle connections beyond the first `idle_most`. Also returns the number of those that it left
    /// out. A connection is idle if it uses neither CUBIC nor Reno, has nothing to send, and has
    /// sent and received nothing for longer than `idle_after`. With a hundred thousand idle connections, copying
    /// and examining each takes longer than skipping it.
    ///
    /// With more than ten times `idle_most` idle connections, or more than `idle_most` others, only every fourth
    /// call with the same arguments visits all connections. The three calls after it read the same connections again, so
    /// that another connection that begins to send is found up to three calls late. Where [`Self::always_visits_all`], every
    /// call visits all. All calls have to come from one network namespace.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn snapshot_without_idle(
        &mut self,
        ifindex: u32,
        idle_after: Duration,
        idle_most: u32,
    ) -> Result<(Vec<TcpSnapshot>, u32), Error> {
        self.read(Some(ifindex), idle_after, idle_most)
    }

    fn read(
        &mut self,
        ifindex: Option<u32>,
        idle_after: Duration,
        idle_most: u32,
    ) -> Result<(Vec<TcpSnapshot>, u32), Error> {
        let request = SnapshotRequest {
            ifindex: ifindex.unwrap_or(0),
            idle_jiffies: (idle_after.as_micros() / u64::from(tick_us())) as u32,
            idle_most,
            marks: 0,
            idle: 0,
        };
        let last = self.last.take().filter(|last| {
            let of = last.request;
            SnapshotRequest { marks: 0, idle: 0, ..of }.as_bytes() == request.as_bytes()
                && last.finds_many()
        });
        let written = &mut self.written;
        let visit = match (last, &self.marked) {
            (Some(last), Some(marked)) if last.request.marks != 0 && last.reused < REUSED => {
                run_iterator(marked, ASKED, written)?;
                Visit { reused: last.reused + 1, ..last }
            }
            _ => {
                let marks = last.is_some() && self.marked.is_some();
                let request = SnapshotRequest { marks: marks.into(), ..request };
                let request = run_with(&self.all, ASKED, (&self.request, request), written)?;
                Visit { request, read: written.len() / size_of::<SnapshotValue>(), reused: 0 }
            }
        };
        self.last = Some(visit);
        let whole = written.chunks_exact(size_of::<SnapshotValue>());
        let mut connections = Vec::with_capacity(whole.len());
        let values = whole.filter_map(|bytes| SnapshotValue::read_from_bytes(bytes).ok());
        let mut names = Names::default();
        connections.extend(values.map(|value| TcpSnapshot {
            socket: value.socket.to_socket(),
            figures: value.figures.to_figures(value.socket.ifindex),
            receiving: value.receiving.to_receiving(),
            algorithm: names.of(value.algorithm),
        }));
        Ok((connections, visit.request.idle.saturating_sub(idle_most)))
    }
}

/// The names of algorithms, each made once for all connections that follow each other.
#[derive(Default)]
struct Names(Option<([i8; NAME_BYTES], Arc<str>)>);

impl Names {
    fn of(&mut self, field: [i8; NAME_BYTES]) -> Arc<str> {
        match &self.0 {
            Some((last, name)) if *last == field => Arc::clone(name),
            _ => {
                let name = Arc::<str>::from(name_of(field));
                self.0 = Some((field, Arc::clone(&name)));
                name
            }
        }
    }
}

/// Loads the programs for a single [`Snapshotter::snapshot`].
///
/// # Errors
///
/// Where a privilege or feature is missing.
pub fn snapshot(ifindex: Option<u32>) -> Result<Vec<TcpSnapshot>, Error> {
    Snapshotter::open()?.snapshot(ifindex)
}
