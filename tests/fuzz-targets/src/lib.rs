//! The fuzz targets: one function per place where input from outside enters Wakeai, and one that runs
//! random scenarios in the simulator.
//!
//! Each function takes any bytes, and panics if a property that must hold for all bytes does not
//! hold. The programs in `fuzz/` pass these functions to libFuzzer. The tests of this crate call
//! them with the inputs that were kept in `fuzz/corpus`, and need neither cargo-fuzz nor libFuzzer.

mod api;
mod config;
mod controller;
mod input;
mod lease;
mod presence;
mod probe;
mod proxy;
mod scenario;
mod serve;
mod simulation;
mod station;

/// One target: its name and its function. Its program and its corpus have this name, too.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 11] = [
    ("presence", presence::target),
    ("controller", controller::target),
    ("lease", lease::target),
    ("config", config::target),
    ("api", api::target),
    ("socks", proxy::socks),
    ("connect", proxy::connect),
    ("scenario", scenario::target),
    ("simulation", simulation::target),
    ("probe", probe::target),
    ("serve", serve::target),
];

/// Runs the target with this name.
///
/// # Panics
/// Panics if there is no such target, or if a property that must hold does not hold.
pub fn run(name: &str, bytes: &[u8]) {
    let found = TARGETS.iter().find(|(target, _)| *target == name);
    found.expect("a target of this name").1(bytes);
}
