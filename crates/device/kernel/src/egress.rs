//! Counts the datagrams of UDP that leave over an interface, per flow, and slows those flows that have a rate.

use std::cell::RefCell;
use std::fs::File;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd as _;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle};
use wakeai_units::{Bytes, Duration, Rate};
use zerocopy::{FromBytes as _, IntoBytes as _};

use crate::bounded::STALE_AFTER;
use crate::control::monotonic_ns;
use crate::error::Error;
use crate::features::{EGRESS, casts, explain};
use crate::place;
use crate::raw::{EgressConfig, FlowRate, FlowValue};
use crate::skeleton::egress::types::flow_content;
use crate::skeleton::egress::{EgressSkel, EgressSkelBuilder};
use crate::skeleton::quiet;

/// A flow of datagrams, as this machine sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
}

/// The figures of a flow of UDP since its first datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpFlow {
    /// A number that no other flow and no socket (`SO_COOKIE`) has. A flow that was silent may get another one.
    pub id: u64,
    /// The flow.
    pub flow: Flow,
    /// The payload that has left, without the headers of UDP and IP.
    pub sent: Bytes,
    /// The datagrams that have left. One call of an application may send many (UDP GSO).
    pub datagrams: u64,
    /// The time since the last datagram, with a resolution of a jiffy.
    pub idle: Duration,
    /// The time for which the next datagram has to wait in the virtual queue, by the flow's rate.
    pub backlog: Duration,
    /// The datagrams whose departure was delayed.
    pub delayed: u64,
    /// The datagrams that were marked CE (RFC 3168).
    pub marked: u64,
    /// The datagrams that were dropped. [`Self::datagrams`] does not count them.
    pub dropped: u64,
    /// Whether the flow carries a tunnel, or may carry one. Its datagrams are never dropped.
    pub is_tunnel: bool,
}

/// The maps of a loaded program that sees what leaves over one interface of one network namespace. The
/// program runs while an [`EgressHook`] holds it in the control group.
///
/// Order of calls: [`Egress::open`], [`Egress::watch`] when the interface gets another index, then
/// [`Egress::flows`] and [`Egress::set_rate`] per tick, and [`Egress::heartbeat`] more often than
/// [`STALE_AFTER`](crate::STALE_AFTER).
#[derive(Debug)]
pub struct Egress {
    netns_cookie: u64,
    interface: MapHandle,
    heartbeat: MapHandle,
    bytes: MapHandle,
    /// The table of flows, most of whose slots are free.
    flows: MapHandle,
    rates: MapHandle,
}

/// Attaches the program of an [`Egress`] to the root of the control groups while its heartbeat is fresh.
///
/// The process that supervises an agent holds it. So the program goes with this process, and also when the
/// serving process hangs.
pub struct EgressHook {
    program: EgressSkel<'static>,
    cgroup: File,
    link: RefCell<Option<Link>>,
}

const ASKED: &str = "govern datagrams";
/// The key of the only entry of an array.
const ONLY: [u8; 4] = [0; 4];
/// `FLOW_SLOTS` of `bpf/intf.h`: the slots of the table of flows. The program keeps a flow's slot in its id.
const SLOTS: u64 = 2048;
/// `FLOW_ID` of `bpf/intf.h`: the ids of flows have this bit. A free or claimed slot has an id without it.
const FLOW_ID: u64 = 1 << 63;

impl Egress {
    /// Loads the program for interfaces of the network namespace with this cookie.
    ///
    /// # Errors
    ///
    /// Where a privilege or feature is missing.
    pub fn open(netns_cookie: u64) -> Result<(Self, EgressHook), Error> {
        quiet();
        let lacking = || Error::Feature {
            asked: ASKED.to_owned(),
            lacks: "a mounted cgroup v2".to_owned(),
            remedy: "mount it at /sys/fs/cgroup".to_owned(),
        };
        let cgroup = place::in_machine_mounts(wakeai_host::cgroup_root).map_err(|error| {
            if error.is_missing() { lacking() } else { Error::refused(ASKED, error) }
        })?;
        load(netns_cookie, cgroup).map_err(|error| explain(ASKED, EGRESS, error))
    }

    /// Counts what leaves over the interface with this index from now on. If `departs` is set, its queueing
    /// discipline obeys departure times, so that datagrams are delayed where they would be dropped.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn watch(&self, ifindex: u32, departs: bool) -> Result<(), Error> {
        let departs = departs.into();
        let config = EgressConfig { netns_cookie: self.netns_cookie, ifindex, departs };
        put(&self.interface, &ONLY, config.as_bytes())
    }

    /// Records that the agent is alive: rates apply for [`STALE_AFTER`](crate::STALE_AFTER) from now.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn heartbeat(&self) -> Result<(), Error> {
        put(&self.heartbeat, &ONLY, &monotonic_ns().to_ne_bytes())
    }

    /// The flows that have sent something within this time.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn flows(&self, within: Duration) -> Result<Vec<UdpFlow>, Error> {
        let now = monotonic_ns();
        // One call reads the whole table. An iterator over the map would skip free slots in the kernel, but some kernels
        // refuse to load it.
        let batch = self.flows.lookup_batch(SLOTS as u32, MapFlags::ANY, MapFlags::ANY);
        let batch = batch.map_err(|error| explain(ASKED, EGRESS, error))?;
        let mut slots = 0;
        let values = batch.inspect(|_| slots += 1);
        let values = values.filter_map(|(_, bytes)| FlowValue::read_from_bytes(&bytes).ok());
        let flows = values.filter(|value| value.id & FLOW_ID != 0).map(|value| value.to_flow(now));
        let flows = flows.filter(|flow| flow.idle <= within).collect();
        // The batch ends where the kernel refuses to go on.
        if slots != SLOTS {
            return Err(Error::refused(
                ASKED,
                format!("{slots} of {SLOTS} slots of the table of flows were read"),
            ));
        }
        Ok(flows)
    }

    /// Bounds the payload of the flow with this id to this rate while the heartbeat is fresh. `None` removes the bound.
    ///
    /// Where the queueing discipline obeys departure times, the datagrams that have to wait leave together at multiples
    /// of `burst`, so that they share an aggregate of 802.11. [`Duration::ZERO`] gives each its own departure time, and
    /// more than 30 ms count as 30 ms. The mean rate is the same. A datagram waits for at most 50 ms and one burst.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn set_rate(&self, id: u64, rate: Option<Rate>, burst: Duration) -> Result<(), Error> {
        let slot = ((id % SLOTS) as u32).to_ne_bytes();
        let rate = rate.map_or(0, |rate| rate.bytes_per_second().max(1));
        put(&self.rates, &slot, FlowRate { id, rate, burst_ns: burst.as_nanos() }.as_bytes())
    }

    /// What the sockets of this machine have sent over the interface since [`Egress::open`], of every protocol, with
    /// the headers of the link. What its kernel forwards and what its own tunnels send is not in it.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn sent(&self) -> Result<Bytes, Error> {
        let read = self.bytes.lookup_percpu(&ONLY, MapFlags::ANY);
        let read = read.map_err(|error| explain(ASKED, EGRESS, error))?;
        let per_cpu = read.iter().flatten().filter_map(|bytes| bytes.first_chunk().copied());
        Ok(Bytes::new(per_cpu.map(u64::from_ne_bytes).sum()))
    }
}

impl EgressHook {
    /// Attaches the program if the heartbeat is fresh and it is not attached. Detaches it if the heartbeat is stale.
    /// Returns whether it is attached.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn look(&self) -> Result<bool, Error> {
        let failed = |error| explain(ASKED, EGRESS, error);
        let beat = &self.program.maps.egress_heartbeat;
        let beat = beat.lookup(&ONLY, MapFlags::ANY).map_err(failed)?;
        let beat = beat.and_then(|beat| beat.first_chunk().copied()).map(u64::from_ne_bytes);
        let is_fresh =
            beat.is_some_and(|beat| monotonic_ns().abs_diff(beat) <= STALE_AFTER.as_nanos());
        let mut link = self.link.borrow_mut();
        if !is_fresh {
            *link = None;
        } else if link.is_none() {
            let root = self.cgroup.as_raw_fd();
            *link = Some(self.program.progs.govern_egress.attach_cgroup(root).map_err(failed)?);
        }
        Ok(link.is_some())
    }
}

impl std::fmt::Debug for EgressHook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EgressHook").field("link", &self.link).finish_non_exhaustive()
    }
}

fn load(netns_cookie: u64, cgroup: File) -> libbpf_rs::Result<(Egress, EgressHook)> {
    // The object lives as long as the process, which loads it once.
    let object = Box::leak(Box::new(MaybeUninit::uninit()));
    let mut open = EgressSkelBuilder::default().open(object)?;
    if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
        rodata.egress_stale_after_ns = STALE_AFTER.as_nanos();
        rodata.casts = casts();
    }
    let program = open.load()?;
    let maps = &program.maps;
    let egress = Egress {
        netns_cookie,
        interface: MapHandle::try_from(&maps.egress_interface)?,
        heartbeat: MapHandle::try_from(&maps.egress_heartbeat)?,
        bytes: MapHandle::try_from(&maps.egress_bytes)?,
        flows: MapHandle::try_from(&maps.udp_flows)?,
        rates: MapHandle::try_from(&maps.udp_rates)?,
    };
    Ok((egress, EgressHook { program, cgroup, link: RefCell::new(None) }))
}

impl FlowValue {
    fn to_flow(self, now_ns: u64) -> UdpFlow {
        let address =
            |bytes, port| SocketAddr::new(IpAddr::from(Ipv6Addr::from(bytes)).to_canonical(), port);
        let of = self.flow;
        let flow = Flow {
            local: address(of.local, of.local_port),
            remote: address(of.remote, of.remote_port),
        };
        UdpFlow {
            id: self.id,
            flow,
            sent: Bytes::new(self.bytes),
            datagrams: self.datagrams,
            idle: Duration::from_nanos(now_ns.saturating_sub(self.last_ns)),
            backlog: Duration::from_nanos(self.next_ns.saturating_sub(now_ns)),
            delayed: self.delayed,
            marked: self.marked,
            dropped: self.dropped,
            is_tunnel: self.carries == flow_content::CARRIES_TUNNEL.0,
        }
    }
}

fn put(map: &MapHandle, key: &[u8], value: &[u8]) -> Result<(), Error> {
    map.update(key, value, MapFlags::ANY).map_err(|error| explain(ASKED, EGRESS, error))
}
