//! The congestion control of a connection, by name.

use wakeai_algorithms::TcpSock;
pub use wakeai_algorithms::{Algorithm, Knobs};
use wakeai_connection::{Bounded, HOLDS_A_RATE};

use crate::config::TcpConfig;

/// The names of [`by_name`]: the kernel's, those that obey bounds, and ns-3's.
pub fn algorithm_names() -> Vec<&'static str> {
    let plain = Bounded::STAND_INS.map(|bounded| bounded.plain);
    let ours = Bounded::ALL.map(|bounded| bounded.name);
    plain.into_iter().chain(ours).chain(["ns3_cubic"]).collect()
}

/// The default knobs of the algorithm of this name.
pub fn default_knobs(name: &str) -> Knobs {
    if name == "wakeai_rtt" { Knobs::rtt_fair() } else { Knobs::default() }
}

/// The algorithm of this name for a new connection, with its [`default_knobs`].
pub fn by_name(name: &str, config: &TcpConfig) -> Option<Algorithm> {
    by_name_with(name, config, default_knobs(name))
}

/// The algorithm of this name for a new connection. `cubic`, `reno` and `bbr` are the same code
/// as `wakeai_cubic`, `wakeai_reno` and `wakeai_bbr`, but no bounds are set on them. Only the CUBIC variants use
/// `knobs`.
pub fn by_name_with(name: &str, config: &TcpConfig, knobs: Knobs) -> Option<Algorithm> {
    let sock = TcpSock::new(config.mss, config.initial_window);
    match name {
        "cubic" | "wakeai_cubic" | "wakeai_rtt" => Some(Algorithm::cubic(sock, knobs)),
        "reno" | "wakeai_reno" => Some(Algorithm::reno(sock)),
        HOLDS_A_RATE => Some(Algorithm::av(sock)),
        "wakeai_compound" => Some(Algorithm::compound(sock)),
        "bbr" | "wakeai_bbr" => Some(Algorithm::bbr(sock)),
        "ns3_cubic" => Some(Algorithm::ns3_cubic(sock, knobs)),
        _ => None,
    }
}
