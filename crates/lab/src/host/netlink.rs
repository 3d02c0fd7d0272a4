//! The rtnetlink requests of the lab, one after another, in the calling thread's network namespace.
//!
//! The messages are those of `rtnetlink`; its asynchronous client is not needed for a dozen
//! requests and cannot name a qdisc's kind.

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsRawFd;

use rtnetlink::packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkMessage,
    NetlinkPayload,
};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::address::{AddressAttribute, AddressMessage};
use rtnetlink::packet_route::link::LinkAttribute;
use rtnetlink::packet_route::tc::{TcAttribute, TcHandle, TcMessage};
use rtnetlink::packet_route::{AddressFamily, route::RouteScope};
use rtnetlink::sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use rtnetlink::{LinkUnspec, LinkVeth, RouteMessageBuilder};

/// A netlink socket of one network namespace.
pub(crate) struct Netlink {
    socket: Socket,
    sequence: u32,
}

/// The settings of a link.
pub(crate) struct LinkSettings {
    /// The length of the longest IP packet.
    pub(crate) mtu_bytes: u32,
    /// The length of the device's queue in packets.
    pub(crate) queue_packets: u32,
    /// The most segments that TCP may hand down as one buffer; it counts as one packet in the queue.
    pub(crate) gso_max_segments: Option<u32>,
}

impl Netlink {
    /// Opens a socket in the calling thread's namespace.
    pub(crate) fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Sets the link and brings it up.
    pub(crate) fn set_up(&mut self, index: u32, settings: &LinkSettings) -> io::Result<()> {
        let mut link = LinkUnspec::new_with_index(index)
            .mtu(settings.mtu_bytes)
            .txqueuelen(settings.queue_packets);
        if let Some(segments) = settings.gso_max_segments {
            link = link.append_extra_attribute(LinkAttribute::GsoMaxSegs(segments));
        }
        self.request(RouteNetlinkMessage::SetLink(link.up().build()), 0)
    }

    /// Brings the link up without other changes.
    pub(crate) fn up(&mut self, index: u32) -> io::Result<()> {
        let link = LinkUnspec::new_with_index(index).up().build();
        self.request(RouteNetlinkMessage::SetLink(link), 0)
    }

    /// Makes a veth link with the end `here` in this namespace and the end `there` in another.
    pub(crate) fn add_cable(&mut self, here: &str, there: &str, other: &File) -> io::Result<()> {
        let pair = LinkVeth::new(here, there).build();
        self.request(RouteNetlinkMessage::NewLink(pair), NLM_F_CREATE | NLM_F_EXCL)?;
        let moved = LinkUnspec::new_with_name(there).setns_by_fd(other.as_raw_fd()).build();
        self.request(RouteNetlinkMessage::SetLink(moved), 0)
    }

    /// Removes the qdisc, so that the sender sees at once when the device refuses a packet.
    pub(crate) fn no_queueing_discipline(&mut self, index: u32) -> io::Result<()> {
        let mut message = TcMessage::with_index(index.try_into().unwrap_or(i32::MAX));
        message.header.parent = TcHandle::ROOT;
        message.attributes.push(TcAttribute::Kind("noqueue".to_owned()));
        self.request(RouteNetlinkMessage::NewQueueDiscipline(message), NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Gives the link an address, with the broadcast address of its network.
    pub(crate) fn add_address(
        &mut self,
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
        self.request(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Adds a default route over the link.
    pub(crate) fn add_default_route(&mut self, index: u32) -> io::Result<()> {
        let route = RouteMessageBuilder::<Ipv4Addr>::new()
            .output_interface(index)
            .scope(RouteScope::Link)
            .build();
        self.request(RouteNetlinkMessage::NewRoute(route), NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Adds a default route over the host `gateway`.
    pub(crate) fn add_default_route_via(&mut self, gateway: Ipv4Addr) -> io::Result<()> {
        let route = RouteMessageBuilder::<Ipv4Addr>::new().gateway(gateway).build();
        self.request(RouteNetlinkMessage::NewRoute(route), NLM_F_CREATE | NLM_F_REPLACE)
    }

    fn request(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.sequence += 1;
        let mut request = NetlinkMessage::from(message);
        request.header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        request.header.sequence_number = self.sequence;
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let (answer, _) = self.socket.recv_from_full()?;
        let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
        match answer.payload {
            NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
            _ => Ok(()), // code 0 is the acknowledgement that was asked for
        }
    }
}
