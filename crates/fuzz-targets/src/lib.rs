//! The fuzz targets: one function per place where input from outside enters Wakeai.
//!
//! Each function takes any bytes, and panics where a property that must hold for them does not. The programs in `fuzz/`
//! give these functions to libFuzzer; the tests of this crate give them the inputs that were kept in
//! `fuzz/corpus`, with the stable compiler and without cargo-fuzz.

mod api;
mod config;
mod controller;
mod input;
mod lease;
mod presence;
mod probe;
mod proxy;
mod scenario;
mod station;

/// One target: its name, which is that of its program and of its corpus, and its function.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 9] = [
    ("presence", presence::target),
    ("controller", controller::target),
    ("lease", lease::target),
    ("config", config::target),
    ("api", api::target),
    ("socks", proxy::socks),
    ("connect", proxy::connect),
    ("scenario", scenario::target),
    ("probe", probe::target),
];

/// Runs the target with this name.
///
/// # Panics
/// Where there is no such target, and where a property that must hold does not.
pub fn run(name: &str, bytes: &[u8]) {
    let found = TARGETS.iter().find(|(target, _)| *target == name);
    found.expect("a target of this name").1(bytes);
}
