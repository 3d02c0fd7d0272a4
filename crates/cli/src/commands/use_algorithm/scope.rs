//! What a user names, found on this machine before anything is changed.

use std::os::fd::AsFd as _;
use std::path::Path;

use anyhow::{Context as _, anyhow};
use wakeai_host::{
    Assigned, AssignedWay, Cgroup, CgroupError, Namespace, NetnsId, Route, RouteError,
};
use wakeai_kernel::{Assignment, Covered, Destination};
use wakeai_units::Rate;

use crate::args::{To, UseArguments};
use crate::failure::Failure;

/// Whose connections are ruled.
pub(super) enum Scope {
    /// New ones of the network namespace.
    Namespace,
    /// New ones over a route, and the algorithm of its own that it had, if any.
    Route(Route, Option<String>),
    /// New ones of a control group.
    Cgroup(Cgroup),
    /// Those that exist, or some of them by their cookies.
    Existing(Vec<u64>),
}

/// The scope, and where it is.
pub(super) struct Ruled {
    pub(super) scope: Scope,
    pub(super) netns: NetnsId,
    pub(super) to: Option<To>,
}

impl Ruled {
    /// Finds it; moves the calling thread into the namespace that was named.
    pub(super) fn find(arguments: &UseArguments) -> Result<Self, Failure> {
        if let Some(name) = &arguments.namespace {
            namespace(name)
                .map_err(Failure::usage)?
                .enter()
                .map_err(|error| Failure::missing_if(error.is_permission(), error))?;
        }
        let netns = NetnsId::current().map_err(Failure::failed)?;
        Ok(Self { scope: Scope::find(arguments)?, netns, to: arguments.to })
    }

    /// What must not be ruled by two, in words.
    pub(super) fn exclusive(&self) -> Option<String> {
        let netns = self.netns.0;
        match &self.scope {
            Scope::Namespace => Some(format!("the default of network namespace {netns}")),
            Scope::Route(route, _) => {
                Some(format!("the route to {} of network namespace {netns}", route.key()))
            }
            Scope::Cgroup(_) | Scope::Existing(_) => None,
        }
    }

    /// The control group, where it is one.
    pub(super) fn cgroup(&self) -> Option<&Cgroup> {
        match &self.scope {
            Scope::Cgroup(cgroup) => Some(cgroup),
            _ => None,
        }
    }

    fn covered(&self) -> Covered<'_> {
        match &self.scope {
            Scope::Namespace => Covered::Defaults { before: None },
            Scope::Route(_, before) => Covered::Defaults { before: before.as_deref() },
            Scope::Cgroup(cgroup) => Covered::Cgroup(cgroup.as_fd()),
            Scope::Existing(_) => Covered::Existing,
        }
    }

    /// What the kernel is asked for, by this process.
    pub(super) fn assignment<'a>(
        &'a self,
        algorithm: &'a str,
        rate: Option<Rate>,
    ) -> Assignment<'a> {
        Assignment {
            algorithm,
            covered: self.covered(),
            bytes_per_second: rate.map_or(0, Rate::bytes_per_second),
            destination: self.destination(),
            owner: std::process::id(),
        }
    }

    fn destination(&self) -> Option<Destination> {
        if let Scope::Route(route, _) = &self.scope {
            let key = route.key();
            return Some(Destination { address: key.destination, length: key.length, port: None });
        }
        self.to.map(|To { network, port }| Destination {
            address: network.address(),
            length: network.length(),
            port,
        })
    }

    /// What is written down, for whoever gives the connections back in place of process `owner`.
    pub(super) fn assigned(&self, algorithm: &str, owner: u32) -> Assigned {
        let (netns, way) = match &self.scope {
            Scope::Namespace => {
                (Some(self.netns), AssignedWay::Default { destination: None, before: None })
            }
            Scope::Route(route, before) => {
                let destination = Some((route.key().destination, route.key().length));
                (Some(self.netns), AssignedWay::Default { destination, before: before.clone() })
            }
            Scope::Cgroup(_) => (None, AssignedWay::Moved { owner }),
            Scope::Existing(_) => (Some(self.netns), AssignedWay::Moved { owner }),
        };
        Assigned { netns, algorithm: algorithm.to_owned(), way }
    }

    /// One word for its kind.
    pub(super) fn kind(&self) -> &'static str {
        match self.scope {
            Scope::Namespace => "namespace",
            Scope::Route(..) => "route",
            Scope::Cgroup(_) => "cgroup",
            Scope::Existing(_) => "connections",
        }
    }

    /// Which one of its kind.
    pub(super) fn name(&self) -> String {
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
}

impl Scope {
    fn find(arguments: &UseArguments) -> Result<Self, Failure> {
        if let Some(network) = arguments.route {
            let found = Route::find(network.address(), network.length(), arguments.dev.as_deref());
            let route = found.map_err(|error| match error {
                RouteError::Io { .. } => Failure::failed(error),
                _ => Failure::usage(error),
            })?;
            let before = route.algorithm();
            return Ok(Self::Route(route, before));
        }
        if let Some(path) = &arguments.cgroup {
            return Cgroup::find(path).map(Self::Cgroup).map_err(no_cgroup);
        }
        if let Some(unit) = &arguments.unit {
            return Cgroup::of_unit(unit).map(Self::Cgroup).map_err(no_cgroup);
        }
        if arguments.connections || !arguments.connection.is_empty() {
            return Ok(Self::Existing(arguments.connection.clone()));
        }
        Ok(Self::Namespace)
    }
}

fn no_cgroup(error: CgroupError) -> Failure {
    if error.is_usage() {
        Failure::usage(error)
    } else {
        Failure::missing_if(error.is_missing(), error)
    }
}

/// A number is an inode; a name is one that `ip netns` lists.
fn namespace(name: &str) -> anyhow::Result<Namespace> {
    let expected = || {
        format!("--namespace: found {name:?}, expected a name that `ip netns` lists, or an inode")
    };
    match name.parse() {
        Ok(inode) => NetnsId(inode).open().ok_or_else(|| anyhow!(expected())),
        // A name that leaves the directory of the names is none.
        Err(_) if Path::new(name).components().count() != 1 => Err(anyhow!(expected())),
        Err(_) => Namespace::open(name).with_context(expected),
    }
}
