//! Prints what a law sees and decides, tick by tick, in the packet model of the tests.
//!
//! `cargo run -p wakeai-control --example airtime_trace [STATIONS [PHY_MBPS [RTT_MS [LAW]]]]`

#![allow(clippy::print_stdout, reason = "it is for reading")]
#![allow(dead_code, reason = "the model is shared with tests that use more of it")]

#[path = "../tests/harness/mod.rs"]
mod harness;

use harness::{Scenario, World};
use wakeai_control::LawConfig;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: f64| match arguments.next() {
        Some(text) => text.parse().expect("a number was asked for"),
        None => default,
    };
    let scenario = Scenario::uplink(number(6.0) as usize, number(65.0), number(512.0));
    let name = arguments.next().unwrap_or_else(|| "airtime".to_owned());
    let law = LawConfig::from_name(&name).expect("one of the names in LawConfig::NAMES");
    let outcome = World::new(&scenario, Some(&law), 1).run(&mut |line| println!("{line}"));
    println!("{outcome:?}");
}
