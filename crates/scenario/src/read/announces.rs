//! `announces`: what a station's agent says of itself instead of the truth.

use wakeai_units::{Duration, Rate};

use super::FASTEST;
use super::fields::{Field, Fields};
use crate::experiment::{Announces, Told};

/// The presence format holds a span of up to 71 minutes.
const LONGEST: Duration = Duration::from_secs(3_600);
const ALLOWED_RATE: &str = "a rate from 0bit/s to 1000Gbit/s, or \"unknown\"";

pub(super) fn read(fields: &mut Fields<'_>) -> Announces {
    let Some(mut fields) = fields.get("announces").and_then(|field| field.table()) else {
        return Announces::default();
    };
    let span = |field: Field<'_>| field.duration(Duration::ZERO..=LONGEST);
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
