//! Watches the changes of a lease (the record of a process's changes on the host), because other
//! programs can undo them while the process runs.
//!
//! One rule holds for all of them. The kernel reports changes of rules, routes and nftables;
//! everything is looked at after a report, and every five seconds. What does not hold any more is
//! put back, at most three times in ten minutes. Firewall tables are never put back, because a
//! person may have removed them, and a queueing discipline is not put back in place of another
//! program's. Changes of queueing disciplines are not reported, because the look every five seconds
//! suffices for them, and other programs change filters, of which the same group reports, often. What is not put back is lost, and the process decides whether it
//! goes on without it. Each finding is a [`Drift`]: it goes into the log here, and into the
//! process's own answers and figures.
//!
//! Order of calls: [`Watch::new`] when the changes are made, then [`Watch::look`] when
//! [`Watch::sockets`] become readable and at least every [`LOOK_EVERY`]. Where a second process
//! serves as another user, the process that stays root looks, through a [`Keeper`], and the
//! serving process reads the findings from [`Told`].

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use netlink_packet_route::AddressFamily;
use serde::{Deserialize, Serialize};
use strum::VariantNames as _;
use wakeai_units::Instant;

use crate::change::{Change, FileId, OtherChange, Stage};
use crate::clock::since_boot;
use crate::lease::Lease;
use crate::namespace::Namespace;
use crate::netlink::Reports;
use crate::packet_rules::{self, PacketRules};
use crate::policy;
use crate::settings::Settings;
use crate::undo::within;
use crate::{departures, route, routing, sysctl};

/// The longest time between two looks at everything.
pub const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How often a change is put back within [`WINDOW`].
const MOST_PUT_BACK: usize = 3;
const WINDOW: Duration = Duration::from_mins(10);

/// Looks after the changes of the kinds that other crates make. A closure stands for a process that has
/// one such change, which is never put back.
pub trait WatchOthers {
    /// Whether the change is in force.
    ///
    /// # Errors
    ///
    /// What was found instead.
    fn holds(&self, change: &OtherChange) -> Result<(), String>;

    /// Makes the change again.
    ///
    /// # Errors
    ///
    /// Where that is not possible.
    fn put_back(&self, _: &OtherChange) -> io::Result<()> {
        Ok(())
    }

    /// Takes back what must not stay in force while the serving process hangs. The supervising process
    /// ([`crate::serve_apart`]) calls this once per second.
    fn take_back(&self) {}
}

impl<F: Fn() -> Result<(), String>> WatchOthers for F {
    fn holds(&self, _: &OtherChange) -> Result<(), String> {
        self()
    }
}

/// A change that did not hold any more when it was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drift {
    /// The change.
    pub change: Change,
    /// What was found in its place.
    pub found: String,
    /// What was done.
    pub outcome: Outcome,
}

/// What was done about a [`Drift`].
#[derive(
    Clone, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames,
)]
#[serde(rename_all = "snake_case", tag = "outcome", content = "why")]
#[strum(serialize_all = "snake_case")]
pub enum Outcome {
    /// The change was made again, and holds.
    PutBack,
    /// The change could not be made again, for this reason; it is tried again.
    Waits(String),
    /// The change is not made again, for this reason.
    Lost(String),
}

impl Outcome {
    /// Its name, for labels.
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PutBack => f.write_str("put back"),
            Self::Waits(why) => write!(f, "not put back yet ({why})"),
            Self::Lost(why) => write!(f, "not put back: {why}"),
        }
    }
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: found {}: {}", self.change.what(), self.found, self.outcome)
    }
}

/// The findings since the start of a process, for its answers and figures.
#[derive(Debug, Default)]
pub struct Drifts {
    counts: BTreeMap<&'static str, u64>,
    last: VecDeque<(Instant, Drift)>,
}

/// How many findings are kept.
const KEPT: usize = 8;

impl Drifts {
    /// Adds a finding.
    pub fn add(&mut self, drift: Drift) {
        let count = self.counts.entry(drift.outcome.name()).or_default();
        *count = count.saturating_add(1);
        self.last.truncate(KEPT - 1);
        self.last.push_front((since_boot(), drift));
    }

    /// The number of findings with each outcome.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Outcome::VARIANTS.iter().map(|name| (*name, self.counts.get(name).copied().unwrap_or(0)))
    }

    /// The last findings and their ages, the newest first.
    pub fn last(&self) -> impl Iterator<Item = (Duration, &Drift)> {
        self.last.iter().map(|(at, drift)| (elapsed(*at), drift))
    }
}

fn elapsed(since: Instant) -> Duration {
    since_boot().saturating_since(since).into()
}

/// Looks whether the changes of a lease still hold.
#[derive(Debug)]
pub struct Watch {
    reports: Reports,
    looked: Option<Instant>,
    items: Vec<Item>,
}

#[derive(Debug)]
struct Item {
    change: Change,
    before: Baseline,
    put_back: VecDeque<Instant>,
    /// What was found at the last look, and the name of the outcome; `None` where the change held.
    told: Option<(String, &'static str)>,
}

/// What a change consisted of at the first look, as far as its record does not say so.
#[derive(Debug)]
enum Baseline {
    Recorded,
    PacketRules(Option<PacketRules>),
    LocalRoute(Vec<(AddressFamily, Vec<String>)>),
    /// The settings of a namespace, the reports of changes in it, and whether one has come.
    Settings(Settings, Reports, AtomicBool),
}

impl Watch {
    /// Watches what the lease has recorded, in the calling thread's network namespace.
    pub fn new(lease: &Lease) -> Self {
        let mut watch = Self { reports: Reports::open(), looked: None, items: Vec::new() };
        watch.follow(lease);
        watch
    }

    /// The sockets that become readable when a look is due before [`LOOK_EVERY`] is over.
    pub fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.reports.sockets()
    }

    /// Makes a look due, whatever the kernel has reported.
    pub fn make_due(&mut self) {
        self.looked = None;
    }

    /// Looks, where a look is due, and puts back what may be put back. The findings are logged.
    pub fn look(&mut self, lease: &Lease, others: &dyn WatchOthers) -> Vec<Drift> {
        let is_due = self.looked.is_none_or(|looked| elapsed(looked) >= LOOK_EVERY);
        let inside = |item: &Item| match &item.before {
            Baseline::Settings(_, reports, changed) => {
                let has_come = reports.have_come();
                changed.fetch_or(has_come, Ordering::Relaxed);
                has_come
            }
            _ => false,
        };
        let any = self.items.iter().fold(self.reports.have_come(), |any, item| any | inside(item));
        if !any && !is_due {
            return Vec::new();
        }
        self.looked = Some(since_boot());
        self.follow(lease);
        let mut drifts: Vec<_> = look_at_record(lease).into_iter().collect();
        drifts.extend(self.items.iter_mut().filter_map(|item| item.look(others)));
        drifts
    }

    /// Takes in what was recorded since, and drops what was undone.
    fn follow(&mut self, lease: &Lease) {
        let changes = lease.changes();
        self.items.retain(|item| changes.contains(&item.change));
        for change in changes {
            if !self.items.iter().any(|item| item.change == change) {
                let before = baseline(&change);
                self.items.push(Item { change, before, put_back: VecDeque::new(), told: None });
            }
        }
    }
}

/// The lease itself is a file, which another program can remove. Without it no other command would
/// undo the changes of this process.
fn look_at_record(lease: &Lease) -> Option<Drift> {
    let path = lease.path();
    if path.exists() {
        return None;
    }
    let outcome = match lease.write_again() {
        Ok(()) => Outcome::PutBack,
        Err(error) => Outcome::Waits(error.to_string()),
    };
    let change = Change::Other(OtherChange {
        name: "lease".to_owned(),
        what: format!("file {}", path.display()),
        stage: Stage::Rest,
        details: String::new(),
    });
    let drift = Drift { change, found: "no such file".to_owned(), outcome };
    log(&drift);
    Some(drift)
}

fn baseline(change: &Change) -> Baseline {
    match change {
        Change::PacketRules { netns, table } => {
            let read = within(*netns, || packet_rules::read(table));
            Baseline::PacketRules(read.and_then(Result::ok).flatten())
        }
        Change::LocalRoute { netns, mark, table } => {
            let read = || {
                let of = |family| Ok((family, policy::policy(family, *mark, *table)?.ahead));
                policy::families().into_iter().map(of).collect::<io::Result<Vec<_>>>()
            };
            Baseline::LocalRoute(within(*netns, read).and_then(Result::ok).unwrap_or_default())
        }
        Change::Namespace { made: Some(made), .. } => {
            let read = || Ok((Reports::of_settings(), Settings::read()?));
            let read = within(*made, read).and_then(Result::ok);
            read.map_or(Baseline::Recorded, |(reports, now)| {
                Baseline::Settings(now, reports, AtomicBool::new(false))
            })
        }
        _ => Baseline::Recorded,
    }
}

impl Item {
    fn look(&mut self, others: &dyn WatchOthers) -> Option<Drift> {
        let standing = match standing(&self.change, &self.before, others) {
            Ok(standing) => standing,
            Err(error) => {
                tracing::debug!(change = %self.change, %error, "cannot be looked at");
                return None;
            }
        };
        let Some(found) = standing else {
            if self.told.take().is_some() {
                tracing::info!(change = self.change.what(), "holds again");
            }
            return None;
        };
        let outcome = self.mend(&found, others);
        let now = (outcome != Outcome::PutBack).then(|| (found.clone(), outcome.name()));
        let is_known = now.is_some() && now == self.told;
        self.told = now;
        if is_known {
            return None; // it was told when it was found
        }
        let drift = Drift { change: self.change.clone(), found, outcome };
        log(&drift);
        Some(drift)
    }

    /// Puts the change back, where that is allowed.
    fn mend(&mut self, found: &str, others: &dyn WatchOthers) -> Outcome {
        if let Some(why) = why_never(&self.change) {
            return Outcome::Lost(why.to_owned());
        }
        let is_old = |at: &Instant| elapsed(*at) > WINDOW;
        while self.put_back.front().is_some_and(is_old) {
            self.put_back.pop_front();
        }
        if self.put_back.len() >= MOST_PUT_BACK {
            return Outcome::Lost("it was put back three times within ten minutes".to_owned());
        }
        match put_back(&self.change, others) {
            // What the change is about, such as a route that comes and goes with a link, is not there.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Outcome::Waits(error.to_string());
            }
            Err(error) if is_taken(&self.change, &error) => {
                return Outcome::Lost("another program has chosen it".to_owned());
            }
            Err(error) => {
                self.put_back.push_back(since_boot());
                return Outcome::Waits(error.to_string());
            }
            Ok(()) => self.put_back.push_back(since_boot()),
        }
        match standing(&self.change, &self.before, others) {
            Ok(None) => Outcome::PutBack,
            Ok(Some(still)) if still == found => Outcome::Waits("it did not help".to_owned()),
            Ok(Some(still)) => Outcome::Waits(format!("now found {still}")),
            Err(error) => Outcome::Waits(error.to_string()),
        }
    }
}

fn log(drift: &Drift) {
    let what = "another program has changed what this process holds";
    if let Outcome::Lost(_) = drift.outcome {
        tracing::error!("{what}: {drift}");
    } else {
        tracing::warn!("{what}: {drift}");
    }
}

/// Why a change is never put back; `None` where it may be.
fn why_never(change: &Change) -> Option<&'static str> {
    match change {
        Change::PacketRules { .. } => {
            Some("a table of the firewall is not put back against a person")
        }
        Change::Namespace { .. } => Some("what was measured in it would not be one network"),
        Change::Directory { .. } => Some("its contents are gone with it"),
        Change::Socket { spare: None, .. } => Some("it has no second name"),
        Change::Other(other) if other.stage == Stage::Shared => {
            Some("they are shared with other processes")
        }
        _ => None,
    }
}

/// Whether another program has taken the place of the change.
fn is_taken(change: &Change, error: &io::Error) -> bool {
    matches!(change, Change::QueueingDiscipline { .. })
        && error.kind() == io::ErrorKind::AlreadyExists
}

/// What was found in place of the change; `None` where the change holds.
fn standing(
    change: &Change,
    before: &Baseline,
    others: &dyn WatchOthers,
) -> io::Result<Option<String>> {
    let gone = || Some(Ok(Some("its network namespace is gone".to_owned())));
    let inside = match change {
        Change::Socket { path, made: Some(made), .. }
        | Change::Directory { path, made: Some(made) } => return file(path, made),
        Change::Namespace { name, made: Some(made) } => {
            let found = Namespace::open(name).ok();
            return match found {
                Some(found) if found.id() == *made => settings(&found, before),
                Some(_) => Ok(Some("another namespace of that name".to_owned())),
                None => Ok(Some("no namespace of that name".to_owned())),
            };
        }
        Change::Other(other) => return Ok(others.holds(other).err()),
        Change::Sysctl { netns, name, ours, .. } => {
            within(*netns, || Ok(other_value(change, ours, &sysctl::read_sysctl(name)?)))
        }
        Change::Route { netns, route, ours, .. } => within(*netns, || {
            Ok(match route::with_key(route)? {
                Some(found) => {
                    let now = found.algorithm();
                    other_value(change, ours, now.as_deref().unwrap_or("none"))
                }
                None => Some("no such route".to_owned()),
            })
        }),
        Change::PacketRules { netns, table } => within(*netns, || packet_table(table, before)),
        Change::LocalRoute { netns, mark, table } => {
            within(*netns, || local_route(*mark, *table, before))
        }
        Change::QueueingDiscipline { netns, interface, handle, .. } => {
            within(*netns, || departures::other_root(interface, *handle))
        }
        // The owners of processes look after them; the others are not made yet.
        Change::Process(_)
        | Change::Socket { .. }
        | Change::Directory { .. }
        | Change::Namespace { .. } => return Ok(None),
    };
    inside.or_else(gone).unwrap_or(Ok(None))
}

/// The value `now` of a setting, if it is neither `ours` nor that of another living process of Wakeai: a
/// later `wakeai use`, say, in the namespace of an agent. Its change is no drift.
fn other_value(change: &Change, ours: &str, now: &str) -> Option<String> {
    let sets_it = |of: &Change| match (of, change) {
        (Change::Sysctl { netns, name, ours, .. }, Change::Sysctl { netns: at, name: of, .. }) => {
            (netns, name, ours.as_str()) == (at, of, now)
        }
        (Change::Route { netns, route, ours, .. }, Change::Route { netns: at, route: of, .. }) => {
            (netns, route, ours.as_str()) == (at, of, now)
        }
        _ => false,
    };
    let own = std::process::id();
    let is_of_another = || {
        let others = crate::holders().unwrap_or_default().into_iter();
        let mut others = others.filter(|holder| holder.process.pid.cast_unsigned() != own);
        others.any(|holder| holder.changes.iter().any(sets_it))
    };
    (now != ours && !is_of_another()).then(|| format!("{now}, expected {ours}"))
}

fn file(path: &Path, made: &FileId) -> io::Result<Option<String>> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Ok(Some("nothing there".to_owned()))
        }
        Err(error) => Err(error),
        Ok(found) if FileId::of(&found) == *made => Ok(None),
        Ok(found) => Ok(Some(format!("another {} there", crate::remove::kind(&found)))),
    }
}

fn settings(namespace: &Namespace, before: &Baseline) -> io::Result<Option<String>> {
    let Baseline::Settings(before, _, changed) = before else { return Ok(None) };
    if !changed.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let now = namespace.run(Settings::read).map_err(io::Error::other)??;
    let difference = before.difference(&now);
    changed.store(difference.is_some(), Ordering::Relaxed);
    Ok(difference)
}

fn packet_table(table: &str, before: &Baseline) -> io::Result<Option<String>> {
    let Baseline::PacketRules(before) = before else { return Ok(None) };
    let differs = |now: &Option<_>| before.is_some() && now != before;
    let mut now = packet_rules::read(table)?;
    if differs(&now) {
        now = packet_rules::read(table)?; // another program may have changed it while it was listed
    }
    Ok(match now {
        None => Some("no such table".to_owned()),
        Some(_) if differs(&now) => Some("other chains or rules in it than were made".to_owned()),
        Some(_) => None,
    })
}

fn local_route(mark: u32, table: u32, before: &Baseline) -> io::Result<Option<String>> {
    let Baseline::LocalRoute(before) = before else { return Ok(None) };
    for (family, known) in before {
        let now = policy::policy(*family, mark, table)?;
        let version = if *family == AddressFamily::Inet { "IPv4" } else { "IPv6" };
        let new = now.ahead.into_iter().find(|rule| !known.contains(rule));
        let found = match (now.has_rule, new) {
            (false, _) => "no rule for the mark".to_owned(),
            (true, Some(rule)) => format!("a rule of higher priority, \"{rule}\""),
            (true, None) if !now.delivers => format!("no local route in table {table}"),
            (true, None) => continue,
        };
        return Ok(Some(format!("{found} ({version})")));
    }
    Ok(None)
}

/// Makes the change again.
fn put_back(change: &Change, others: &dyn WatchOthers) -> io::Result<()> {
    let gone = || io::Error::new(io::ErrorKind::NotFound, "its network namespace is gone");
    let done = match change {
        Change::Sysctl { netns, name, ours, .. } => within(*netns, || sysctl::write(name, ours)),
        Change::Route { netns, route, ours, .. } => within(*netns, || route::put_back(route, ours)),
        Change::LocalRoute { netns, mark, table } => {
            within(*netns, || routing::make_local_route_again(*mark, *table))
        }
        Change::QueueingDiscipline { netns, interface, handle, .. } => {
            within(*netns, || departures::put_back(interface, *handle))
        }
        Change::Socket { path, spare: Some(spare), .. } => return fs::hard_link(spare, path),
        Change::Other(other) => return others.put_back(other),
        _ => return Ok(()),
    };
    done.ok_or_else(gone)?
}

/// The end of the channel at which the serving process reads what was found.
#[derive(Debug)]
pub struct Told(UnixDatagram);

/// A channel from the process that stays root to the serving process. Nothing comes back through it.
///
/// # Errors
///
/// Where the kernel refuses.
pub(crate) fn channel() -> io::Result<(UnixDatagram, Told)> {
    let (to, from) = UnixDatagram::pair()?;
    to.set_nonblocking(true)?;
    from.set_nonblocking(true)?;
    to.shutdown(std::net::Shutdown::Read)?;
    Ok((to, Told(from)))
}

impl Told {
    /// What was found since the last call.
    pub fn take(&self) -> Vec<Drift> {
        let mut drifts = Vec::new();
        let mut datagram = vec![0; 1 << 16];
        while let Ok(length) = self.0.recv(&mut datagram) {
            match serde_json::from_slice(&datagram[..length]) {
                Ok(drift) => drifts.push(drift),
                Err(error) => tracing::debug!(%error, "a finding could not be read"),
            }
            if length == 0 {
                break; // the other process has ended
            }
        }
        drifts
    }
}

/// A watch in the process that stays root, for [`crate::serve_apart`].
pub(crate) struct Keeper<'a> {
    pub(crate) watch: Watch,
    pub(crate) lease: &'a Lease,
    pub(crate) others: &'a dyn WatchOthers,
    /// The end of the channel at which the serving process does not read.
    pub(crate) to: UnixDatagram,
}

impl Keeper<'_> {
    /// Looks, and tells the serving process what was found. Where that does not read, the log has it.
    pub(crate) fn look(&mut self) {
        for drift in self.watch.look(self.lease, self.others) {
            let told = serde_json::to_vec(&drift).map_err(io::Error::from);
            if let Err(error) = told.and_then(|told| self.to.send(&told)) {
                tracing::debug!(%error, "the serving process was not told");
            }
        }
    }
}
