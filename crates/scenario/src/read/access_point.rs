//! `[access_point]`.

use wakeai_units::{Bytes, Rate};

use super::fields::{Field, Fields};
use super::radio::{ContentionKeys, RadioKeys, legacy_rate};
use super::{FASTEST, LONGEST_QUEUE, SLOWEST};
use crate::radio::{
    AccessPoint, Cellular, Medium, Protection, QueueDiscipline, Scheduler, Standard, Wifi,
};

/// The access point, and what it says about its stations' radios.
pub(super) struct Read {
    pub(super) access_point: AccessPoint,
    pub(super) keys: RadioKeys,
    /// The PHY rates of stations of each standard; none on a cellular link.
    rates: [Vec<Rate>; 5],
}

impl Read {
    /// The PHY rates of stations of `standard`, ascending.
    pub(super) fn rates(&self, standard: Standard) -> &[Rate] {
        &self.rates[standard as usize]
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Wifi,
    Cellular,
}

pub(super) fn read(fields: &mut Fields<'_>) -> Option<Read> {
    let field = fields.require("access_point", "a table with at least `standard`")?;
    let mut fields = field.table()?;
    let kinds = [("wifi", Kind::Wifi), ("cellular", Kind::Cellular)];
    let kind = fields.get("medium").and_then(|field| field.choice(&kinds));
    let buffer = fields.get("buffer").and_then(|field| field.integer(1..=LONGEST_QUEUE));
    let buffer = buffer.unwrap_or(300);
    let read = match kind.unwrap_or(Kind::Wifi) {
        Kind::Wifi => wifi(&mut fields, buffer),
        Kind::Cellular => cellular(&mut fields, buffer),
    };
    fields.finish();
    read
}

pub(super) fn standard(field: &Field<'_>) -> Option<Standard> {
    field.choice(&Standard::ALL.map(|standard| (standard.name(), standard)))
}

fn wifi(fields: &mut Fields<'_>, buffer: u32) -> Option<Read> {
    let names = Standard::ALL.map(|standard| format!("\"{}\"", standard.name())).join(", ");
    let standard = fields.require("standard", &names).and_then(|field| standard(&field));
    let queues = [("fifo", QueueDiscipline::Fifo), ("fq", QueueDiscipline::Fq)];
    let queue = fields.get("queue").and_then(|field| field.choice(&queues));
    let protections = [
        ("none", Protection::None),
        ("cts-to-self", Protection::CtsToSelf),
        ("rts-cts", Protection::RtsCts),
    ];
    let protection = fields.get("protection").and_then(|field| field.choice(&protections));
    let longest = Bytes::new(6_500_631);
    let rts_threshold = fields.get("rts_threshold").and_then(|f| f.size(Bytes::ZERO..=longest));
    let basic_rate = fields.get("basic_rate").and_then(|field| legacy_rate(&field));
    // Without a known standard the others are read as for the most permissive one.
    let assumed = standard.unwrap_or(Standard::Ax);
    let keys = RadioKeys::read(fields, assumed);
    let station = keys.resolve(standard?, standard?, ContentionKeys::default());
    let wifi = Wifi {
        standard: standard?,
        queue: queue.unwrap_or(QueueDiscipline::Fifo),
        protection: protection.unwrap_or(Protection::None),
        rts_threshold: rts_threshold.unwrap_or(Bytes::new(500)),
        basic_rate: basic_rate.unwrap_or(Rate::from_mbps(6)),
        control_rate: keys.control_rate(),
        retry_limit: station.retry_limit,
        contention: station.contention,
        station,
    };
    Some(Read {
        access_point: AccessPoint { buffer, medium: Medium::Wifi(wifi) },
        keys,
        rates: keys.rates(standard?),
    })
}

fn cellular(fields: &mut Fields<'_>, buffer: u32) -> Option<Read> {
    let allowed = "a rate such as \"50Mbit/s\"";
    let uplink = fields.require("uplink", allowed).and_then(|f| f.rate(SLOWEST..=FASTEST));
    let downlink = fields.require("downlink", allowed).and_then(|f| f.rate(SLOWEST..=FASTEST));
    let schedulers = [
        ("proportional-fair", Scheduler::ProportionalFair),
        ("round-robin", Scheduler::RoundRobin),
    ];
    let scheduler = fields.get("scheduler").and_then(|field| field.choice(&schedulers));
    let cellular = Cellular {
        uplink: uplink?,
        downlink: downlink?,
        scheduler: scheduler.unwrap_or(Scheduler::ProportionalFair),
    };
    let access_point = AccessPoint { buffer, medium: Medium::Cellular(cellular) };
    Some(Read { access_point, keys: RadioKeys::default(), rates: Default::default() })
}
