//! What can be typed.

mod use_algorithm;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use wakeai_proxy::{Interface, Network, TargetRate};
use wakeai_units::{Bytes, Duration, Rate};

pub(crate) use use_algorithm::{UseArguments, Which};

const EXIT_STATUS: &str = "\
Exit status:
  0   done
  1   failed, or a lab run was not faithful
  2   bad usage, a bad configuration or a bad scenario
  77  a privilege or a kernel feature is missing
  130 a run of sim or lab was interrupted by Ctrl-C; 143 by SIGTERM

Before anything else, every command but sim that runs as root removes what a dead one left behind,
and says so on standard error.";

/// Devices that share one Wi-Fi access point share its air: fairly, at full speed, with short
/// queues.
#[derive(Debug, Parser)]
#[command(name = "wakeai", version, after_help = EXIT_STATUS, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Sim(SimArguments),
    Lab(LabArguments),
    Agent(AgentArguments),
    Status(StatusArguments),
    Reserve(ReserveArguments),
    Monitor(MonitorArguments),
    Proxy(ProxyArguments),
    Use(UseArguments),
    Doctor(DoctorArguments),
    Completion(CompletionArguments),
    /// Remove what a dead command left behind, as every command does first, and nothing else
    Sweep,
}

/// What both worlds are asked for.
#[derive(Debug, Args)]
pub(crate) struct ExperimentArguments {
    /// The experiment, as TOML
    pub(crate) scenario: PathBuf,
    /// The seed of the first repeat
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// How often each condition is run
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: u32,
    /// Only these conditions, by name
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(crate) conditions: Vec<String>,
    /// Change a key of the scenario, such as `stations.tablet.wired_delay=256ms`; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub(crate) set: Vec<(String, String)>,
    /// One JSON object instead of the table
    #[arg(long)]
    pub(crate) json: bool,
    /// All figures in the table, which is then wider than 80 columns
    #[arg(long, conflicts_with = "json")]
    pub(crate) wide: bool,
}

/// Run an experiment in virtual time, hundreds of times faster than it would take
///
/// The same file as the lab's, the same radio, agents and congestion control; TCP is simulated. A
/// table on a terminal; with --json one object on standard output and nothing else. The same
/// scenario and seed give the same result, whatever the machine. Needs no privileges and changes
/// nothing on the host.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wakeai sim scenarios/quickstart.toml
  wakeai sim scenarios/quickstart.toml --conditions default,airtime --repeat 10
  wakeai sim scenarios/quickstart.toml --set stations.tablet.count=40 --json
  wakeai sim scenarios/quickstart.toml --out results/quickstart   records as Parquet too
  wakeai sim scenarios/quickstart.toml --out results/quickstart --pcap   and for Wireshark")]
pub(crate) struct SimArguments {
    #[command(flatten)]
    pub(crate) experiment: ExperimentArguments,
    /// Keep the result and the records in this directory, where they replace nothing
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Replace an earlier result in the directory of --out, and still nothing else
    #[arg(long, requires = "out")]
    pub(crate) force: bool,
    /// Keep the packets of every host there, too, as pcapng, without payloads
    #[arg(long)]
    pub(crate) pcap: bool,
    /// Runs at once; as many as there are processors unless told
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) jobs: Option<u32>,
}

/// Run an experiment on the real Linux TCP stack over an emulated access point
///
/// Every station is a network namespace with a TUN device; the radio between them is emulated on
/// the wall clock. A table on a terminal; with --json one object on standard output and nothing
/// else. Needs root and iperf3.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wakeai lab scenarios/quickstart.toml
  wakeai lab scenarios/quickstart.toml --conditions default,airtime --repeat 3
  wakeai lab scenarios/quickstart.toml --set stations.tablet.rate=39Mbit/s --json
  wakeai lab scenarios/quickstart.toml --out results/quickstart   records as Parquet too

Runs come one after another: they share the machine's clock and cores, and two at once would make
each other late. A run over its bounds of lateness and waits is not faithful and ends with exit status 1.")]
pub(crate) struct LabArguments {
    #[command(flatten)]
    pub(crate) experiment: ExperimentArguments,
    /// Keep the result, the records and the agents' logs in this directory, where they replace
    /// nothing
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Replace an earlier result in the directory of --out, and still nothing else
    #[arg(long, requires = "out")]
    pub(crate) force: bool,
    /// Runs at once: the lab allows 1 only
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = one_job)]
    pub(crate) jobs: u32,
    /// The 99th percentile of lateness up to which a run is faithful
    #[arg(long, value_name = "TIME", default_value = "1ms")]
    pub(crate) lateness_p99: Duration,
    /// The largest lateness up to which a run is faithful
    #[arg(long, value_name = "TIME", default_value = "20ms")]
    pub(crate) lateness_max: Duration,
    /// How long ordinary processes may wait for a processor, at the 99th percentile, up to which a run
    /// with agents or proxies is faithful
    #[arg(long, value_name = "TIME", default_value = "50ms")]
    pub(crate) waits_p99: Duration,
}

fn key_and_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    if key.is_empty() {
        return Err("expected KEY=VALUE".to_owned());
    }
    Ok((key.to_owned(), value.to_owned()))
}

fn one_job(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(1) => Ok(1),
        _ => Err("the lab runs one at a time, since runs that share the machine make each other \
                  late; allowed is 1"
            .to_owned()),
    }
}

/// Run the agent of this network namespace
///
/// It announces its station to the others on the same access point, watches how the RTT grows, and
/// every 0.5 s bounds the congestion windows of the connections over its Wi-Fi interface. It needs
/// root at the start, keeps three capabilities, and puts everything back on SIGTERM.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wakeai agent --generate-key /etc/wakeai/group.key   a key for the fleet, to be copied
  wakeai agent --config station.toml --check          is this configuration good?
  wakeai agent --config station.toml                  run until SIGTERM or Ctrl-C

docs/reference/agent.md lists every key of the configuration and the JSON API.")]
pub(crate) struct AgentArguments {
    /// The configuration
    #[arg(long, value_name = "FILE", default_value = wakeai_api::config::DEFAULT_PATH)]
    pub(crate) config: PathBuf,
    /// Say all that a start here would refuse: in the configuration, in the key file and in this network
    /// namespace. Starts nothing
    #[arg(long)]
    pub(crate) check: bool,
    /// Write a new group key to FILE, which must not exist, and start nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["check", "config"])]
    pub(crate) generate_key: Option<PathBuf>,
}

/// Ask the agents of this machine what they do, and why
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wakeai status           every agent: its bounds, why, its connections and peers
  wakeai status --watch   again each second
  wakeai status --json    one JSON object per agent and line")]
pub(crate) struct StatusArguments {
    /// One JSON object per agent and line
    #[arg(long)]
    pub(crate) json: bool,
    /// Again each second, until Ctrl-C
    #[arg(long)]
    pub(crate) watch: bool,
    /// Ask only the agent that listens here
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
}

/// Ask this station's peers to leave a rate free, from now on
///
/// What the agent's configuration says under `reserve` is replaced until the agent ends. The agents
/// of the other stations leave the rate free while this one sends, up to a limit for all together.
/// Another rate, a lower one too, is another request: what was admitted is given up, and the new one
/// stands behind those that were asked for before. Only root and the agent's own user may.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wakeai reserve 9.66Mbit/s   and say what became of it; exit status 1 where it is refused
  wakeai reserve none         nothing any more")]
pub(crate) struct ReserveArguments {
    /// What is to be left free, such as 9.66Mbit/s; `none`: nothing
    #[arg(value_name = "RATE")]
    pub(crate) rate: Wanted,
    /// What the agent says of it as one JSON object, or null
    #[arg(long)]
    pub(crate) json: bool,
    /// Only needed where several agents run: the socket of the one that is meant
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
}

/// A rate above zero, or none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted(pub(crate) Option<Rate>);

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self(None));
        }
        let rate: Rate = text.parse().map_err(|error| format!("{error}, or `none`"))?;
        if rate == Rate::ZERO {
            return Err("expected a rate above zero, or `none`".to_owned());
        }
        Ok(Self(Some(rate)))
    }
}

/// Watch what TCP does, per connection, in all network namespaces
///
/// A line per sample (at most one per millisecond and connection, or one per ACK) and per event
/// (state changes, retransmits, timeouts, error codes 1 to 4: never sampled away).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wakeai monitor --port 443                    connections from or to port 443
  wakeai monitor --netns tablet1 --json        one namespace, one JSON object per line
  wakeai monitor --every-ack --duration 10s    everything, for 10 seconds

docs/reference/cli.md lists the fields.")]
pub(crate) struct MonitorArguments {
    /// One JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
    /// A sample per ACK instead of at most one per millisecond and connection
    #[arg(long)]
    pub(crate) every_ack: bool,
    /// Only connections with this address at either end
    #[arg(long)]
    pub(crate) address: Option<IpAddr>,
    /// Only connections with this port at either end
    #[arg(long)]
    pub(crate) port: Option<u16>,
    /// Only this network namespace: a name of `ip netns`, or an inode; may be repeated
    #[arg(long, value_name = "NAME|INODE")]
    pub(crate) netns: Vec<String>,
    /// End after this time, such as 10s
    #[arg(long, value_name = "TIME")]
    pub(crate) duration: Option<Duration>,
}

/// Relay TCP connections, so that unchanged senders get another congestion control
///
/// Clients ask in SOCKS5 or HTTP CONNECT, both on the same port; or their connections are taken
/// without being asked (--transparent), with their addresses kept. Only local networks may ask, and
/// only for private networks, without the options that say otherwise. SIGUSR1 prints the counts, as does the end.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wakeai proxy --algorithm wakeai_cubic                on 127.0.0.1:1080, for this machine
  wakeai proxy --listen 192.168.1.5:1080 --allow-to 0.0.0.0/0,::/0
                                                       for the local network, to the Internet
  wakeai proxy --transparent forwarded --in-interface lan0 --allow-to 203.0.113.0/24
                                                       whatever this machine forwards there from lan0
  wakeai proxy --transparent forwarded --in-interface lan0 --algorithm wakeai_av --rate 5Mbit/s
                                                       each of them holds 5 Mbit/s

docs/guides/proxy.md says how to set one up.")]
pub(crate) struct ProxyArguments {
    /// Where to listen; may be repeated [default: 127.0.0.1:1080, or nowhere with --transparent]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Vec<SocketAddr>,
    /// Take connections without being asked: those that this machine forwards, or those that its
    /// own programs open. Needs root and nft; ends with the proxy. `forwarded` needs --in-interface, or
    /// both --allow-from and --allow-to: what is taken does not pass the FORWARD chain of a firewall
    #[arg(long, value_name = "WHOSE", value_delimiter = ',')]
    pub(crate) transparent: Vec<TakenConnections>,
    /// Take forwarded connections that come in by this interface only; may be repeated
    #[arg(long, value_name = "INTERFACE", value_delimiter = ',')]
    pub(crate) in_interface: Vec<Interface>,
    /// Serve as this user, with the capabilities that serving takes, once the ports are bound and the
    /// rules made; needs root
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// The congestion control of the leg over the air; the host's default without this option
    #[arg(long, value_name = "NAME")]
    pub(crate) algorithm: Option<String>,
    /// What each connection aims at over the air, with TCP-AV as the algorithm. For the destinations
    /// in a network alone with NETWORK=RATE; may be repeated, the narrowest network decides
    #[arg(long, value_name = "[NETWORK=]RATE", value_delimiter = ',')]
    pub(crate) rate: Vec<TargetRate>,
    /// Which leg goes over the air, seen from the proxy
    #[arg(long, value_name = "WHICH", default_value = "destination")]
    pub(crate) leg: AirLeg,
    /// Networks that may ask [default: this machine, private and link-local networks]
    #[arg(long, value_name = "NETWORK", value_delimiter = ',')]
    pub(crate) allow_from: Vec<Network>,
    /// Networks that may be asked for [default: private networks, and this machine for itself].
    /// Loopback, link-local and multicast addresses and those of this machine are opened by no wider
    /// network: list each by itself
    #[arg(long, value_name = "NETWORK", value_delimiter = ',')]
    pub(crate) allow_to: Vec<Network>,
    /// Connections at a time; more wait. A client may have three times as many as are free; explicit and
    /// transparent clients have half each where there are both
    #[arg(long, value_name = "N", default_value_t = 8000,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) max_connections: u32,
    /// What may be under way in pipes; beyond it bytes are copied, and none are held
    #[arg(long, value_name = "SIZE", default_value = "64MB")]
    pub(crate) memory: Bytes,
    /// How long a client may take to ask, and a destination to answer
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub(crate) connect_timeout: Duration,
    /// A connection in which nothing moves for so long is reset; down to a sixtieth of it when few
    /// connections are free
    #[arg(long, value_name = "TIME", default_value = "3600s")]
    pub(crate) idle_timeout: Duration,
    /// One JSON object per line: where it listens, and the counts
    #[arg(long)]
    pub(crate) json: bool,
}

/// Whose connections a transparent proxy takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TakenConnections {
    /// Those that this machine forwards.
    Forwarded,
    /// Those that programs on this machine open.
    Own,
}

/// The leg that goes over the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AirLeg {
    /// From the proxy to the destination: uploads.
    Destination,
    /// From the proxy to the client: downloads.
    Client,
    /// Both.
    Both,
}

/// Say what this kernel offers, what is missing, and what to do about it
#[derive(Debug, Args)]
#[command(after_help = "\
Each line begins with ok, with note (only the lab, or a part of a command, does not work without it), or
with MISSING (the monitor or the bounds do not work). Exit status 77 where something is MISSING.")]
pub(crate) struct DoctorArguments {
    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  wakeai completion bash > /etc/bash_completion.d/wakeai")]
pub(crate) struct CompletionArguments {
    /// The shell
    pub(crate) shell: Shell,
}
