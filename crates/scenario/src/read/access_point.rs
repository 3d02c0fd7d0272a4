//! `[access_point]`.

use wakeai_wifi::{Cell, Scheduler};

use super::fields::Fields;
use super::radio::{self, ContentionKeys};
use super::{FASTEST, LONGEST_QUEUE, SLOWEST};
use crate::radio::{AccessPoint, Medium};

/// The access point, and what it says about its stations' radios.
pub(super) struct Read {
    pub(super) access_point: AccessPoint,
    pub(super) contention: ContentionKeys,
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
        Kind::Wifi => {
            radio::bss(&mut fields).map(|(bss, contention)| (Medium::Wifi(bss), contention))
        }
        Kind::Cellular => {
            cellular(&mut fields).map(|cell| (Medium::Cellular(cell), ContentionKeys::default()))
        }
    };
    fields.finish();
    read.map(|(medium, contention)| Read {
        access_point: AccessPoint { buffer, medium },
        contention,
    })
}

fn cellular(fields: &mut Fields<'_>) -> Option<Cell> {
    let allowed = "a rate such as \"50Mbit/s\"";
    let uplink = fields.require("uplink", allowed).and_then(|f| f.rate(SLOWEST..=FASTEST));
    let downlink = fields.require("downlink", allowed).and_then(|f| f.rate(SLOWEST..=FASTEST));
    let schedulers = [
        ("proportional-fair", Scheduler::ProportionalFair),
        ("round-robin", Scheduler::RoundRobin),
    ];
    let scheduler = fields.get("scheduler").and_then(|field| field.choice(&schedulers));
    Some(Cell { uplink: uplink?, downlink: downlink?, scheduler: scheduler.unwrap_or_default() })
}
