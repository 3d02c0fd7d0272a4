//! Makes packet rules with `nft`, and policy routes over rtnetlink, in a network namespace.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage as Asked};
use nix::errno::Errno;

use crate::change::Change;
use crate::lease::{Lease, LeaseError};
use crate::namespace::NetnsId;
use crate::netlink::Netlink;
use crate::{packet_rules, policy};

/// The index of the loopback interface of every namespace.
const LOOPBACK: u32 = 1;

/// A rule or a route could not be made or removed.
#[derive(Debug, thiserror::Error)]
pub enum RoutingError {
    /// nft is not installed.
    #[error("nft is missing: install nftables")]
    NoNft,
    /// nft could not be run.
    #[error("cannot run nft: {0}")]
    Run(io::Error),
    /// nft reported an error.
    #[error("nft {arguments}: {said}")]
    Refused {
        /// Its arguments.
        arguments: String,
        /// Its error message.
        said: String,
        /// Whether the kernel has no nftables, or does not let this process use them.
        is_missing: bool,
    },
    /// The kernel refused.
    #[error("cannot change the route for packets with mark {mark:#x}: {source}")]
    Kernel {
        /// The mark.
        mark: u32,
        /// The kernel's error.
        source: io::Error,
    },
    /// The lease could not be written, so nothing was changed.
    #[error(transparent)]
    Lease(#[from] LeaseError),
}

impl RoutingError {
    /// Whether a program, a privilege or a kernel feature is missing.
    pub fn is_missing(&self) -> bool {
        match self {
            Self::NoNft => true,
            Self::Refused { is_missing, .. } => *is_missing,
            Self::Kernel { source, .. } => {
                [Errno::EPERM, Errno::EOPNOTSUPP, Errno::EAFNOSUPPORT].contains(&errno(source))
            }
            Self::Run(_) | Self::Lease(_) => false,
        }
    }

    fn kernel(mark: u32) -> impl Fn(io::Error) -> Self {
        move |source| Self::Kernel { mark, source }
    }
}

/// Makes a table of nftables in the calling thread's network namespace. `rules` is a script of
/// nft(8) that creates `table` of the family inet. nft applies the script completely or not at all.
///
/// # Errors
///
/// Where the lease cannot be written or `nft` refuses; then nothing was changed.
pub fn add_packet_rules(lease: &Lease, table: &str, rules: &str) -> Result<(), RoutingError> {
    let netns = current()?;
    let change = Change::PacketRules { netns, table: table.to_owned() };
    lease.record_alone(change.clone())?;
    let made = nft(&["-f", "-"], rules);
    if made.is_err() {
        lease.forget(&change)?;
    }
    made
}

/// Makes a route that delivers packets with `mark` locally, whatever their destination. It does so
/// in the calling thread's network namespace, for every address family that the namespace has.
///
/// # Errors
///
/// Where another process has made the same route ([`LeaseError::Held`]), the lease cannot be
/// written or the kernel refuses. Releasing the lease then removes the part that this process made, and
/// nothing of another process.
pub fn add_local_route(lease: &Lease, mark: u32, table: u32) -> Result<(), RoutingError> {
    let netns = current()?;
    lease.record_alone(Change::LocalRoute { netns, mark, table })?;
    let add = |message| Netlink::open()?.change(message, NLM_F_CREATE | NLM_F_EXCL);
    policy::families().into_iter().try_for_each(|family| {
        add(Asked::NewRoute(route(family, table)))
            .and_then(|()| add(Asked::NewRule(rule(family, mark, table))))
            .map_err(RoutingError::kernel(mark))
    })
}

/// Makes what is missing of [`add_local_route`]. A rule without a priority is put before all others
/// but those of priority 0, so a rule that another program has put before it comes after it then.
pub(crate) fn make_local_route_again(mark: u32, table: u32) -> io::Result<()> {
    let netlink = Netlink::open()?;
    policy::families().into_iter().try_for_each(|family| {
        let route = Asked::NewRoute(route(family, table));
        netlink.change(route, NLM_F_CREATE | NLM_F_REPLACE)?;
        was_there(netlink.change(Asked::DelRule(rule(family, mark, table)), 0))?;
        let rule = Asked::NewRule(rule(family, mark, table));
        netlink.change(rule, NLM_F_CREATE | NLM_F_EXCL)
    })
}

/// The route of the table, which delivers every packet on this machine.
fn route(family: AddressFamily, table: u32) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header = RouteHeader {
        address_family: family,
        protocol: RouteProtocol::Boot, // as ip(8)
        scope: RouteScope::Host,
        kind: RouteType::Local,
        ..RouteHeader::default()
    };
    message.attributes = vec![RouteAttribute::Table(table), RouteAttribute::Oif(LOOPBACK)];
    message
}

/// The rule by which packets with the mark take the route of the table.
fn rule(family: AddressFamily, mark: u32, table: u32) -> RuleMessage {
    let mut message = RuleMessage::default();
    message.header.family = family;
    message.header.action = RuleAction::ToTable;
    message.attributes = vec![RuleAttribute::Table(table), RuleAttribute::FwMark(mark)];
    message
}

/// What takes packets with `mark` before [`add_local_route`]'s rule does, in the calling thread's
/// namespace: rules of higher priority, as `ip rule` shows them, and whether such packets are
/// delivered on this machine nevertheless, as the kernel answers.
///
/// # Errors
///
/// Where the kernel refuses.
pub fn rules_before(mark: u32, table: u32) -> io::Result<Vec<(String, bool)>> {
    let mut before = Vec::new();
    for family in policy::families() {
        let found = policy::policy(family, mark, table)?;
        before.extend(found.ahead.into_iter().map(|rule| (rule, found.delivers)));
    }
    Ok(before)
}

/// Removes the table from the calling thread's namespace; returns `false` where the table did not
/// exist.
pub(crate) fn remove_packet_rules(table: &str) -> Result<bool, RoutingError> {
    if matches!(packet_rules::read(table), Ok(None)) {
        return Ok(false);
    }
    nft(&["delete", "table", "inet", table], "").map(|()| true)
}

/// Removes the route and the rule of [`add_local_route`]; returns `false` where neither existed.
pub(crate) fn remove_local_route(mark: u32, table: u32) -> io::Result<bool> {
    let netlink = Netlink::open()?;
    let mut any = false;
    for family in families() {
        any |= was_there(netlink.change(Asked::DelRule(rule(family, mark, table)), 0))?;
        any |= was_there(netlink.change(Asked::DelRoute(route(family, table)), 0))?;
    }
    Ok(any)
}

/// The address families of this kernel.
fn families() -> impl Iterator<Item = AddressFamily> {
    let v6 = Path::new("/proc/sys/net/ipv6").exists().then_some(AddressFamily::Inet6);
    std::iter::once(AddressFamily::Inet).chain(v6)
}

fn current() -> Result<NetnsId, RoutingError> {
    NetnsId::current().map_err(|error| LeaseError::Io(error).into())
}

/// Returns `false` where the error means that there was nothing to remove: ENOENT for rules, and ESRCH
/// for routes.
fn was_there(removed: io::Result<()>) -> io::Result<bool> {
    match removed {
        Ok(()) => Ok(true),
        Err(error) if [Errno::ENOENT, Errno::ESRCH].contains(&errno(&error)) => Ok(false),
        Err(error) => Err(error),
    }
}

fn errno(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::UnknownErrno, Errno::from_raw)
}

fn nft(arguments: &[&str], input: &str) -> Result<(), RoutingError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => RoutingError::NoNft,
        _ => RoutingError::Run(source),
    };
    let mut child = Command::new("nft")
        .args(arguments)
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // An error here is not reported: nft exits with an error message where it does not read its input.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let is_missing = packet_rules::are_readable().is_err();
    Err(RoutingError::Refused { arguments: arguments.join(" "), said, is_missing })
}
