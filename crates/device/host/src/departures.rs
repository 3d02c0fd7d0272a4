//! Puts `fq` (tc-fq(8)) in place of the kernel's default queueing discipline of an interface, so that packets leave at
//! their departure times.
//!
//! It is put with `nopacing`, so that it obeys the departure times of packets and does not pace TCP by itself. Only a
//! root with the handle 0 is replaced, because the kernel gives this handle to its defaults alone. The kernel itself
//! refuses to replace or to delete another root, so nothing that another program puts meanwhile is lost. When ours is
//! deleted, the kernel attaches its default again. Packets that wait in the former discipline at that moment are
//! dropped.
//!
//! A device with several transmit queues gets `mq` with an `fq` for each of them, as the kernel's own default is, so
//! that the access categories of Wi-Fi keep their queues.

use std::fmt;
use std::io;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkMessage};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage};
use nix::errno::Errno;
use nix::libc::{RTM_DELQDISC, RTM_NEWQDISC};
use nix::net::if_::if_nametoindex;

use crate::change::{Change, Guard};
use crate::lease::{Lease, LeaseError};
use crate::namespace::NetnsId;
use crate::netlink::{Netlink, obeys};
use crate::raw_message::{Attribute, RawMessage};

/// The major number of our root's handle, "wa" in ASCII: `7761:` of tc(8).
const OURS: u16 = 0x7761;
/// The largest number of packets of one flow in `fq`, which else is 100. In the 100 ms that a governed flow of UDP may
/// wait these are 120 Mbit/s in packets of 1500 bytes, and more where one call sends many (UDP GSO). `fq` drops
/// packets beyond it.
const FLOW_LIMIT: u32 = 1000;
/// The length of the header of a message (`struct tcmsg`).
const HEADER_BYTES: usize = 20;
// Numbers of attributes, from <linux/rtnetlink.h> and <linux/pkt_sched.h>.
const KIND: u16 = 1;
const OPTIONS: u16 = 2;
const FQ_FLOW_LIMIT: u16 = 2;
const FQ_PACING: u16 = 5;

/// What is at the root of an interface's queueing disciplines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Departures {
    /// A discipline that sends each packet at its departure time.
    Obeyed,
    /// The kernel's default, of this kind. An interface that is down has none.
    Default(Option<String>),
    /// What another program or a person has chosen: kind and handle, such as `tbf 8001:`.
    Chosen(String),
}

/// What [`put_departures`] has done.
#[derive(Debug)]
pub enum PutDepartures {
    /// `fq` stands in place of the kernel's default, of this kind.
    Done(Guard, Option<String>),
    /// Nothing: departure times are obeyed already.
    Obeyed,
    /// Nothing, because another program or a person has chosen this discipline.
    Chosen(String),
    /// Nothing, because the kernel has no `fq`.
    NoFq,
}

/// The queueing discipline could not be read or put.
#[derive(Debug, thiserror::Error)]
pub enum DeparturesError {
    /// The kernel refused, or there is no such interface.
    #[error("cannot put fq on {interface}: {source}")]
    Io {
        /// The interface.
        interface: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The lease could not be written, so nothing was changed.
    #[error(transparent)]
    Lease(#[from] LeaseError),
}

/// Looks at an interface of the calling thread's network namespace, and changes nothing.
///
/// # Errors
///
/// Where there is no such interface, or the kernel refuses.
pub fn departures(interface: &str) -> io::Result<Departures> {
    let index = if_nametoindex(interface)?;
    let all = disciplines(&Netlink::open()?, index)?;
    let root = all.iter().find(|one| one.parent == TcHandle::ROOT);
    Ok(match root {
        _ if obeys(all.iter().map(Discipline::place)) => Departures::Obeyed,
        Some(root) if root.handle.major != 0 => Departures::Chosen(root.to_string()),
        root => Departures::Default(root.map(|root| root.kind.clone())),
    })
}

/// Puts `fq` over an interface of the calling thread's network namespace in place of the kernel's default.
///
/// # Errors
///
/// Where the lease cannot be written, there is no such interface, or the kernel refuses; then nothing was changed.
pub fn put_departures(lease: &Lease, interface: &str) -> Result<PutDepartures, DeparturesError> {
    let failed = |source| DeparturesError::Io { interface: interface.to_owned(), source };
    let index = if_nametoindex(interface).map_err(|errno| failed(errno.into()))?;
    let netns = NetnsId::current().map_err(failed)?;
    let change =
        Change::QueueingDiscipline { netns, interface: interface.to_owned(), index, handle: OURS };
    let netlink = Netlink::open().map_err(failed)?;
    if root(&netlink, index).map_err(failed)?.is_some_and(|root| root.is_ours(OURS)) {
        // A former agent has left it, perhaps half made, and its lease is lost.
        delete(&netlink, index, OURS).map_err(failed)?;
    }
    let before = match departures(interface).map_err(failed)? {
        Departures::Obeyed => return Ok(PutDepartures::Obeyed),
        Departures::Chosen(what) => return Ok(PutDepartures::Chosen(what)),
        Departures::Default(kind) => kind,
    };
    lease.record(change.clone())?;
    let Err(error) = make(&netlink, index, OURS) else {
        return Ok(PutDepartures::Done(Guard(change), before));
    };
    // Where an unfinished root could not be deleted, it stays recorded.
    if root(&netlink, index).map_err(failed)?.is_some_and(|root| root.is_ours(OURS)) {
        delete(&netlink, index, OURS).map_err(failed)?;
    }
    lease.forget(&change)?;
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENOENT) => Ok(PutDepartures::NoFq),
        // Another program was faster.
        Some(Errno::EEXIST) => match departures(interface).map_err(failed)? {
            Departures::Chosen(what) => Ok(PutDepartures::Chosen(what)),
            _ => Err(failed(error)),
        },
        _ => Err(failed(error)),
    }
}

/// Deletes the root with this handle, where an interface of this name or with this index has it. Returns whether one
/// had it.
pub(crate) fn remove(interface: &str, index: u32, handle: u16) -> io::Result<bool> {
    let netlink = Netlink::open()?;
    let named = if_nametoindex(interface).ok();
    // The interface may have got another name since, or another index.
    for index in named.into_iter().chain([index]) {
        if root(&netlink, index)?.is_some_and(|root| root.is_ours(handle)) {
            return delete(&netlink, index, handle).map(|()| true);
        }
    }
    Ok(false)
}

/// What is found in place of the root with this handle; `None` where it stands, or the interface is absent.
pub(crate) fn other_root(interface: &str, handle: u16) -> io::Result<Option<String>> {
    let Ok(index) = if_nametoindex(interface) else { return Ok(None) };
    Ok(match root(&Netlink::open()?, index)? {
        Some(root) if root.is_ours(handle) => None,
        Some(root) => Some(root.to_string()),
        None => Some("none".to_owned()),
    })
}

/// Puts it again in place of the kernel's default. The error is [`io::ErrorKind::AlreadyExists`] where another program
/// has chosen a discipline.
pub(crate) fn put_back(interface: &str, handle: u16) -> io::Result<()> {
    let index = if_nametoindex(interface)
        .map_err(|_| io::Error::new(io::ErrorKind::NotFound, "there is no such interface"))?;
    make(&Netlink::open()?, index, handle)
}

/// A queueing discipline as the kernel lists it.
struct Discipline {
    kind: String,
    handle: TcHandle,
    parent: TcHandle,
}

impl Discipline {
    /// Whether it is a root that [`make`] has put.
    fn is_ours(&self, handle: u16) -> bool {
        self.handle.major == handle && (self.kind == "fq" || self.kind == "mq")
    }

    /// Whether it is the root, and its kind.
    fn place(&self) -> (bool, &str) {
        (self.parent == TcHandle::ROOT, &self.kind)
    }
}

impl fmt::Display for Discipline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:x}:", self.kind, self.handle.major)
    }
}

fn disciplines(netlink: &Netlink, index: u32) -> io::Result<Vec<Discipline>> {
    let read = |message: TcMessage| {
        let kind = message.attributes.into_iter().find_map(|attribute| match attribute {
            TcAttribute::Kind(kind) => Some(kind),
            _ => None,
        });
        let (handle, parent) = (message.header.handle, message.header.parent);
        Some(Discipline { kind: kind?, handle, parent })
    };
    Ok(netlink.queueing_disciplines(index)?.into_iter().filter_map(read).collect())
}

fn root(netlink: &Netlink, index: u32) -> io::Result<Option<Discipline>> {
    let all = disciplines(netlink, index)?;
    Ok(all.into_iter().find(|one| one.parent == TcHandle::ROOT))
}

/// Puts the root with this handle where the kernel's default is. After an error nothing was changed:
/// `EEXIST` says that the root is not the kernel's default, and `ENOENT` that the kernel has no `fq`.
fn make(netlink: &Netlink, index: u32, handle: u16) -> io::Result<()> {
    let ours = TcHandle { major: handle, minor: 0 };
    if transmit_queues(netlink, index)? <= 1 {
        return put(netlink, index, (TcHandle::ROOT, ours), "fq", &fq());
    }
    if !has_fq(netlink, index, handle)? {
        return Err(Errno::ENOENT.into());
    }
    put(netlink, index, (TcHandle::ROOT, ours), "mq", &[])?;
    fill(netlink, index, handle).inspect_err(|_| {
        if let Err(error) = delete(netlink, index, handle) {
            tracing::warn!(%error, "mq without fq stays until the end");
        }
    })
}

/// Puts `fq` below each class of our `mq`, one for each transmit queue in use.
fn fill(netlink: &Netlink, index: u32, handle: u16) -> io::Result<()> {
    let children = disciplines(netlink, index)?.into_iter().map(|one| one.parent);
    for parent in children.filter(|parent| parent.major == handle && parent.minor != 0) {
        put(netlink, index, (parent, TcHandle::UNSPEC), "fq", &fq())?;
    }
    Ok(())
}

/// Whether the kernel has `fq`, or can load it. The kernel is asked for one with an option that is too short, which it
/// reads only where it has `fq`. So `mq` is not put and taken back on each start of a kernel without. The option must
/// be malformed: a value that one kernel refuses, such as a quantum of 0, another one adjusts.
fn has_fq(netlink: &Netlink, index: u32, handle: u16) -> io::Result<bool> {
    let ours = TcHandle { major: handle, minor: 0 };
    let malformed = [Attribute { kind: FQ_PACING, value: vec![0] }];
    match put(netlink, index, (TcHandle::ROOT, ours), "fq", &malformed) {
        Ok(()) => delete(netlink, index, handle).map(|()| true),
        Err(error) => match error.raw_os_error().map(Errno::from_raw) {
            Some(Errno::ENOENT) => Ok(false),
            Some(Errno::ERANGE | Errno::EINVAL) => Ok(true),
            _ => Err(error),
        },
    }
}

/// The options of `fq nopacing flow_limit 1000`.
fn fq() -> [Attribute; 2] {
    [number(FQ_FLOW_LIMIT, FLOW_LIMIT), number(FQ_PACING, 0)]
}

fn number(kind: u16, value: u32) -> Attribute {
    Attribute { kind, value: value.to_ne_bytes().to_vec() }
}

/// Puts a discipline. Without `NLM_F_REPLACE` the kernel takes the place of its default alone.
fn put(
    netlink: &Netlink,
    index: u32,
    at: (TcHandle, TcHandle),
    kind: &str,
    options: &[Attribute],
) -> io::Result<()> {
    let mut message = message(RTM_NEWQDISC, index, at, kind);
    if !options.is_empty() {
        message.attributes.push(Attribute::nested(OPTIONS, options));
    }
    netlink.change(message, NLM_F_CREATE | NLM_F_EXCL)
}

/// Deletes the root with this handle; another one stays, and is no error.
fn delete(netlink: &Netlink, index: u32, handle: u16) -> io::Result<()> {
    let ours = TcHandle { major: handle, minor: 0 };
    let mut message = message(RTM_DELQDISC, index, (TcHandle::ROOT, ours), "");
    message.attributes.clear();
    match netlink.change(message, 0) {
        // The interface has gone, or another program has put its own since the root was read.
        Err(error)
            if [Errno::ENODEV, Errno::ENOENT, Errno::EINVAL]
                .contains(&Errno::from_raw(error.raw_os_error().unwrap_or(0))) =>
        {
            Ok(())
        }
        done => done,
    }
}

/// A message about a discipline (`struct tcmsg`): the family, three bytes that are not used, the interface, the handle,
/// the parent, and a number that is not used.
fn message(
    of: u16,
    index: u32,
    (parent, handle): (TcHandle, TcHandle),
    kind: &str,
) -> RawMessage<HEADER_BYTES> {
    let mut header = [0; HEADER_BYTES];
    let words = [index, u32::from(handle), u32::from(parent)];
    for (to, word) in header[4..].chunks_exact_mut(4).zip(words) {
        to.copy_from_slice(&word.to_ne_bytes());
    }
    let name = Attribute { kind: KIND, value: [kind.as_bytes(), b"\0"].concat() };
    RawMessage { kind: of, header, attributes: vec![name] }
}

/// The number of transmit queues that the device can have.
fn transmit_queues(netlink: &Netlink, index: u32) -> io::Result<u32> {
    let mut question = LinkMessage::default();
    question.header.index = index;
    let answers = netlink.ask(RouteNetlinkMessage::GetLink(question))?;
    let queues = answers.into_iter().find_map(|answer| match answer {
        RouteNetlinkMessage::NewLink(link) if link.header.index == index => {
            link.attributes.into_iter().find_map(|attribute| match attribute {
                LinkAttribute::NumTxQueues(queues) => Some(queues),
                _ => None,
            })
        }
        _ => None,
    });
    Ok(queues.unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use netlink_packet_core::NetlinkSerializable as _;

    use super::*;

    #[test]
    fn the_message_is_what_tc_sends() {
        // tc qdisc add dev IF root handle 7761: fq flow_limit 1000 nopacing
        let handle = TcHandle { major: OURS, minor: 0 };
        let mut message = message(RTM_NEWQDISC, 3, (TcHandle::ROOT, handle), "fq");
        message.attributes.push(Attribute::nested(OPTIONS, &fq()));
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let header: Vec<u8> = words(&[0, 3, 0x7761_0000, u32::MAX, 0]);
        assert_eq!(bytes[..20], header);
        assert_eq!(bytes[20..28], *[&7_u16.to_ne_bytes()[..], &[1, 0], b"fq\0\0"].concat());
        let options = [20_u16, 2, 8, 2, 1000, 0, 8, 5, 0, 0].map(u16::to_ne_bytes).concat();
        assert_eq!(bytes[28..], options);
    }

    #[test]
    fn only_what_was_put_is_ours() {
        let root = |kind: &str, major| Discipline {
            kind: kind.to_owned(),
            handle: TcHandle { major, minor: 0 },
            parent: TcHandle::ROOT,
        };
        assert!(root("fq", OURS).is_ours(OURS) && root("mq", OURS).is_ours(OURS));
        assert!(!root("fq", 0x8001).is_ours(OURS) && !root("fq", 0).is_ours(OURS));
        assert!(!root("pfifo", OURS).is_ours(OURS));
        assert_eq!(root("pfifo", 0x8001).to_string(), "pfifo 8001:");
    }
}
