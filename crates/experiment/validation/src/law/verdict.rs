//! The verdict on a setting: whether its promise holds.

use super::figures::{LawFigures, LawRow, TimelineFigures};
use super::setting::{FIXED, Promise, Receiving, Setting, WITHOUT};
use crate::verdict::Measures;

/// From this number of packets on the access point's buffer is a long one.
const LONG_BUFFER: u32 = 1000;

/// The figures that the promise of a row bounds.
pub fn measures(row: &LawRow) -> Measures {
    let (default, ours) = (row.of("default"), row.of("airtime"));
    let table = row.of("shimada-after");
    let mut judge = Judge { default, table, ours, measures: Measures::default() };
    match &row.setting.promise {
        Promise::Receives(receiving) => judge.receives(&row.setting, *receiving),
        _ if row.setting.has_frontier() => judge.index(0.95),
        Promise::All => judge.all(0.98, 0.95),
        Promise::Ideal => {
            let (count, bytes) = row.setting.transfers().unwrap_or((0, 0.0));
            let ideal_s = f64::from(count) * bytes * 8e-6 / judge.ours.alone;
            let last = judge.ours.completion.unwrap_or_default().1;
            judge.measures.at_most("last completion / (n · size / solo)", last / ideal_s, 1.05);
        }
        Promise::Short | Promise::Web => {
            let of = |figures: &LawFigures| figures.completion.unwrap_or_default();
            let (before, after) = (of(&judge.default), of(&judge.ours));
            judge.measures.at_most("mean completion / default's", after.0 / before.0, 1.05);
            judge.measures.at_most("last completion / default's", after.1 / before.1, 1.05);
        }
        Promise::Limited(group, mbps) => {
            let asked = mbps * f64::from(row.setting.count_of(group));
            let got = judge.ours.groups.get(*group).copied().unwrap_or_default();
            judge.measures.at_least(
                "goodput of limited stations / what they ask for",
                got / asked,
                0.98,
            );
            judge.goodput(0.95);
        }
        Promise::Beside(group) => {
            let of = |figures: &LawFigures| figures.groups.get(*group).copied().unwrap_or_default();
            let stations = row.setting.scenario.station_count();
            let part = f64::from(row.setting.count_of(group)) / f64::from(stations);
            // CUBIC divides the goodput by chance. The mean over all stations that are alike has less of it.
            let before = if row.setting.has_like_stations() {
                judge.default.goodput * part
            } else {
                of(&judge.default)
            };
            judge.measures.at_least(
                "goodput with agents / without",
                of(&judge.ours) / before,
                0.95,
            );
        }
        Promise::Newcomer(_) => judge.newcomer(row.setting.intervals_s(3.0)),
        Promise::Settles(_) => judge.settled(),
        Promise::Steady => {
            let swing = known(judge.ours.timeline.swing);
            let fixed = known(row.of(FIXED).timeline.swing);
            let what =
                format!("deviation of 5 s means, {swing:.3} / {fixed:.3} with fixed windows");
            judge.measures.at_most(what, swing / fixed, 1.5);
        }
        Promise::Lie => judge.others_keep(row, 0.9),
        Promise::LieWithReservation(reserved) => judge.others_keep(row, 0.9 * (1.0 - reserved)),
    }
    judge.measures
}

fn known(figure: Option<f64>) -> f64 {
    figure.unwrap_or(f64::NAN)
}

/// What a setting with downloads has to keep: the least goodput as a part of `default`'s, and the least index.
pub(crate) fn receiving_bounds(
    setting: &Setting,
    receiving: Receiving,
    (ours_ms, default_ms): (f64, f64),
) -> (f64, f64) {
    let (buffer, is_fair) = setting.access_point_queue();
    let is_half = ours_ms <= default_ms / 2.0;
    let goodput = match receiving {
        Receiving::SlowAndFast => 1.35,
        Receiving::BothWays => 0.97,
        Receiving::Down if !is_fair && (buffer >= LONG_BUFFER || is_half) => 0.95,
        Receiving::Down => 0.98,
    };
    let index = match receiving {
        Receiving::SlowAndFast => 0.9,
        Receiving::BothWays if setting.has_ac() => 0.95,
        _ => 0.97,
    };
    (goodput, index)
}

struct Judge {
    default: LawFigures,
    table: LawFigures,
    ours: LawFigures,
    measures: Measures,
}

impl Judge {
    fn all(&mut self, goodput: f64, index: f64) {
        self.goodput(goodput);
        self.index(index);
        self.growth();
        self.timeouts();
    }

    /// Requires of a setting with downloads its least goodput and index, at most one timeout more than
    /// under `default`, and a short queue: at most half of `default`'s beside uploads, no longer than that
    /// where each station has its own queue in the access point, and 60 ms where the buffer is long.
    fn receives(&mut self, setting: &Setting, receiving: Receiving) {
        let (buffer, is_fair) = setting.access_point_queue();
        let (ours, before) = (self.ours.growth_ms, self.default.growth_ms);
        let (goodput, index) = receiving_bounds(setting, receiving, (ours, before));
        self.goodput(goodput);
        self.index(index);
        if receiving == Receiving::BothWays {
            self.measures.at_most("p95 growth / default's", ours / before, 0.5);
        } else if is_fair {
            self.measures.at_most("p95 growth / default's", ours / before, 1.0);
        } else if buffer >= LONG_BUFFER {
            self.measures.at_most("p95 growth, ms", ours, 60.0);
        }
        self.measures.at_most("timeouts", self.ours.timeouts, self.default.timeouts + 1.0);
    }

    fn goodput(&mut self, bound: f64) {
        self.measures.at_least(
            "goodput / default's",
            self.ours.goodput / self.default.goodput,
            bound,
        );
    }

    /// Requires that the index is at least the bound, and at most 0.02 below those of the others.
    fn index(&mut self, bound: f64) {
        let others = self.default.index.max(self.table.index);
        self.measures.at_least("index", self.ours.index, bound);
        if bound > 0.9 {
            self.measures.at_least("index beside the others'", self.ours.index, others - 0.02);
        }
    }

    /// Requires that the queueing delay is below 30 ms, or else at most half of that under
    /// `default`. In the latter case it is also at most 1.1 times that under `shimada-after`, if
    /// `shimada-after` keeps the goodput.
    fn growth(&mut self) {
        let ours = self.ours.growth_ms;
        if ours < 30.0 {
            return;
        }
        self.measures.at_most("p95 growth / default's", ours / self.default.growth_ms, 0.5);
        if self.table.goodput >= 0.97 * self.default.goodput {
            self.measures.at_most("p95 growth / shimada-after's", ours / self.table.growth_ms, 1.1);
        }
    }

    /// Requires that all stations but the liar keep this part of what they have without its agent.
    fn others_keep(&mut self, row: &LawRow, part: f64) {
        let others = |figures: &LawFigures| {
            let groups = figures.groups.iter().filter(|(group, _)| *group != "liar");
            groups.map(|(_, mbps)| mbps).sum::<f64>()
        };
        let kept = others(&self.ours) / others(&row.of(WITHOUT));
        self.measures.at_least("others' goodput / without the liar's agent", kept, part);
    }

    fn timeouts(&mut self) {
        self.measures.at_most("timeouts", self.ours.timeouts, self.default.timeouts.max(3.0));
    }

    /// How soon the newcomer has its share, and whether it keeps it.
    fn newcomer(&mut self, intervals_s: f64) {
        let timeline = self.ours.timeline.clone();
        let (half, most) = (known(timeline.half_s), known(timeline.nine_tenths_s));
        self.measures.at_most("half of its share, s", half, intervals_s.max(2.0));
        self.measures.at_most("nine tenths, s", most, intervals_s.max(6.0));
        self.measures.at_least("part of its share afterwards", known(timeline.kept), 0.9);
    }

    /// How far the station that is furthest from its share is from it.
    fn settled(&mut self) {
        let TimelineFigures { shares, at_the_end, .. } = &self.ours.timeline;
        let off = |(name, share): (&String, &f64)| (name.clone(), (share - 1.0).abs());
        let furthest = shares.iter().map(off).max_by(|a, b| a.1.total_cmp(&b.1));
        let (name, off) = furthest.unwrap_or(("nobody".to_owned(), f64::NAN));
        let end = known(at_the_end.get(&name).copied());
        let what = format!("{name} is furthest from its share (at the end {end:.2} of it)");
        self.measures.at_most(what, off, 0.1);
    }
}
