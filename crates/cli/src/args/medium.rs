//! The arguments of `wakeai medium`.

use std::path::PathBuf;

use clap::Args;

use super::key_and_value;

/// Be the air of this machine's `mac80211_hwsim` radios, with contention, collisions, aggregation and retries
///
/// For radios that the kernel's driver `mac80211_hwsim` makes, with hostapd, `wpa_supplicant` and iw as they are. Without a
/// medium such a radio delivers each frame at once to all others. The access points, stations and their radio settings
/// are those of the scenario; a radio that sends beacons is the next access point of the file, and any other is the
/// next station. Rates are those that each radio's rate control chooses. Flows, laws and the wire of the file have no
/// effect. It needs `CAP_NET_ADMIN` in the network namespace in which the radios were made.
///
/// When it ends, by Ctrl-C or otherwise, the driver delivers every frame at once again: nothing is lost, and nothing takes
/// time. After kill -9 the frames that were in the air are never reported: set the interfaces down and up.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  modprobe mac80211_hwsim radios=3
  wakeai medium scenarios/air.toml                 until Ctrl-C; then a table of what was carried
  wakeai medium scenarios/air.toml --json          the same as one object
  wakeai medium scenarios/air.toml --pcap air.pcap   and a capture for Wireshark, with radiotap headers
  wakeai medium scenarios/air.toml --radio tablet1=02:00:00:00:02:00   a radio by its address

Not carried are, each counted: frames that found their radio's queue full, frames that nobody answered, and frames that
the driver lost (its socket to the medium was full) or freed (200 of a radio waited). With one of the last two a run is not
faithful, and the exit status is 1.")]
pub(crate) struct MediumArguments {
    /// The experiment, as TOML; - is standard input
    pub(crate) scenario: PathBuf,
    /// The seed of backoffs and frame errors
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Change a key of the scenario, such as `access_point.buffer=50`; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub(crate) set: Vec<(String, String)>,
    /// The radio of an access point or a station, by the address of the radio or of its first interface; may be repeated
    #[arg(long, value_name = "NAME=ADDRESS", value_parser = key_and_value)]
    pub(crate) radio: Vec<(String, String)>,
    /// Write every frame that was on the air, with a radiotap header, to this file, which must not exist
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
    /// At the end print the counters as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
