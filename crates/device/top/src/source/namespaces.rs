//! The network namespaces whose connections are read.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::time::Instant;

use wakeai_host::{Namespace, Netlink, NetnsId};

use super::diag::{self, DiagSocket};

/// A namespace with a socket that reads its connections.
#[derive(Debug)]
pub(crate) struct Watched {
    /// Empty for the namespace of this process.
    pub(crate) name: Arc<str>,
    /// Its cookie (`SO_NETNS_COOKIE`); `None` where the kernel gives none.
    pub(crate) cookie: Option<u64>,
    /// The socket of `sock_diag(7)`.
    pub(crate) socket: Netlink,
}

/// The connections of a namespace, and the time at which they were read.
pub(crate) struct SocketAnswer<'a> {
    pub(crate) netns: NetnsId,
    pub(crate) watched: &'a Watched,
    pub(crate) read: Instant,
    pub(crate) sockets: Vec<DiagSocket>,
}

/// All watched namespaces, by the inode.
#[derive(Debug)]
pub(crate) struct Namespaces {
    own: NetnsId,
    /// The inodes to which the watch is limited; empty: all that can be entered.
    only: Vec<NetnsId>,
    pub(crate) watched: HashMap<NetnsId, Watched>,
    /// The number of namespaces that cannot be entered.
    pub(crate) closed: usize,
}

impl Namespaces {
    /// Begins with this process's namespace.
    pub(crate) fn open(only: Vec<NetnsId>) -> io::Result<Self> {
        let own = NetnsId::current()?;
        let mut watched = HashMap::new();
        if only.is_empty() || only.contains(&own) {
            watched.insert(own, watch("")?);
        }
        Ok(Self { own, only, watched, closed: 0 })
    }

    /// Finds new namespaces and drops those that are gone. If a namespace has neither a name nor a process any more,
    /// its socket is closed, because the socket would keep the namespace alive.
    pub(crate) fn refresh(&mut self) {
        let Self { own, only, .. } = self;
        let existing: Vec<_> = Namespace::all()
            .into_iter()
            .filter(|namespace| only.is_empty() || only.contains(&namespace.id()))
            .collect();
        let ids: HashSet<_> = existing.iter().map(Namespace::id).chain([*own]).collect();
        self.watched.retain(|id, _| ids.contains(id));
        self.closed = 0;
        for namespace in existing {
            if self.watched.contains_key(&namespace.id()) || namespace.id() == self.own {
                continue;
            }
            // The namespace may disappear while this process enters it.
            match namespace.run(|| watch(namespace.name())) {
                Ok(Ok(watched)) => drop(self.watched.insert(namespace.id(), watched)),
                _ => self.closed += 1,
            }
        }
    }

    /// The connections of each namespace. Tells in `missing` which cannot be read.
    pub(crate) fn sockets(&self, missing: &mut Vec<String>) -> Vec<SocketAnswer<'_>> {
        let mut answers = Vec::new();
        for (&netns, watched) in &self.watched {
            match diag::connections(&watched.socket) {
                Ok(sockets) => {
                    answers.push(SocketAnswer { netns, watched, read: Instant::now(), sockets });
                }
                Err(error) => missing.push(format!("connections of {}: {error}", watched.name)),
            }
        }
        answers
    }
}

/// Opens a socket in the calling thread's namespace.
fn watch(name: &str) -> io::Result<Watched> {
    let cookie = wakeai_kernel::netns_cookie().ok();
    Ok(Watched { name: name.into(), cookie, socket: Netlink::open_sock_diag()? })
}
