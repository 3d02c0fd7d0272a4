//! The cases for the keys of the whole run and of the wire.

use super::{Case, Effect};

pub(super) const CASES: &[Case] = &[
    Case { base: &[], set: &[("name", "other")], effect: Effect::Report(&["scenario"]) },
    Case::run(&[], &[("duration", "4s")]),
    Case::run(&[], &[("warmup", "1s")]),
    Case::run(&[], &[("wired.rate", "5Mbit/s")]),
    Case::run(&[], &[("wired.delay", "20ms")]),
    Case::run(&[("wired.rate", "5Mbit/s")], &[("wired.queue", "8")]),
    Case::run(&[("wired.rate", "5Mbit/s")], &[("wired.queue", "12kB")]),
    Case::run(&[], &[("wired.loss", "0.01")]),
];
