//! The arguments of all commands.

mod field;
mod medium;
mod probe;
mod put;
mod serve;
mod top;
mod use_algorithm;

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use strum::{EnumMessage, VariantArray};
use wakeai_net::Local;
use wakeai_proxy::Config;
use wakeai_units::{Duration, Rate};

pub(crate) use field::{FieldArguments, FieldStationArguments};
pub(crate) use medium::MediumArguments;
pub(crate) use probe::{
    AirArguments, BufferArguments, ListenArguments, OtherEnd, Probe, ProbeArguments, SoloArguments,
    WriteArguments,
};
pub(crate) use put::PutArguments;
pub(crate) use serve::ServeArguments;
pub(crate) use top::TopArguments;
pub(crate) use use_algorithm::UseArguments;

/// The value of `lab --kernel` that stands for this machine's kernel.
pub(crate) const HOST: &str = "host";

const EXIT_STATUS: &str = "\
Exit status:
  0   done
  1   failed, or a run of lab was not faithful to its scenario, or one of field does not count
  2   bad usage, a bad configuration or a bad scenario
  3   proxy and use: another program has changed what they hold on the host, and it is not put back
  77  a privilege or a kernel feature is missing
  130 a run of sim, lab or field was interrupted by Ctrl-C; 143 by SIGTERM

Every command that runs as root, except sim, grid, compare, report and man, first undoes the changes of
wakeai processes that died, and reports that on standard error.";

/// Lets devices on one Wi-Fi access point share its airtime fairly, at full speed and with short queues
#[derive(Debug, Parser)]
#[command(name = "wakeai", version, after_help = EXIT_STATUS, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: WakeaiCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WakeaiCommand {
    Sim(SimArguments),
    Grid(GridArguments),
    Lab(LabArguments),
    Field(FieldArguments),
    Medium(MediumArguments),
    #[command(hide = true)]
    FieldStation(FieldStationArguments),
    Compare(CompareArguments),
    Report(ReportArguments),
    Agent(AgentArguments),
    Status(StatusArguments),
    Reserve(ReserveArguments),
    Monitor(MonitorArguments),
    Top(TopArguments),
    Probe(ProbeArguments),
    Proxy(ProxyArguments),
    Put(PutArguments),
    Serve(ServeArguments),
    Use(UseArguments),
    Doctor(DoctorArguments),
    Completion(CompletionArguments),
    Man(ManArguments),
    /// Undo the changes of wakeai processes that died, as other commands do at their start
    Sweep,
}

/// The arguments that `sim`, `lab` and `field` share.
#[derive(Debug, Args)]
pub(crate) struct ExperimentArguments {
    /// The experiment, as TOML; - is standard input
    pub(crate) scenario: PathBuf,
    /// The seed of the first repeat
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// The number of runs of each condition
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: u32,
    /// Run only these conditions, by name
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(crate) conditions: Vec<String>,
    /// Change a key of the scenario, such as `stations.tablet.wired_delay=256ms`; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub(crate) set: Vec<(String, String)>,
    /// Print one JSON object instead of the table
    #[arg(long)]
    pub(crate) json: bool,
    /// Print all figures in the table, which is then wider than 80 columns
    #[arg(long, conflicts_with = "json")]
    pub(crate) wide: bool,
    /// Keep the result and the records in this directory, of the lab the agents' logs, too; no file there is replaced
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Let --out replace an earlier result, and no other file
    #[arg(long, requires = "out")]
    pub(crate) force: bool,
}

/// Run an experiment in virtual time, hundreds of times faster than in real time
///
/// It reads the same files as the lab and uses the same radio, agents and congestion control; TCP is
/// simulated. It prints a table, or with --json one object and nothing else. The same scenario and seed
/// give the same result on every machine. Needs no privileges and changes nothing on the host.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wakeai sim scenarios/quickstart.toml
  wakeai sim scenarios/quickstart.toml --conditions default,airtime --repeat 10
  wakeai sim scenarios/quickstart.toml --set stations.tablet.count=40 --json
  wakeai sim scenarios/quickstart.toml --out results/quickstart   also keep records as Parquet
  wakeai sim scenarios/quickstart.toml --out results/quickstart --pcap   and captures for Wireshark")]
pub(crate) struct SimArguments {
    #[command(flatten)]
    pub(crate) experiment: ExperimentArguments,
    /// With --out, also keep the packets of every host as pcapng, without payloads
    #[arg(long)]
    pub(crate) pcap: bool,
    /// The number of runs at a time [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) jobs: Option<u32>,
}

/// Compare two results, or two conditions of one: differences with 95 % confidence intervals
///
/// Runs with the same seed are paired (Student's t-test) where both results have two or more seeds in common, or one has
/// no other seeds; the others are left out. Otherwise the runs count as independent (Welch's t-test).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wakeai compare results/before results/after
  wakeai compare results/one --conditions default,airtime
  wakeai sim FILE --repeat 10 --json | wakeai compare results/one -")]
pub(crate) struct CompareArguments {
    /// A result: a directory of --out, or what --json has printed; - is standard input
    pub(crate) a: PathBuf,
    /// The result that is compared with it
    pub(crate) b: Option<PathBuf>,
    /// Compare condition A of the first result with condition B of the second (or of the first, if it is the only one)
    /// [default: every condition that both have]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(crate) conditions: Vec<String>,
    /// Print one JSON object instead of the tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Print all figures
    #[arg(long, conflicts_with = "json")]
    pub(crate) wide: bool,
}

/// Run an experiment on the real Linux TCP stack over an emulated access point
///
/// Every station is a network namespace with a TUN device; the radio between them is emulated in real
/// time. It prints a table, or with --json one object and nothing else. Needs root and iperf3; with
/// --kernel qemu and iperf3, but no root.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wakeai lab scenarios/quickstart.toml
  wakeai lab scenarios/quickstart.toml --conditions default,airtime --repeat 3
  wakeai lab scenarios/quickstart.toml --set stations.tablet.rate=39Mbit/s --json
  wakeai lab scenarios/quickstart.toml --out results/quickstart   also keep records as Parquet
  wakeai lab scenarios/quickstart.toml --kernel 6.12 --jobs 2   on another kernel, without root
  wakeai lab scenarios/quickstart.toml --hold                     the network and its air, for other programs

On this machine's kernel the lab makes one run at a time: runs at the same time would delay each other's packets. A run that
exceeds the bounds of lateness or of waits is not faithful, and the exit status is 1.")]
pub(crate) struct LabArguments {
    #[command(flatten)]
    pub(crate) experiment: ExperimentArguments,
    /// The kernel whose TCP is run: `host` is this machine's. With any other each run is made in a guest, an emulated
    /// machine in virtual time, and needs no root: VERSION is one of Debian's archive, such as 6.12, `latest` its
    /// highest, and a path names an image
    #[arg(long, value_name = "host|VERSION|latest|IMAGE", default_value = HOST)]
    pub(crate) kernel: String,
    /// The modules of an IMAGE, where they are not in lib/modules/RELEASE beside it
    #[arg(long, value_name = "DIR")]
    pub(crate) modules: Option<PathBuf>,
    /// The memory of each guest in MB (2^20 bytes) [default: 1024, and 8 for each station or 24 with an agent]
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u32).range(32..=1 << 20))]
    pub(crate) memory: Option<u32>,
    /// For grids: a file with the solo goodputs that are known, as JSON: a list of key, seed and Mbit/s
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) known: Option<PathBuf>,
    /// For grids: make only the solo run whose key is in this file, and print its goodput as JSON
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) solo: Option<PathBuf>,
    /// The number of guests at a time; on this machine's kernel the lab allows only 1
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) jobs: u32,
    /// The limit on the 99th percentile of the time by which packets are released late; beyond it the run is
    /// not faithful [default: 1ms, and 3ms over the 802.11 stack of Linux]
    #[arg(long, value_name = "TIME")]
    pub(crate) lateness_p99: Option<Duration>,
    /// The limit on the time by which any packet is released late; beyond it the run is not faithful
    #[arg(long, value_name = "TIME", default_value = "20ms")]
    pub(crate) lateness_max: Duration,
    /// The limit on the 99th percentile of the time that a process of ordinary priority, as an agent is, waits for
    /// a processor; beyond it a run with agents or proxies is not faithful
    #[arg(long, value_name = "TIME", default_value = "50ms")]
    pub(crate) waits_p99: Duration,
    /// Where the agents serve their figures to Prometheus: an address of the loopback interface, which each
    /// station's namespace has for itself
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) metrics: Option<Local>,
    /// Make no runs: keep the network of the first condition and its air until Ctrl-C, for any program that enters
    /// the namespaces, which are printed (with --json as one object)
    #[arg(long, conflicts_with_all = ["repeat", "wide", "out", "metrics", "waits_p99"])]
    pub(crate) hold: bool,
}

fn key_and_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    if key.is_empty() {
        return Err("expected KEY=VALUE".to_owned());
    }
    Ok((key.to_owned(), value.to_owned()))
}

/// Reads the name of one of the values, whose documentation is the help.
fn one_of<T>() -> impl TypedValueParser<Value = T>
where
    T: VariantArray + EnumMessage + Into<&'static str> + Copy + Send + Sync,
{
    let shown = |value: &T| PossibleValue::new((*value).into()).help(value.get_documentation());
    PossibleValuesParser::new(T::VARIANTS.iter().map(shown)).map(|name| {
        let named = |value: &&T| (**value).into() == name;
        *T::VARIANTS.iter().find(named).expect("it is one of the names above")
    })
}

/// Reads a time from `least` to `most`.
fn time_within(
    least: Duration,
    most: Duration,
) -> impl Fn(&str) -> Result<Duration, String> + Clone {
    move |text| match text.parse() {
        Ok(time) if (least..=most).contains(&time) => Ok(time),
        Ok(time) => Err(format!("found {time}, expected a time from {least} to {most}")),
        Err(error) => Err(error.to_string()),
    }
}

/// Run the agent of this network namespace
///
/// It announces its station to the other stations on the access point, measures the queueing delay, and
/// every 0.5 s sets bounds for the congestion windows of the connections over its Wi-Fi interface. It
/// needs root to start, keeps three capabilities, and restores every setting on SIGTERM.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wakeai agent --generate-key /etc/wakeai/group.key   make a key for the fleet
  wakeai agent --config station.toml --check          check the configuration
  wakeai agent --config station.toml                  run until SIGTERM or Ctrl-C

docs/reference/agent.md lists every key of the configuration and the JSON API.")]
pub(crate) struct AgentArguments {
    /// The configuration file
    #[arg(long, value_name = "FILE", default_value = wakeai_api::config::DEFAULT_PATH)]
    pub(crate) config: PathBuf,
    /// List every problem that would prevent a start: in the configuration, in the key file and in this
    /// network namespace. Starts nothing
    #[arg(long)]
    pub(crate) check: bool,
    /// Write a new group key to FILE, which must not exist. Starts nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["check", "config"])]
    pub(crate) generate_key: Option<PathBuf>,
    /// Run as this user, with three capabilities, once everything is prepared; needs root. A second process keeps the
    /// privileges of root, and only undoes the changes at the end
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
}

/// Show the state of this machine's agents: bounds, reasons, connections, peers
///
/// With --all the agent also asks the agents of the other stations at its access point, over the presence
/// channel, and one table has all stations. The answers of all stations take at most 0.5 % of the air, so
/// those of 6 stations take about 2 s, and those of 100 stations about 30 s.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wakeai status           show every agent
  wakeai status --watch   show them again each second
  wakeai status --json    print one JSON object per agent and line
  wakeai status --all     show every station of the access point")]
pub(crate) struct StatusArguments {
    /// Print one JSON object per agent and line
    #[arg(long)]
    pub(crate) json: bool,
    /// Ask the agents of all stations at the access point, and show one table of the stations
    #[arg(long)]
    pub(crate) all: bool,
    /// Repeat until Ctrl-C: each second, or with --all ten seconds after the last answer
    #[arg(long)]
    pub(crate) watch: bool,
    /// Ask only the agent with this socket
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
}

/// Ask this station's peers to leave a rate free from now on
///
/// Replaces the key `reserve` of the agent's configuration until the agent ends. The agents of the other
/// stations leave the rate free while this station sends, up to a limit for all reservations together. A
/// change of the rate, also to a lower one, is a new request: the admitted reservation ends, and the new
/// one is considered after all earlier requests. Only root and the agent's own user may reserve.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wakeai reserve 9.66Mbit/s   reserve, and report the result; exit status 1 if it is refused
  wakeai reserve none         end the reservation")]
pub(crate) struct ReserveArguments {
    /// The rate to leave free, such as 9.66Mbit/s, or `none`
    #[arg(value_name = "RATE", value_parser = wakeai_api::parse_reserve)]
    pub(crate) rate: Wanted,
    /// Print the reservation as the agent's API shows it: a JSON object, or null
    #[arg(long)]
    pub(crate) json: bool,
    /// The socket of the agent; needed only if several agents run
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
}

/// A rate above zero, or none. Under this name clap takes it for the value of an argument that must be given.
pub(crate) type Wanted = Option<Rate>;

/// Watch the TCP connections of all network namespaces
///
/// Prints a line per sample and per event. Samples are limited to one per millisecond and connection
/// unless --every-ack is given; events are always printed: state changes, retransmissions, timeouts, and
/// congestion events.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wakeai monitor --port 443                    connections from or to port 443
  wakeai monitor --netns tablet1 --json        one namespace, one JSON object per line
  wakeai monitor --every-ack --duration 10s    every sample, for 10 seconds

docs/reference/cli.md explains the fields.")]
pub(crate) struct MonitorArguments {
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
    /// Print a sample per ACK instead of at most one per millisecond and connection
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
/// Clients use SOCKS5 or HTTP CONNECT, both on the same port. With --transparent the proxy intercepts
/// connections and keeps their addresses. By default it serves clients and destinations in local networks
/// only. It prints its counters on SIGUSR1 and at the end.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wakeai proxy --algorithm wakeai_cubic                on 127.0.0.1:1080, for this machine
  wakeai proxy --listen 192.168.1.5:1080 --allow-to 0.0.0.0/0,::/0
                                                       for the local network, to the Internet
  wakeai proxy --transparent forwarded --in-interface lan0 --allow-to 203.0.113.0/24
                                                       all connections that this machine forwards there from lan0
  wakeai proxy --transparent forwarded --in-interface lan0 --algorithm wakeai_av --rate 5Mbit/s
                                                       each of them holds 5 Mbit/s

docs/guides/proxy.md explains how to set one up.")]
pub(crate) struct ProxyArguments {
    #[command(flatten)]
    pub(crate) config: Config,
    /// Print JSON objects, one per line: the addresses it listens on, and the counters
    #[arg(long)]
    pub(crate) json: bool,
}

/// Report what this kernel offers, what it lacks, and what to do about that
#[derive(Debug, Args)]
#[command(after_help = "\
Each line begins with ok, with note (the lab or a part of a command does not work) or with MISSING (the
monitor or the bounds do not work). The exit status is 77 if something is MISSING.")]
pub(crate) struct DoctorArguments {
    /// Print one JSON object
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

/// Simulate a scenario with every combination of values of some keys
///
/// The command is part of the Python package `wakeai` and runs it with `python3`, or with the
/// interpreter that `WAKEAI_PYTHON` names. It exits with 77 where that has no such package. A grid that
/// was cut goes on where it was when the same command is given again.
#[derive(Debug, Args)]
#[command(
    disable_help_flag = true,
    override_usage = "wakeai grid FILE --set KEY=A,B,C [--repeat N] [--jobs N | --dask ADDRESS] --out DIR"
)]
pub(crate) struct GridArguments {
    /// The scenario and the options; `wakeai grid --help` shows those of the installed package
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    pub(crate) arguments: Vec<OsString>,
}

/// Print a manual page, as roff(7)
///
/// There is a page for each command and subcommand, for the agent's configuration and for scenarios. Debian's package
/// installs them all.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wakeai man lab | man -l -              read the page of `wakeai lab`
  wakeai man probe-buffer | man -l -     that of `wakeai probe buffer`
  wakeai man agent.toml | man -l -       the agent's configuration
  wakeai man --list                      the names of all pages
  wakeai man --all DIR                   write all pages into DIR, as man1/wakeai.1 and so on")]
pub(crate) struct ManArguments {
    /// The page, without `wakeai-` and the section [default: that of wakeai itself]
    #[arg(value_name = "PAGE")]
    pub(crate) page: Option<String>,
    /// List the names of all pages, with their sections
    #[arg(long, conflicts_with = "page")]
    pub(crate) list: bool,
    /// Write all pages below this directory, which is made where it does not exist
    #[arg(long, value_name = "DIR", conflicts_with_all = ["page", "list"])]
    pub(crate) all: Option<PathBuf>,
}

/// Write results into one HTML file: the verdict, tables that sort, plots that zoom
///
/// The file has everything in itself and asks nothing of the network. A directory of --out also gives the plots over
/// time, the scenario and the command.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wakeai sim scenarios/quickstart.toml --repeat 5 --out results/one && wakeai report results/one
  wakeai report results/one results/two -o both.html
  wakeai report result.json -o - > report.html")]
pub(crate) struct ReportArguments {
    /// Results: directories of --out, or files with what --json has printed
    #[arg(required = true)]
    pub(crate) results: Vec<PathBuf>,
    /// The file to write; - is standard output. Another file than an earlier report is not replaced
    #[arg(long, short, value_name = "FILE", default_value = "report.html")]
    pub(crate) output: PathBuf,
    /// Replace the file, whatever it is
    #[arg(long)]
    pub(crate) force: bool,
}
