//! `[[stations]]`.

use wakeai_units::{Duration, Rate};
use wakeai_wifi::{Bss, Standard, StationRadio};

use super::access_point::Read;
use super::fields::{Field, Fields};
use super::names::{self, Names};
use super::radio::{self, ContentionKeys, phy_rate};
use super::{FASTEST, SLOWEST, delay, queue};
use crate::experiment::{Announces, HostQueue, StationGroup, TcpProfile, Told};
use crate::radio::Medium;

/// Stations in a group and in all groups together.
const MOST: u32 = 10_000;

pub(super) fn read(fields: &mut Fields<'_>, access_point: Option<&Read>) -> Vec<StationGroup> {
    let tables = match fields.require("stations", "at least one [[stations]]") {
        Some(field) => field.tables(MOST as usize),
        None => return Vec::new(),
    };
    let problems = fields.problems;
    let mut places = Vec::new();
    let mut groups = Vec::new();
    for table in tables {
        let place = (table.origin, table.path.clone());
        if let Some(group) = group(table, access_point) {
            groups.push(group);
            places.push(place);
        }
    }
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
            problems.add(
                *origin,
                format!("{path}.name"),
                found,
                "names that are unique, groups \
                and numbered members (tablet1, tablet2, …) together",
            );
        }
    }
    groups
}

fn group(mut fields: Fields<'_>, access_point: Option<&Read>) -> Option<StationGroup> {
    let name = fields.require("name", names::ALLOWED).and_then(|field| {
        let name = field.text(names::ALLOWED)?;
        if !names::is_name(name) {
            field.refuse(names::ALLOWED);
            return None;
        }
        Some(name.to_owned())
    });
    let count = fields.get("count").and_then(|field| field.integer(1..=MOST));
    let medium = access_point.map(|read| &read.access_point.medium);
    let is_cellular = matches!(medium, Some(Medium::Cellular(_)));
    let (radio, frame_error_ppm) = match medium {
        Some(Medium::Cellular(_)) => {
            refuse_radio_keys(&mut fields);
            (None, 0)
        }
        Some(Medium::Wifi(bss)) => station_radio(&mut fields, access_point, Some(bss)),
        None => station_radio(&mut fields, None, None),
    };
    let queue = fields.get("queue").and_then(|field| queue(&field));
    let host_queue = fields.get("host_queue");
    let wired_delay = fields.get("wired_delay").and_then(|field| delay(&field));
    let max = fields.get("max").and_then(|field| field.rate(SLOWEST..=FASTEST));
    let profiles = [("linux", TcpProfile::Linux), ("classic", TcpProfile::Classic)];
    let tcp = fields.get("tcp").and_then(|field| field.choice(&profiles));
    let host_queue = host_queue.and_then(|field| {
        let kinds = [HostQueue::Fifo, HostQueue::Tsq, HostQueue::Mac80211];
        let host_queue = field.choice(&kinds.map(|kind| (kind.name(), kind)))?;
        if host_queue != HostQueue::Fifo && tcp == Some(TcpProfile::Classic) {
            field.refuse("\"fifo\" with `tcp = \"classic\"`, which has no TCP small queues");
        } else if host_queue == HostQueue::Mac80211 && is_cellular {
            field.refuse("\"fifo\", \"tsq\" on a cellular link, whose modem has no mac80211");
        }
        Some(host_queue)
    });
    let host_queue = host_queue.unwrap_or(HostQueue::Fifo);
    let proxy = fields.get("proxy").and_then(|field| {
        let proxy = field.boolean()?;
        if proxy && tcp == Some(TcpProfile::Classic) {
            field.refuse("false with `tcp = \"classic\"`, which is the simulator's own TCP");
        }
        Some(proxy)
    });
    let announces = announces(&mut fields);
    fields.finish();
    Some(StationGroup {
        name: name?,
        count: count.unwrap_or(1),
        radio,
        queue: queue.unwrap_or(host_queue.default_packets()),
        host_queue,
        frame_error_ppm,
        wired_delay: wired_delay.unwrap_or(Duration::ZERO),
        max,
        tcp: tcp.unwrap_or(TcpProfile::Linux),
        proxy: proxy.unwrap_or(false),
        announces,
    })
}

fn station_radio(
    fields: &mut Fields<'_>,
    access_point: Option<&Read>,
    bss: Option<&Bss>,
) -> (Option<StationRadio>, u32) {
    let own = fields.get("standard").and_then(|field| {
        let standard = radio::standard(&field)?;
        if let Some(bss) = bss.filter(|bss| !standard.can_join(bss.standard)) {
            let can_join = Standard::ALL.into_iter().filter(|one| one.can_join(bss.standard));
            let names: Vec<String> = can_join.map(|one| format!("\"{one}\"")).collect();
            field.refuse(format!("{} with an access point of {}", names.join(", "), bss.standard));
        }
        Some(standard)
    });
    // Without a known access point the keys are read as for the most permissive standard.
    let permissive = Bss::new(Standard::Ax);
    let known = bss.unwrap_or(&permissive);
    let standard = own.unwrap_or(known.standard);
    let rate = fields.get("rate").zip(bss);
    let rate = rate.and_then(|(field, bss)| phy_rate(&field, standard, bss));
    let outer = access_point.map_or(ContentionKeys::default(), |read| read.contention);
    let contention = ContentionKeys::read(fields, standard, outer).resolve(standard);
    let losses = fields.get("frame_error_rate").and_then(|field| field.parts_per_million());
    let rate = rate.unwrap_or_else(|| known.default_rate(standard));
    (Some(StationRadio { standard, rate, contention }), losses.unwrap_or(0))
}

fn refuse_radio_keys(fields: &mut Fields<'_>) {
    for key in ["standard", "rate", "contention", "frame_error_rate"] {
        if let Some(field) = fields.get(key) {
            field.refuse("nothing on a cellular link: its rates are the access point's");
        }
    }
}

/// The presence format holds a span of up to 71 minutes.
const MAX_SPAN: Duration = Duration::from_secs(3_600);
const ALLOWED_RATE: &str = "a rate from 0bit/s to 1000Gbit/s, or \"unknown\"";

/// `announces`: the values that a station's agent announces instead of the true ones.
fn announces(fields: &mut Fields<'_>) -> Announces {
    let Some(mut fields) = fields.get("announces").and_then(|field| field.table()) else {
        return Announces::default();
    };
    let span = |field: Field<'_>| field.duration(Duration::ZERO..=MAX_SPAN);
    let announces = Announces {
        sending: fields.get("sending").and_then(|field| field.boolean()),
        rate: fields.get("rate").and_then(|field| field.rate(Rate::ZERO..=FASTEST)),
        max_rate: fields.get("max_rate").and_then(|field| rate_or_unknown(&field)),
        link_rate: fields.get("link_rate").and_then(|field| rate_or_unknown(&field)),
        min_rtt: fields.get("min_rtt").and_then(span),
        growth: fields.get("growth").and_then(span),
        reservation: fields.get("reservation").and_then(|field| field.parts_per_million()),
    };
    fields.finish();
    announces
}

/// A rate that an agent may also say to not know.
fn rate_or_unknown(field: &Field<'_>) -> Option<Told> {
    let text = field.text(ALLOWED_RATE)?;
    if text == "unknown" {
        return Some(Told::Unknown);
    }
    let rate = text.parse().ok().filter(|rate| *rate <= FASTEST);
    if rate.is_none() {
        field.refuse(ALLOWED_RATE);
    }
    rate.map(Told::Rate)
}
