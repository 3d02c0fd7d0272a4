//! Makes packet rules with `nft`, and policy routes with `ip`, in a network namespace.

use std::io::{self, Write as _};
use std::process::{Command, Stdio};

use crate::change::Change;
use crate::lease::{Lease, LeaseError};
use crate::namespace::NetnsId;
use crate::policy;
use crate::sysctl::read_sysctl;

/// A rule or a route could not be made or removed.
#[derive(Debug, thiserror::Error)]
pub enum RoutingError {
    /// The program is not installed.
    #[error("{program} is missing: install {package}")]
    Program {
        /// The program.
        program: &'static str,
        /// The Debian package that contains it.
        package: &'static str,
    },
    /// The program reported an error.
    #[error("{program} {arguments}: {said}")]
    Refused {
        /// The program.
        program: &'static str,
        /// Its arguments.
        arguments: String,
        /// Its error message.
        said: String,
    },
    /// The program could not be run.
    #[error("cannot run {program}: {source}")]
    Run {
        /// The program.
        program: &'static str,
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
            Self::Program { .. } => true,
            Self::Refused { said, .. } => {
                said.contains("Operation not permitted") || said.contains("not supported")
            }
            Self::Run { .. } | Self::Lease(_) => false,
        }
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
    let made = run("nft", &["-f", "-"], rules);
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
/// written or `ip` refuses. Releasing the lease then removes the part that this process made, and
/// nothing of another process.
pub fn add_local_route(lease: &Lease, mark: u32, table: u32) -> Result<(), RoutingError> {
    let netns = current()?;
    lease.record_alone(Change::LocalRoute { netns, mark, table })?;
    let (mark, table) = (mark.to_string(), table.to_string());
    for family in families().filter(|family| *family == "-4" || has_ipv6()) {
        let route = [family, "route", "add", "local", "default", "dev", "lo", "table", &table];
        run("ip", &route, "")?;
        run("ip", &[family, "rule", "add", "fwmark", &mark, "lookup", &table], "")?;
    }
    Ok(())
}

/// Makes what is missing of [`add_local_route`]. A rule without a priority is put before all others
/// but those of priority 0, so a rule that another program has put before it comes after it then.
pub(crate) fn make_local_route_again(mark: u32, table: u32) -> Result<(), RoutingError> {
    let (mark, table) = (mark.to_string(), table.to_string());
    for family in families().filter(|family| *family == "-4" || has_ipv6()) {
        let route = [family, "route", "replace", "local", "default", "dev", "lo", "table", &table];
        run("ip", &route, "")?;
        let rule = |action| [family, "rule", action, "fwmark", &mark, "lookup", &table];
        was_there(run("ip", &rule("del"), ""))?;
        run("ip", &rule("add"), "")?;
    }
    Ok(())
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
    was_there(run("nft", &["delete", "table", "inet", table], ""))
}

/// Removes the route and the rule of [`add_local_route`]; returns `false` where neither existed.
pub(crate) fn remove_local_route(mark: u32, table: u32) -> Result<bool, RoutingError> {
    let (mark, table) = (mark.to_string(), table.to_string());
    let mut any = false;
    for family in families() {
        let rule = [family, "rule", "del", "fwmark", &mark, "lookup", &table];
        any |= was_there(run("ip", &rule, ""))?;
        let route = [family, "route", "del", "local", "default", "dev", "lo", "table", &table];
        any |= was_there(run("ip", &route, ""))?;
    }
    Ok(any)
}

/// Whether the calling thread's network namespace has IPv6, at least on its loopback. The kernel
/// may be built without IPv6, or an administrator may have disabled it.
pub fn has_ipv6() -> bool {
    read_sysctl("net.ipv6.conf.lo.disable_ipv6").is_ok_and(|disabled| disabled == "0")
}

/// The address families of this kernel, as `ip` names them.
fn families() -> impl Iterator<Item = &'static str> {
    let v6 = std::path::Path::new("/proc/sys/net/ipv6").exists();
    std::iter::once("-4").chain(v6.then_some("-6"))
}

fn current() -> Result<NetnsId, RoutingError> {
    NetnsId::current().map_err(|error| LeaseError::Io(error).into())
}

/// Returns `false` where the error means that there was nothing to remove. The kernel's error is
/// ENOENT for rules and tables, and ESRCH for routes.
fn was_there(removed: Result<(), RoutingError>) -> Result<bool, RoutingError> {
    match removed {
        Ok(()) => Ok(true),
        Err(RoutingError::Refused { said, .. })
            if ["No such file or directory", "No such process", "does not exist"]
                .iter()
                .any(|absent| said.contains(absent)) =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

fn run(program: &'static str, arguments: &[&str], input: &str) -> Result<(), RoutingError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => RoutingError::Program { program, package: package(program) },
        _ => RoutingError::Run { program, source },
    };
    let mut child = Command::new(program)
        .args(arguments)
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // An error here is not reported: a program that does not read its input exits with an error
        // message.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(RoutingError::Refused { program, arguments: arguments.join(" "), said })
}

fn package(program: &str) -> &'static str {
    if program == "nft" { "nftables" } else { "iproute2" }
}
