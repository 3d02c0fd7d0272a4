//! Finds the connections that a user names, before anything is changed.

use std::os::fd::AsFd as _;
use std::path::Path;

use wakeai_host::{Cgroup, Namespace, NetnsId, Route};
use wakeai_kernel::{Assigned, AssignedWay, Assignment, Covered, Destination};
use wakeai_units::Rate;

use crate::{AssignError, AssignOptions, ScopeName};

/// The connections that get the algorithm.
pub(crate) enum Scope {
    /// New connections of the network namespace.
    Namespace,
    /// New connections over a route, and the algorithm that the route had before; `None` where it
    /// had none.
    Route(Route, Option<String>),
    /// New connections of a control group.
    Cgroup(Cgroup),
    /// Existing connections: those with these cookies, or all where the list is empty.
    Existing(Vec<u64>),
}

/// The scope, with its network namespace and destination.
pub(crate) struct Found {
    pub(crate) scope: Scope,
    pub(crate) netns: NetnsId,
    destination: Option<Destination>,
}

impl Found {
    /// Finds the scope, and moves the calling thread into the named namespace.
    pub(crate) fn find(options: &AssignOptions) -> Result<Self, AssignError> {
        if let Some(name) = &options.namespace {
            namespace(name)?.enter()?;
        }
        let netns = NetnsId::current()?;
        let scope = match &options.scope {
            ScopeName::Namespace => Scope::Namespace,
            ScopeName::Route { network: Destination { address, length, .. }, interface } => {
                let route = Route::find(*address, *length, interface.as_deref())?;
                let before = route.algorithm();
                Scope::Route(route, before)
            }
            ScopeName::Cgroup(path) => Scope::Cgroup(Cgroup::find(path)?),
            ScopeName::Unit(unit) => Scope::Cgroup(Cgroup::of_unit(unit)?),
            ScopeName::Existing(cookies) => Scope::Existing(cookies.clone()),
        };
        Ok(Self { scope, netns, destination: options.destination })
    }

    /// The object that only one process may cover at a time, in words.
    pub(crate) fn exclusive(&self) -> Option<String> {
        let netns = self.netns.0;
        match &self.scope {
            Scope::Namespace => Some(format!("the default of network namespace {netns}")),
            Scope::Route(route, _) => {
                Some(format!("the route to {} of network namespace {netns}", route.key()))
            }
            Scope::Cgroup(_) | Scope::Existing(_) => None,
        }
    }

    /// The assignment for the kernel.
    pub(crate) fn assignment<'a>(
        &'a self,
        algorithm: &'a str,
        rate: Option<Rate>,
    ) -> Assignment<'a> {
        let (covered, destination) = match &self.scope {
            Scope::Namespace => (Covered::Defaults { before: None }, self.destination),
            Scope::Route(route, before) => {
                let key = route.key();
                let (address, length) = (key.destination, key.length);
                let network = Destination { address, length, port: None };
                (Covered::Defaults { before: before.as_deref() }, Some(network))
            }
            Scope::Cgroup(cgroup) => (Covered::Cgroup(cgroup.as_fd()), self.destination),
            Scope::Existing(_) => (Covered::Existing, self.destination),
        };
        Assignment {
            algorithm,
            covered,
            bytes_per_second: rate.map_or(0, Rate::bytes_per_second),
            destination,
            owner: std::process::id(),
        }
    }

    /// The record for the case that this process dies. Another process then reads it, and restores
    /// the algorithms of the connections.
    pub(crate) fn assigned(&self, algorithm: &str) -> Assigned {
        let moved = AssignedWay::Moved { owner: std::process::id() };
        let default = |destination, before| AssignedWay::Default { destination, before };
        let (netns, way) = match &self.scope {
            Scope::Namespace => (Some(self.netns), default(None, None)),
            Scope::Route(route, before) => {
                let network = (route.key().destination, route.key().length);
                (Some(self.netns), default(Some(network), before.clone()))
            }
            Scope::Cgroup(_) => (None, moved),
            Scope::Existing(_) => (Some(self.netns), moved),
        };
        Assigned { netns, algorithm: algorithm.to_owned(), way }
    }

    /// The kind of scope, as one word.
    pub(crate) fn kind(&self) -> &'static str {
        match self.scope {
            Scope::Namespace => "namespace",
            Scope::Route(..) => "route",
            Scope::Cgroup(_) => "cgroup",
            Scope::Existing(_) => "connections",
        }
    }

    /// The name of the scope within its kind.
    pub(crate) fn name(&self) -> String {
        match &self.scope {
            Scope::Namespace => self.netns.0.to_string(),
            Scope::Route(route, _) => route.key().to_string(),
            Scope::Cgroup(cgroup) => cgroup.path().display().to_string(),
            Scope::Existing(cookies) if cookies.is_empty() => "all".to_owned(),
            Scope::Existing(cookies) => {
                let cookies: Vec<_> = cookies.iter().map(u64::to_string).collect();
                cookies.join(", ")
            }
        }
    }

    /// The network and port of the connections, such as `192.0.2.0/24:443` or `[2001:db8::/32]:443`.
    pub(crate) fn destination_text(&self) -> Option<String> {
        let Destination { address, length, port } = self.destination?;
        Some(match port {
            None => format!("{address}/{length}"),
            Some(port) if address.is_ipv4() => format!("{address}/{length}:{port}"),
            Some(port) => format!("[{address}/{length}]:{port}"),
        })
    }
}

/// Opens a network namespace by its inode, or by a name that `ip netns` lists.
fn namespace(name: &str) -> Result<Namespace, AssignError> {
    let unknown = |source| AssignError::NoNamespace { name: name.to_owned(), source };
    match name.parse() {
        Ok(inode) => NetnsId(inode).open().ok_or_else(|| unknown(None)),
        // `ip netns` lists file names, which contain no slash.
        Err(_) if Path::new(name).components().count() != 1 => Err(unknown(None)),
        Err(_) => Namespace::open(name).map_err(|error| unknown(Some(error))),
    }
}
