//! The client of rtnetlink(7) and `sock_diag(7)`: one request at a time, in the calling thread's network namespace.

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST,
    NetlinkDeserializable, NetlinkHeader, NetlinkMessage, NetlinkPayload, NetlinkSerializable,
};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::{NETLINK_NETFILTER, NETLINK_ROUTE, NETLINK_SOCK_DIAG};
use netlink_sys::{Socket, SocketAddr};

/// A netlink socket of one network namespace.
#[derive(Debug)]
pub struct Netlink {
    socket: Socket,
}

/// The settings of a link.
#[derive(Clone, Copy, Debug)]
pub struct LinkSettings {
    /// The largest length of an IP packet, in bytes.
    pub mtu_bytes: u32,
    /// The capacity of the device's queue in the host, in packets.
    pub queue_packets: u32,
    /// The largest number of segments that TCP may put into one buffer. The kernel splits the
    /// buffer into segments after the queue (generic segmentation offload, GSO).
    pub gso_max_segments: Option<u32>,
}

/// The body of a message that can be sent and received.
pub trait Body: NetlinkSerializable + NetlinkDeserializable {}

impl<M: NetlinkSerializable + NetlinkDeserializable> Body for M {}

impl Netlink {
    /// Opens a socket in the calling thread's namespace.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses the request. This holds for all methods of this type.
    pub fn open() -> io::Result<Self> {
        Self::connect(NETLINK_ROUTE)
    }

    /// Opens a socket for `sock_diag(7)` in the calling thread's namespace. It supports only
    /// [`Self::dump`]. The answers are about this namespace, even if the thread that asks is in
    /// another one.
    ///
    /// # Errors
    ///
    /// See [`Self::open`].
    pub fn open_sock_diag() -> io::Result<Self> {
        Self::connect(NETLINK_SOCK_DIAG)
    }

    /// Opens a socket for the packet filter (nfnetlink) in the calling thread's namespace. It supports
    /// only [`Self::dump`].
    ///
    /// # Errors
    ///
    /// See [`Self::open`].
    pub(crate) fn open_netfilter() -> io::Result<Self> {
        Self::connect(NETLINK_NETFILTER)
    }

    fn connect(protocol: isize) -> io::Result<Self> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket })
    }

    /// Applies the settings to the link and brings it up.
    ///
    /// # Errors
    ///
    /// See [`Self::open`].
    pub fn set_up(&self, index: u32, settings: &LinkSettings) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.attributes.push(LinkAttribute::Mtu(settings.mtu_bytes));
        link.attributes.push(LinkAttribute::TxQueueLen(settings.queue_packets));
        link.attributes.extend(settings.gso_max_segments.map(LinkAttribute::GsoMaxSegs));
        self.bring_up(index, link)
    }

    /// Brings the link up and leaves its settings as they are.
    ///
    /// # Errors
    ///
    /// See [`Self::open`].
    pub fn up(&self, index: u32) -> io::Result<()> {
        self.bring_up(index, LinkMessage::default())
    }

    fn bring_up(&self, index: u32, mut link: LinkMessage) -> io::Result<()> {
        link.header.index = index;
        link.header.flags = LinkFlags::Up;
        link.header.change_mask = LinkFlags::Up;
        self.change(RouteNetlinkMessage::SetLink(link), 0)
    }

    /// Creates a veth pair: `here` in this namespace and `there` in the namespace `other`.
    ///
    /// # Errors
    ///
    /// See [`Self::open`].
    pub fn add_cable(&self, here: &str, there: &str, other: &File) -> io::Result<()> {
        let mut pair = named(here);
        pair.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(named(there)))),
        ]));
        self.change(RouteNetlinkMessage::NewLink(pair), NLM_F_CREATE | NLM_F_EXCL)?;
        let mut moved = named(there);
        moved.attributes.push(LinkAttribute::NetNsFd(other.as_raw_fd()));
        self.change(RouteNetlinkMessage::SetLink(moved), 0)
    }

    /// Sets the queueing discipline `noqueue`, so that a sender learns at once which packets the
    /// device drops.
    ///
    /// # Errors
    ///
    /// See [`Self::open`].
    pub fn no_queueing_discipline(&self, index: u32) -> io::Result<()> {
        self.set_queueing_discipline(index, "noqueue")
    }

    /// Sets the root queueing discipline of this kind, with its default settings.
    ///
    /// # Errors
    ///
    /// See [`Self::open`].
    pub fn set_queueing_discipline(&self, index: u32, kind: &str) -> io::Result<()> {
        let mut message = TcMessage::with_index(index.try_into().unwrap_or(i32::MAX));
        message.header.parent = TcHandle::ROOT;
        message.attributes.push(TcAttribute::Kind(kind.to_owned()));
        self.put(RouteNetlinkMessage::NewQueueDiscipline(message))
    }

    /// Whether the link's queueing discipline sends each packet at its departure time: it is `fq`, or `mq`
    /// whose queues all are.
    ///
    /// # Errors
    ///
    /// See [`Self::open`].
    pub fn obeys_departure_times(&self, index: u32) -> io::Result<bool> {
        let all = self.queueing_disciplines(index)?;
        Ok(obeys(all.iter().filter_map(|found| {
            let is_root = found.header.parent == TcHandle::ROOT;
            found.attributes.iter().find_map(|attribute| match attribute {
                TcAttribute::Kind(kind) => Some((is_root, kind.as_str())),
                _ => None,
            })
        })))
    }

    /// The queueing disciplines of a link.
    pub(crate) fn queueing_disciplines(&self, index: u32) -> io::Result<Vec<TcMessage>> {
        let index = index.try_into().unwrap_or(i32::MAX);
        let all =
            self.dump(RouteNetlinkMessage::GetQueueDiscipline(TcMessage::with_index(index)))?;
        let of_link = all.into_iter().filter_map(|answer| match answer {
            RouteNetlinkMessage::NewQueueDiscipline(found) if found.header.index == index => {
                Some(found)
            }
            _ => None,
        });
        Ok(of_link.collect())
    }

    /// Gives the link an address, and a broadcast address if the caller passes one.
    ///
    /// # Errors
    ///
    /// See [`Self::open`].
    pub fn add_address(
        &self,
        index: u32,
        address: Ipv4Addr,
        prefix_bits: u8,
        broadcast: Option<Ipv4Addr>,
    ) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.prefix_len = prefix_bits;
        message.header.index = index;
        message.attributes.push(AddressAttribute::Local(IpAddr::V4(address)));
        message.attributes.push(AddressAttribute::Address(IpAddr::V4(address)));
        message.attributes.extend(broadcast.map(AddressAttribute::Broadcast));
        self.put(RouteNetlinkMessage::NewAddress(message))
    }

    /// Makes the link the default route.
    ///
    /// # Errors
    ///
    /// See [`Self::open`].
    pub fn add_default_route(&self, index: u32) -> io::Result<()> {
        self.put_default_route(RouteScope::Link, RouteAttribute::Oif(index))
    }

    /// Makes the host `gateway` the default route.
    ///
    /// # Errors
    ///
    /// See [`Self::open`].
    pub fn add_default_route_via(&self, gateway: Ipv4Addr) -> io::Result<()> {
        let gateway = RouteAttribute::Gateway(RouteAddress::Inet(gateway));
        self.put_default_route(RouteScope::Universe, gateway)
    }

    fn put_default_route(&self, scope: RouteScope, to: RouteAttribute) -> io::Result<()> {
        let mut route = RouteMessage::default();
        route.header = RouteHeader {
            address_family: AddressFamily::Inet,
            table: RouteHeader::RT_TABLE_MAIN,
            protocol: RouteProtocol::Static,
            scope,
            kind: RouteType::Unicast,
            ..RouteHeader::default()
        };
        route.attributes.push(to);
        self.put(RouteNetlinkMessage::NewRoute(route))
    }

    /// Creates or replaces the object that the message describes.
    fn put(&self, message: RouteNetlinkMessage) -> io::Result<()> {
        self.change(message, NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Requests a change; returns when the kernel has acknowledged it.
    pub(crate) fn change<M: Body>(&self, message: M, flags: u16) -> io::Result<()> {
        self.request(message, NLM_F_ACK | flags).map(drop)
    }

    /// All messages of the kernel's answer to a dump request.
    ///
    /// # Errors
    ///
    /// See [`Self::open`].
    pub fn dump<M: Body>(&self, question: M) -> io::Result<Vec<M>> {
        self.request(question, NLM_F_DUMP)
    }

    /// The messages of the kernel's answer to a question about one object.
    pub(crate) fn ask<M: Body>(&self, question: M) -> io::Result<Vec<M>> {
        self.request(question, NLM_F_ACK)
    }

    fn request<M: Body>(&self, message: M, flags: u16) -> io::Result<Vec<M>> {
        let mut request =
            NetlinkMessage::new(NetlinkHeader::default(), NetlinkPayload::InnerMessage(message));
        request.header.flags = NLM_F_REQUEST | flags;
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let mut answers = Vec::new();
        loop {
            let (datagram, _) = self.socket.recv_from_full()?;
            if read(&datagram, &mut answers)? {
                return Ok(answers);
            }
        }
    }
}

/// Sockets on which the kernel reports changes of links, routes, rules and the packet filter in one
/// network namespace.
#[derive(Debug)]
pub(crate) struct Reports {
    sockets: Vec<Socket>,
}

/// The groups of rtnetlink(7): links, and routes and rules of both families.
const ROUTE_GROUPS: [u32; 5] = [1, 7, 8, 11, 19];
/// Links, queueing disciplines, and IPv4's addresses, routes and rules.
const SETTINGS_GROUPS: [u32; 5] = [1, 4, 5, 7, 8];
/// The group of nftables, `NFNLGRP_NFTABLES`.
const NFTABLES_GROUPS: [u32; 1] = [7];
/// The largest number of reports that are read at once.
const MOST_REPORTS: usize = 4096;

impl Reports {
    /// Listens in the calling thread's namespace. What the kernel does not report, or does not let
    /// this process hear, is left out: everything is looked at from time to time anyway.
    pub(crate) fn open() -> Self {
        let filter = listen(NETLINK_NETFILTER, &NFTABLES_GROUPS);
        Self::of([listen(NETLINK_ROUTE, &ROUTE_GROUPS), filter])
    }

    /// Listens for changes of everything that [`crate::settings`] lists.
    pub(crate) fn of_settings() -> Self {
        Self::of([listen(NETLINK_ROUTE, &SETTINGS_GROUPS)])
    }

    fn of<const N: usize>(all: [io::Result<Socket>; N]) -> Self {
        let heard = all.into_iter().filter_map(|opened| {
            opened.inspect_err(|error| tracing::debug!(%error, "no reports of the kernel")).ok()
        });
        Self { sockets: heard.collect() }
    }

    /// Whether the kernel has reported anything since the last call.
    pub(crate) fn have_come(&self) -> bool {
        self.sockets.iter().fold(false, |any, socket| any | has_heard(socket))
    }

    /// The sockets, to wait for.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sockets.iter().map(AsFd::as_fd)
    }
}

fn listen(protocol: isize, groups: &[u32]) -> io::Result<Socket> {
    let mut socket = Socket::new(protocol)?;
    socket.bind_auto()?;
    socket.set_non_blocking(true)?;
    groups.iter().try_for_each(|group| socket.add_membership(*group))?;
    Ok(socket)
}

/// Reads and drops all reports. What they say is looked up anew, because some may be lost.
fn has_heard(socket: &Socket) -> bool {
    let mut any = false;
    for _ in 0..MOST_REPORTS {
        match socket.recv(&mut Vec::with_capacity(1 << 15), 0) {
            Ok(_) => any = true,
            Err(error) if error.raw_os_error() == Some(nix::libc::ENOBUFS) => any = true,
            Err(_) => break,
        }
    }
    any
}

/// Whether packets leave at their departure times, where a link has disciplines of these kinds. The root is marked.
pub(crate) fn obeys<'a>(kinds: impl Iterator<Item = (bool, &'a str)>) -> bool {
    let kinds: Vec<_> = kinds.filter(|(_, kind)| *kind != "ingress" && *kind != "clsact").collect();
    let is_multiqueue = kinds.contains(&(true, "mq")) && kinds.len() > 1;
    let obeys = |(is_root, kind): &(bool, &str)| {
        *kind == "fq" || *is_root && *kind == "mq" && is_multiqueue
    };
    !kinds.is_empty() && kinds.iter().all(obeys)
}

fn named(name: &str) -> LinkMessage {
    let mut link = LinkMessage::default();
    link.attributes.push(LinkAttribute::IfName(name.to_owned()));
    link
}

/// Appends the messages of a datagram to `answers`; `true` where the datagram ends the kernel's
/// answer.
fn read<M: NetlinkDeserializable>(mut datagram: &[u8], answers: &mut Vec<M>) -> io::Result<bool> {
    while !datagram.is_empty() {
        let message = NetlinkMessage::deserialize(datagram)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
        match message.payload {
            NetlinkPayload::InnerMessage(answer) => answers.push(answer),
            NetlinkPayload::Error(error) if error.code.is_some() => return Err(error.to_io()),
            // A dump that fails at its start ends with the error's number, negated.
            NetlinkPayload::Done(done) if done.code < 0 => {
                return Err(io::Error::from_raw_os_error(-done.code));
            }
            // An error message with code 0 is an acknowledgement.
            NetlinkPayload::Error(_) | NetlinkPayload::Done(_) => return Ok(true),
            _ => {}
        }
        let length = (message.header.length as usize).next_multiple_of(4);
        datagram = datagram.get(length..).unwrap_or_default();
    }
    Ok(false)
}
