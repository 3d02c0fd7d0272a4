//! What changed between the conditions of an experiment on real machines beside the conditions themselves: signal, PHY rate,
//! access point, channel, and its use by others. Each of them may explain a difference, too.

use std::collections::BTreeMap;

use crate::aggregate::by_condition;
use crate::figures::mean;
use crate::result::{FieldStation, RadioReading, Run};

/// The change of the mean signal from which on it is said: half or double the power.
const SIGNAL_DB: f64 = 3.0;
/// The change of a mean PHY rate from which on it is said, as a part of the first condition's.
const RATE: f64 = 0.15;
/// The change of the others' share of the channel from which on it is said, per cent of the time.
const OTHERS_PERCENT: f64 = 5.0;

/// A figure of a station's air in one run.
type Figure = fn(&FieldStation) -> Option<f64>;

/// Sentences with what changed from the first condition to each other one. Runs are compared by block, and only those that
/// count; what a driver does not tell is not compared.
pub fn between_conditions(runs: &[Run]) -> Vec<String> {
    let conditions = by_condition(runs);
    let Some((base, others)) = conditions.split_first() else { return Vec::new() };
    let mut said = Vec::new();
    for other in others {
        for station in stations(other) {
            let pair = Pair::of(base, other, station);
            said.extend(pair.sentences());
        }
    }
    said
}

/// The names of all stations and of the server.
fn stations<'a>(runs: &[&'a Run]) -> Vec<&'a str> {
    let first = runs.first().and_then(|run| run.field.as_ref());
    first.into_iter().flat_map(|field| &field.stations).map(|one| one.station.as_str()).collect()
}

/// A station in two conditions, in the blocks that have both.
struct Pair<'a> {
    station: &'a str,
    names: [&'a str; 2],
    blocks: Vec<[&'a FieldStation; 2]>,
}

impl<'a> Pair<'a> {
    fn of(base: &[&'a Run], other: &[&'a Run], station: &'a str) -> Self {
        let by_block = |runs: &[&'a Run]| -> BTreeMap<u32, &'a FieldStation> {
            let found = runs.iter().filter_map(|run| {
                let field = run.field.as_ref()?;
                let own = field.stations.iter().find(|one| one.station == station)?;
                Some((field.block, own))
            });
            found.collect()
        };
        let (a, b) = (by_block(base), by_block(other));
        let both = a.iter().filter_map(|(block, one)| Some([*one, *b.get(block)?]));
        Self {
            station,
            names: [base[0].condition.as_str(), other[0].condition.as_str()],
            blocks: both.collect(),
        }
    }

    fn sentences(&self) -> Vec<String> {
        let [base, other] = self.names;
        let station = self.station;
        let mut said = Vec::new();
        if let Some([a, b]) = self.means(signal)
            && (b - a).abs() >= SIGNAL_DB
        {
            said.push(format!(
                "the signal of {station} was {b:.0} dBm under {other} and {a:.0} dBm under {base} ({:+.0} dB)",
                b - a
            ));
        }
        let rates: [(&str, Figure); 2] = [("to", tx_mbps), ("from", rx_mbps)];
        for (way, of) in rates {
            if let Some([a, b]) = self.means(of).filter(|[a, _]| *a > 0.0)
                && (b / a - 1.0).abs() >= RATE
            {
                said.push(format!(
                    "the PHY rate {way} the access point of {station} was {b:.0} Mbit/s under {other} and {a:.0} Mbit/s \
                     under {base} ({:+.0} %)",
                    (b / a - 1.0) * 100.0
                ));
            }
        }
        if let Some([a, b]) = self.means(|one| one.others_percent)
            && (b - a).abs() >= OTHERS_PERCENT
        {
            said.push(format!(
                "others used {b:.0} % of the channel of {station} under {other} and {a:.0} % under {base}"
            ));
        }
        said.extend(self.differing("access point", |reading| reading.bssid.clone()));
        said.extend(
            self.differing("channel", |reading| {
                reading.frequency_mhz.map(|mhz| format!("{mhz} MHz"))
            }),
        );
        said
    }

    /// The means of a figure over the blocks in which both conditions have it.
    fn means(&self, of: Figure) -> Option<[f64; 2]> {
        let both = self.blocks.iter().filter_map(|[a, b]| of(a).zip(of(b)));
        let (a, b): (Vec<f64>, Vec<f64>) = both.unzip();
        Some([mean(&a)?, mean(&b)?])
    }

    /// Says where the two began a block with another text of `of`.
    fn differing(
        &self,
        what: &str,
        of: impl Fn(&RadioReading) -> Option<String>,
    ) -> Option<String> {
        let read = |one: &FieldStation| one.before.as_ref().and_then(&of);
        let texts = self.blocks.iter().filter_map(|[a, b]| read(a).zip(read(b)));
        let texts: Vec<(String, String)> = texts.collect();
        let differ = texts.iter().filter(|(a, b)| a != b);
        let (a, b) = differ.clone().next()?;
        let ([base, other], count, all) = (self.names, differ.count(), texts.len());
        Some(format!(
            "the {what} of {} was {b} under {other} and {a} under {base} in {count} of {all} blocks",
            self.station
        ))
    }
}

/// The mean over the run; where that was not measured, over the readings before and after.
fn over_run(
    one: &FieldStation,
    during: Option<f64>,
    of: fn(&RadioReading) -> Option<f64>,
) -> Option<f64> {
    let ends = [&one.before, &one.after];
    let ends: Vec<f64> = ends.into_iter().flatten().filter_map(of).collect();
    during.or_else(|| mean(&ends))
}

fn signal(one: &FieldStation) -> Option<f64> {
    let during = one.during.as_ref().and_then(|during| during.signal_dbm);
    over_run(one, during, |reading| Some(reading.signal_dbm? as f64))
}

fn tx_mbps(one: &FieldStation) -> Option<f64> {
    let during = one.during.as_ref().and_then(|during| during.tx_mbps);
    over_run(one, during, |reading| reading.tx_mbps)
}

fn rx_mbps(one: &FieldStation) -> Option<f64> {
    let during = one.during.as_ref().and_then(|during| during.rx_mbps);
    over_run(one, during, |reading| reading.rx_mbps)
}
