//! Reads `[[stations]]`.

use wakeai_units::{Bytes, Duration, Rate};
use wakeai_wifi::{Bss, Standard, StationRadio};

use super::names::{self, Names};
use super::radio::{self, ContentionKeys, Read, phy_rate};
use super::{AccessPoints, FASTEST, delay, queue, rate, with_places};
use crate::experiment::{
    AnnouncedRate, Announces, BssSpec, HostQueue, Medium, Stack, StationGroup, TcpProfile,
};
use wakeai_settings::{Field, Fields, quoted};

/// The largest number of stations in a group, and in all groups together.
const MOST: u32 = 10_000;

pub(super) fn read(fields: &mut Fields<'_>, access_points: &AccessPoints) -> Vec<StationGroup> {
    let field = fields.require("stations", "at least one [[stations]]");
    let tables = field.map(|field| field.tables(MOST as usize)).unwrap_or_default();
    let problems = fields.problems;
    let (places, groups) = with_places(tables, |table| group(table, access_points));
    let total: u64 = groups.iter().map(|group| u64::from(group.count)).sum();
    if total > u64::from(MOST) {
        let origin = places.last().map_or(fields.origin, |(origin, _)| *origin);
        let allowed = format!("at most {MOST} in all groups together");
        problems.add(origin, "stations", format!("{total} stations"), allowed);
    }
    let names = Names::new(&groups);
    for (index, (origin, path)) in places.iter().enumerate() {
        if let Some(name) = names.clash(index) {
            let found = format!("a second station or group named \"{name}\"");
            let allowed = "names that are unique, groups and numbered members (tablet1, tablet2, …) \
                           together";
            problems.add(*origin, format!("{path}.name"), found, allowed);
        }
    }
    groups
}

fn group(mut fields: Fields<'_>, access_points: &AccessPoints) -> Option<StationGroup> {
    let name = fields.require("name", names::ALLOWED);
    let name = name.and_then(|field| field.text_if(names::ALLOWED, wakeai_settings::is_name));
    let count = fields.read_or("count", 1, |field| field.integer(1..=MOST));
    let bss = bss(&mut fields, access_points);
    let access_point = access_points.of(bss.unwrap_or(0));
    let medium = access_point.map(|read| &read.access_point.medium);
    let is_cellular = matches!(medium, Some(Medium::Cellular(_)));
    let hears = fields.read("hears", super::bss::heard);
    let (radio, frame_error_ppm) = match medium {
        Some(Medium::Cellular(_)) => {
            refuse_radio_keys(&mut fields);
            (None, 0)
        }
        Some(Medium::Wifi(bss)) => station_radio(&mut fields, access_point, Some(bss)),
        None => station_radio(&mut fields, None, None),
    };
    let stack = access_points.plain.map_or(Stack::None, |read| read.stack);
    let beside_stack = "nothing beside `access_point.stack`, whose queue is that of Linux";
    let queue = fields.read("queue", |field| {
        if stack.is_linux() {
            field.refuse(beside_stack);
        }
        queue(field)
    });
    let mut host_queue = fields.get("host_queue");
    if let Some(field) = host_queue.take_if(|_| stack.is_linux()) {
        field.refuse(beside_stack);
    }
    let wired_delay = fields.read_or("wired_delay", Duration::ZERO, delay);
    let max = fields.read("max", rate);
    let departure_times = fields.read_or("departure_times", false, Field::boolean);
    let HostKeys { tcp, send_buffer, host_queue, proxy } =
        HostKeys::read(&mut fields, host_queue, is_cellular);
    let host_queue = if stack.is_linux() { HostQueue::Tsq } else { host_queue };
    let announces = announces(&mut fields);
    fields.finish();
    Some(StationGroup {
        name: name?.to_owned(),
        count,
        bss: bss?,
        hears,
        radio,
        queue: queue.unwrap_or(host_queue.default_packets()),
        host_queue,
        departure_times,
        frame_error_ppm,
        wired_delay,
        max,
        tcp,
        send_buffer,
        proxy,
        announces,
    })
}

/// What the keys of a station's host say.
struct HostKeys {
    tcp: TcpProfile,
    send_buffer: Option<u32>,
    host_queue: HostQueue,
    proxy: bool,
}

impl HostKeys {
    /// Reads the keys; `host_queue` is the field of that name.
    fn read(fields: &mut Fields<'_>, host_queue: Option<Field<'_>>, is_cellular: bool) -> Self {
        let profiles = [
            ("linux", TcpProfile::Linux),
            ("linux-3.4", TcpProfile::Linux34),
            ("classic", TcpProfile::Classic),
        ];
        let tcp = fields.read_or("tcp", TcpProfile::Linux, |field| field.choice(&profiles));
        let send_buffer = fields.read("send_buffer", |field| {
            Some(field.size(Bytes::new(16 << 10)..=Bytes::new(1 << 30))?.get() as u32)
        });
        let host_queue = host_queue.and_then(|field| {
            let kinds = [HostQueue::Fifo, HostQueue::Tsq, HostQueue::Mac80211];
            let host_queue = field.choice(&kinds.map(|kind| (kind.into(), kind)))?;
            if host_queue != HostQueue::Fifo && tcp != TcpProfile::Linux {
                field.refuse(
                    "\"fifo\" with `tcp = \"classic\"` or `\"linux-3.4\"`, which have no TCP small queues",
                );
            } else if host_queue == HostQueue::Mac80211 && is_cellular {
                field.refuse("\"fifo\", \"tsq\" on a cellular link, whose modem has no mac80211");
            }
            Some(host_queue)
        });
        let proxy = fields.read_or("proxy", false, |field| {
            let proxy = field.boolean()?;
            if proxy && tcp != TcpProfile::Linux {
                field.refuse(
                    "false with `tcp = \"classic\"` or `\"linux-3.4\"`, which are the simulator's own TCP",
                );
            }
            Some(proxy)
        });
        Self { tcp, send_buffer, host_queue: host_queue.unwrap_or(HostQueue::Fifo), proxy }
    }
}

/// The index of the BSS that the group names. Without `[[bss]]` there is one, which has no name.
fn bss(fields: &mut Fields<'_>, access_points: &AccessPoints) -> Option<usize> {
    let specs = &access_points.bsss;
    let names = || quoted(specs.iter().flatten().map(|(spec, _)| &spec.name));
    let field = match fields.get("bss") {
        Some(field) => field,
        None if specs.len() < 2 => return Some(0),
        None => {
            fields.require("bss", &format!("the name of a BSS: {}", names()));
            return None;
        }
    };
    let named = |name: &str| {
        let is_named = |entry: &Option<(BssSpec, Read)>| {
            entry.as_ref().is_some_and(|(spec, _)| spec.name == name)
        };
        specs.iter().position(is_named)
    };
    let found = field.node.as_str().and_then(named);
    let unreadable = specs.iter().any(Option::is_none);
    if found.is_none() && !unreadable {
        let none = "nothing without [[bss]]".to_owned();
        field.refuse(if specs.is_empty() { none } else { names() });
    }
    found.or(unreadable.then_some(0))
}

fn station_radio(
    fields: &mut Fields<'_>,
    access_point: Option<&Read>,
    bss: Option<&Bss>,
) -> (Option<StationRadio>, u32) {
    let own = fields.read("standard", |field| {
        let standard = radio::standard(field)?;
        if let Some(bss) = bss.filter(|bss| !standard.can_join(bss.standard)) {
            let can_join = Standard::ALL.into_iter().filter(|one| one.can_join(bss.standard));
            let names = quoted(can_join);
            field.refuse(format!("{names} with an access point of {}", bss.standard));
        }
        Some(standard)
    });
    // Without a known access point, the keys are read as for the most permissive standard.
    let permissive = Bss::new(Standard::Ax);
    let known = bss.unwrap_or(&permissive);
    let standard = own.unwrap_or(known.standard);
    let rate = fields.read("rate", |field| phy_rate(field, standard, bss?));
    let outer = access_point.map_or(ContentionKeys::default(), |read| read.contention);
    let contention = ContentionKeys::read(fields, standard, outer).resolve(standard);
    let losses = fields.read_or("frame_error_rate", 0, Field::parts_per_million);
    let rate = rate.unwrap_or_else(|| known.default_rate(standard));
    (Some(StationRadio { standard, rate, contention }), losses)
}

fn refuse_radio_keys(fields: &mut Fields<'_>) {
    for key in ["standard", "rate", "contention", "frame_error_rate", "hears"] {
        if let Some(field) = fields.get(key) {
            field.refuse("nothing on a cellular link: its rates are the access point's");
        }
    }
}

/// The longest time that may be announced. A presence message has room for up to 71 minutes.
const MAX_SPAN: Duration = Duration::from_secs(3_600);

/// Reads `announces`: the values that a station's agent announces instead of the true values.
fn announces(fields: &mut Fields<'_>) -> Announces {
    let Some(mut fields) = fields.read("announces", Field::table) else {
        return Announces::default();
    };
    let span = |field: &Field<'_>| field.duration(Duration::ZERO..=MAX_SPAN);
    let announces = Announces {
        sending: fields.read("sending", Field::boolean),
        rate: fields.read("rate", |field| field.rate(Rate::ZERO..=FASTEST)),
        max_rate: fields.read("max_rate", rate_or_unknown),
        link_rate: fields.read("link_rate", rate_or_unknown),
        min_rtt: fields.read("min_rtt", span),
        growth: fields.read("growth", span),
        reservation: fields.read("reservation", Field::parts_per_million),
    };
    fields.finish();
    announces
}

/// Reads a rate, or the word "unknown" for an agent that does not know the rate.
fn rate_or_unknown(field: &Field<'_>) -> Option<AnnouncedRate> {
    if field.node.as_str() == Some("unknown") {
        return Some(AnnouncedRate::Unknown);
    }
    let rate = field.parsed().filter(|rate| *rate <= FASTEST).map(AnnouncedRate::Rate);
    field.or_refuse(rate, || "a rate from 0bit/s to 1000Gbit/s, or \"unknown\"".to_owned())
}
