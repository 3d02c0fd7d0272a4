//! `[[stations]]`.

use super::access_point::{self, Read};
use super::announces;
use super::fields::Fields;
use super::names::{self, Names};
use super::radio::phy_rate;
use super::{FASTEST, SLOWEST, delay, queue};
use crate::experiment::{HostQueue, StationGroup, TcpProfile};
use crate::radio::{Medium, Standard, StationRadio, Wifi};
use wakeai_units::Duration;

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
        Some(Medium::Wifi(wifi)) => radio(&mut fields, access_point, Some(wifi)),
        None => radio(&mut fields, None, None),
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
    let announces = announces::read(&mut fields);
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

fn radio(
    fields: &mut Fields<'_>,
    access_point: Option<&Read>,
    wifi: Option<&Wifi>,
) -> (Option<StationRadio>, u32) {
    // Without a known access point the keys are read as for the most permissive standard.
    let of_access_point = wifi.map_or(Standard::Ax, |wifi| wifi.standard);
    let own = fields.get("standard").and_then(|field| {
        let standard = access_point::standard(&field)?;
        let spoken = spoken_by(of_access_point);
        if wifi.is_some() && !spoken.contains(&standard) {
            let names: Vec<String> = spoken.iter().map(|s| format!("\"{}\"", s.name())).collect();
            field.refuse(format!(
                "{} with an access point of {}",
                names.join(", "),
                of_access_point.name()
            ));
        }
        Some(standard)
    });
    let standard = own.unwrap_or(of_access_point);
    let shared = access_point.map(|read| read.keys).unwrap_or_default();
    let rate = fields.get("rate").zip(access_point);
    let rate = rate.and_then(|(field, read)| phy_rate(&field, standard, read.rates(standard)));
    let contention = shared.contention_of(fields, standard);
    let losses = fields.get("frame_error_rate").and_then(|field| field.parts_per_million());
    let mut radio = shared.resolve(standard, of_access_point, contention);
    radio.rate = rate.unwrap_or(radio.rate);
    (Some(radio), losses.unwrap_or(0))
}

/// The standards of stations that an access point of `standard` serves. 802.11g is alone: n and
/// later are at 5 GHz here.
fn spoken_by(standard: Standard) -> &'static [Standard] {
    match standard {
        Standard::A => &[Standard::A],
        Standard::G => &[Standard::G],
        Standard::N => &[Standard::A, Standard::N],
        Standard::Ac => &[Standard::A, Standard::N, Standard::Ac],
        Standard::Ax => &[Standard::A, Standard::N, Standard::Ac, Standard::Ax],
    }
}

fn refuse_radio_keys(fields: &mut Fields<'_>) {
    for key in ["standard", "rate", "contention", "frame_error_rate"] {
        if let Some(field) = fields.get(key) {
            field.refuse("nothing on a cellular link: its rates are the access point's");
        }
    }
}
