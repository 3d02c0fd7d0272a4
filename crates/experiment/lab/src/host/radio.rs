//! Hosts whose network interface is a radio of the kernel's driver `mac80211_hwsim`: the access point, on which hostapd runs, the
//! stations, which iw associates with it, and the server behind the access point.
//!
//! The radios are those that the driver has made in this process's namespace: number 0 is the access point's, and the
//! stations' follow.

use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};

use wakeai_host::{Lease, LinkSettings, Netlink};
use wakeai_medium::{Node, StationId};
use wakeai_scenario::{Experiment, Stack, StationGroup};
use wakeai_units::{Duration, Rate};
use wakeai_wifi::{Bss, GuardInterval, Mode, QueueLimit, Standard, StationRadio, Wired};
use wakeai_world::{SERVER_ADDRESS, STATION_BROADCAST, station_address};

use super::child::{Child, held_back};
use super::{
    CABLE_INTERFACE, Host, MTU_BYTES, STATION_INTERFACE, STATION_PREFIX_BITS, WIRED_INTERFACE,
    sysctl,
};
use crate::clock;
use crate::error::LabError;
use crate::shared::SharedResources;

/// The access point's addresses on the air and on the wire. It is a router between both.
const ON_THE_AIR: Ipv4Addr = Ipv4Addr::new(10, 73, 255, 254);
const ON_THE_WIRE: Ipv4Addr = Ipv4Addr::new(10, 74, 0, 2);
const WIRE_PREFIX_BITS: u8 = 30;
/// The name of the network, and its channel: 1 at 2.4 GHz. The kernel's default rules forbid access points at 5 GHz. The medium's
/// times are those of the scenario's standard whatever the channel.
const NETWORK: &str = "wakeai";
const CHANNEL: &str = "1";
const FREQUENCY_MHZ: &str = "2412";
/// The rates of OFDM at which every station receives beacons and broadcasts, in 100 kbit/s, as hostapd has them.
const BASIC: [u64; 3] = [60, 120, 240];
const OFDM: &str = "60 90 120 180 240 360 480 540";
/// The longest wait for an association.
const PATIENCE: Duration = Duration::from_secs(20);
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

/// The access point's host, and the hostapd on it.
#[derive(Debug)]
pub(crate) struct AccessPointHost {
    pub(crate) host: Host,
    hostapd: Child,
}

impl AccessPointHost {
    /// Makes the access point and the server behind it, and starts hostapd.
    pub(crate) fn with_server(
        shared: &SharedResources<'_>,
        experiment: &Experiment,
    ) -> Result<(Self, Host), LabError> {
        // No station's name has a dot in it.
        let host =
            Host::with_radio(shared.lease, "access.point", Node::Server, 0, (ON_THE_AIR, None))?;
        let server = wired_server(shared.lease, &host, experiment.wired)?;
        let bss = experiment.access_point.wifi().expect("the stack is of Wi-Fi alone");
        let rates = experiment.stations.iter().filter_map(|group| group.radio);
        let rates: Vec<StationRadio> = rates.collect();
        let (file, log) = (shared.scratch.join("hostapd.conf"), shared.scratch.join("hostapd.log"));
        std::fs::write(&file, configuration(bss.standard, &rates))
            .map_err(LabError::system("write the configuration of hostapd"))?;
        let mut hostapd = held_back("hostapd");
        hostapd.arg(&file);
        let out = File::create(&log).map_err(LabError::system("make a file for hostapd"))?;
        hostapd.stdout(out).stderr(Stdio::null());
        let mut hostapd = Child::spawn(&mut hostapd, &host, shared.lease)?;
        enabled(shared, &mut hostapd, &log)?;
        pin(&host, bss, &rates, experiment.stack)?;
        Ok((Self { host, hostapd }, server))
    }

    /// Ends hostapd and removes the host.
    pub(crate) fn remove(self, lease: &Lease) -> Result<(), LabError> {
        self.hostapd.end(lease)?;
        self.host.remove(lease)
    }
}

/// Waits until hostapd says that its network is there.
fn enabled(shared: &SharedResources<'_>, hostapd: &mut Child, log: &Path) -> Result<(), LabError> {
    let deadline = clock::now() + PATIENCE;
    loop {
        shared.check()?;
        let said = std::fs::read_to_string(log).unwrap_or_default();
        if said.contains("AP-ENABLED") {
            return Ok(());
        }
        let ended = hostapd.process.try_wait().ok().flatten();
        if ended.is_some() || clock::now() >= deadline {
            return Err(LabError::Child {
                program: "hostapd",
                station: "the access point".to_owned(),
                reason: ended.map_or_else(
                    || format!("its network was not there within {PATIENCE}"),
                    |status| format!("it ended ({status})"),
                ),
                log: said,
            });
        }
        clock::sleep(BETWEEN_TRIES);
    }
}

/// The configuration of an open network in which these stations' rates may be pinned: of OFDM's rates only those that are
/// basic rates may.
fn configuration(standard: Standard, radios: &[StationRadio]) -> String {
    let legacy = radios.iter().filter(|radio| radio.standard != Standard::N);
    let mut basic: Vec<u64> =
        legacy.map(|radio| radio.rate.bits_per_second() / 100_000).chain(BASIC).collect();
    basic.sort_unstable();
    basic.dedup();
    let basic: Vec<String> = basic.iter().map(u64::to_string).collect();
    let ht = if standard == Standard::N { "ieee80211n=1\nwmm_enabled=1\n" } else { "" };
    format!(
        "interface={STATION_INTERFACE}\ndriver=nl80211\nssid={NETWORK}\nhw_mode=g\nchannel={CHANNEL}\n\
         supported_rates={OFDM}\nbasic_rates={}\n{ht}",
        basic.join(" ")
    )
}

/// Lets a host send to the other end of these stations' links only at their rates, and with [`Stack::Minstrel`] at all rates of
/// OFDM and of the streams that the scenario has. Of several the kernel's rate control chooses.
fn pin(host: &Host, bss: &Bss, radios: &[StationRadio], stack: Stack) -> Result<(), LabError> {
    let arguments = rates(bss, radios, stack);
    in_host(host, || tool("iw", &arguments).map(drop))
}

/// The arguments of iw(8) for that.
fn rates(bss: &Bss, radios: &[StationRadio], stack: Stack) -> Vec<String> {
    let of = |wanted: Standard| {
        radios
            .iter()
            .filter(move |radio| (radio.standard == Standard::N) == (wanted == Standard::N))
    };
    let has_ht = of(Standard::N).next().is_some();
    let (legacy, indices): (Vec<String>, Vec<u8>) = if stack == Stack::Minstrel {
        let ofdm = OFDM.split(' ').filter_map(|rate| rate.parse::<f64>().ok());
        let ofdm = ofdm.map(|hundreds| (hundreds / 10.0).to_string());
        (ofdm.collect(), (0..if has_ht { bss.streams * 8 } else { 0 }).collect())
    } else {
        let legacy = of(Standard::G).map(|radio| mbps(radio.rate));
        (legacy.collect(), of(Standard::N).filter_map(|one| ht_index(bss, one.rate)).collect())
    };
    let mut arguments: Vec<String> =
        ["dev", STATION_INTERFACE, "set", "bitrates"].map(str::to_owned).into();
    let mut add = |word: &str, mut numbers: Vec<String>| {
        numbers.sort_unstable();
        numbers.dedup();
        if !numbers.is_empty() {
            arguments.push(word.to_owned());
            arguments.append(&mut numbers);
        }
    };
    add("legacy-2.4", legacy);
    add("ht-mcs-2.4", indices.iter().map(u8::to_string).collect());
    if has_ht {
        let long = bss.guard_interval == GuardInterval::Ns800;
        arguments.push(if long { "lgi-2.4" } else { "sgi-2.4" }.to_owned());
    }
    arguments
}

/// The number of HT's modulation with this rate: 8 for each stream.
fn ht_index(bss: &Bss, rate: Rate) -> Option<u8> {
    let mode = bss.mode(Standard::N, rate)?;
    let same = |mcs: &u8| {
        let of = Mode::with_mcs(
            Standard::N,
            bss.width,
            mode.streams,
            mode.guard_interval,
            usize::from(*mcs),
        );
        of == Some(mode)
    };
    Some((mode.streams - 1) * 8 + (0..8).find(same)?)
}

fn mbps(rate: Rate) -> String {
    (rate.bits_per_second() as f64 / 1e6).to_string()
}

impl Host {
    /// Makes station number `id` of `group` and associates it.
    pub(crate) fn associated(
        shared: &SharedResources<'_>,
        name: &str,
        id: StationId,
        group: &StationGroup,
        (bss, stack): (&Bss, Stack),
    ) -> Result<Self, LabError> {
        let address = (station_address(id), Some(ON_THE_AIR));
        let host = Self::with_radio(shared.lease, name, Node::Station(id), id.0 + 1, address)?;
        let deadline = clock::now() + PATIENCE;
        let connect = ["dev", STATION_INTERFACE, "connect", "-w", NETWORK, FREQUENCY_MHZ];
        let connect = connect.map(str::to_owned);
        loop {
            shared.check()?;
            match host.namespace.run(|| tool("iw", &connect))? {
                Ok(said) if said.contains("connected to") => break,
                _ if clock::now() < deadline => clock::sleep(BETWEEN_TRIES),
                Ok(said) => return Err(not_associated(name, io::Error::other(said))),
                Err(error) => return Err(not_associated(name, error)),
            }
        }
        let radio = group.radio.expect("a station of Wi-Fi has a radio");
        pin(&host, bss, &[radio], stack)?;
        Ok(host)
    }

    /// Makes a host with the radio of this number, its address and its gateway.
    fn with_radio(
        lease: &Lease,
        name: &str,
        node: Node,
        number: u32,
        (address, gateway): (Ipv4Addr, Option<Ipv4Addr>),
    ) -> Result<Self, LabError> {
        let (host, ()) = Self::make(lease, name, node, address, None, || Ok(()))?;
        let words =
            |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let radio = format!("phy{number}");
        let moved = ["phy", &radio, "set", "netns", "name", host.namespace.name()];
        tool("iw", &words(&moved))
            .map_err(LabError::system(format!("move the radio {radio} to {name}")))?;
        let interface = format!("wlan{number}");
        in_host(&host, || {
            if number > 0 {
                tool("ip", &words(&["link", "set", "dev", &interface, "name", STATION_INTERFACE]))?;
            }
            let (netlink, index) =
                (Netlink::open()?, nix::net::if_::if_nametoindex(STATION_INTERFACE)?);
            netlink.add_address(index, address, STATION_PREFIX_BITS, Some(STATION_BROADCAST))?;
            let Some(gateway) = gateway else { return Ok(()) };
            netlink.up(index)?;
            // The access point would keep the frames of an idle station until its next beacon.
            tool("iw", &words(&["dev", STATION_INTERFACE, "set", "power_save", "off"]))?;
            netlink.add_default_route_via(gateway)
        })?;
        Ok(host)
    }
}

/// The address of the radio of this number. The driver counts its radios.
pub(crate) fn radio_address(number: usize) -> String {
    let [.., high, low] = (number as u32).to_be_bytes();
    format!("02:00:00:{high:02x}:{low:02x}:00")
}

/// Tells the access point and the stations, in the order of their radios, each other's addresses. The question for an address
/// is a broadcast, which nobody repeats: among stations that always have something to send it collides now and then, and
/// after three such losses a host has no route.
pub(crate) fn acquaint(
    shared: &SharedResources<'_>,
    access_point: &Host,
    stations: &[Host],
) -> Result<(), LabError> {
    let file = shared.scratch.join("neighbours");
    for (own, host) in std::iter::once(access_point).chain(stations).enumerate() {
        shared.check()?;
        std::fs::write(&file, neighbours(own, stations.len()))
            .map_err(LabError::system("write the radios' addresses"))?;
        let words = ["-batch".to_owned(), file.display().to_string()];
        in_host(host, || tool("ip", &words).map(drop))?;
    }
    Ok(())
}

/// The commands of ip(8) that tell the host with the radio of number `own` the addresses of the access point, whose number is 0,
/// and of the other ones of this many stations.
fn neighbours(own: usize, stations: usize) -> String {
    let others = (0..=stations).filter(|number| *number != own);
    let line = |number: usize| {
        let station = number.checked_sub(1).map(|index| station_address(StationId(index as u32)));
        let (address, radio) = (station.unwrap_or(ON_THE_AIR), radio_address(number));
        format!("neigh add {address} lladdr {radio} dev {STATION_INTERFACE} nud permanent\n")
    };
    others.map(line).collect()
}

fn not_associated(name: &str, source: io::Error) -> LabError {
    LabError::System { action: format!("associate {name} with the access point"), source }
}

/// Makes the server, and the wire between it and the access point.
fn wired_server(lease: &Lease, access_point: &Host, wired: Wired) -> Result<Host, LabError> {
    let (server, ()) = Host::make(lease, "server", Node::Server, SERVER_ADDRESS, None, || Ok(()))?;
    let other =
        server.namespace_file().map_err(LabError::system("open the namespace of the server"))?;
    let end = |interface: &str, address| {
        // Each buffer holds one packet, as on the air, and is delayed by itself.
        let settings =
            LinkSettings { mtu_bytes: MTU_BYTES, queue_packets: 1000, gso_max_segments: Some(1) };
        let (netlink, index) = (Netlink::open()?, nix::net::if_::if_nametoindex(interface)?);
        netlink.add_address(index, address, WIRE_PREFIX_BITS, None)?;
        netlink.set_up(index, &settings)?;
        tool("tc", &wire(interface, wired)).map(|_| netlink)
    };
    in_host(access_point, || {
        Netlink::open()?.add_cable(CABLE_INTERFACE, WIRED_INTERFACE, &other)?;
        end(CABLE_INTERFACE, ON_THE_WIRE)?;
        sysctl::write("net/ipv4/ip_forward", "1")
    })?;
    in_host(&server, || end(WIRED_INTERFACE, SERVER_ADDRESS)?.add_default_route_via(ON_THE_WIRE))?;
    Ok(server)
}

/// The arguments of tc(8) for one direction of the wire. The limit of netem counts what is under way, too.
fn wire(interface: &str, wired: Wired) -> Vec<String> {
    let packets = match wired.queue {
        QueueLimit::Packets(packets) => u64::from(packets),
        QueueLimit::Bytes(bytes) => bytes.get() / u64::from(MTU_BYTES),
    };
    let rate = wired.rate.bits_per_second();
    let under_way = u128::from(rate) * u128::from(wired.delay.as_nanos())
        / (8_000_000_000 * u128::from(MTU_BYTES));
    let limit = packets + under_way as u64 + 1;
    let delay = wired.delay.as_micros();
    let loss = f64::from(wired.loss_ppm) / 1e4;
    let losses = if loss > 0.0 { format!(" loss {loss}%") } else { String::new() };
    let words = format!(
        "qdisc add dev {interface} root netem rate {rate}bit delay {delay}us limit {limit}{losses}"
    );
    words.split(' ').map(str::to_owned).collect()
}

/// Runs `work` in the host's namespace.
fn in_host<T: Send>(
    host: &Host,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> Result<T, LabError> {
    let failed = LabError::system::<io::Error>(format!("build the network of {}", host.name));
    host.namespace.run(work)?.map_err(failed)
}

/// Runs a program in the calling thread's namespace, and returns what it has written.
fn tool(program: &str, arguments: &[String]) -> io::Result<String> {
    let told = |error| io::Error::new(io::Error::kind(&error), format!("{program}: {error}"));
    let run = Command::new(program).args(arguments).stdin(Stdio::null()).output().map_err(told)?;
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    if run.status.success() {
        return Ok(said);
    }
    let wrong = String::from_utf8_lossy(&run.stderr);
    let asked = arguments.join(" ");
    Err(io::Error::other(format!("{program} {asked}: {} {}", said.trim(), wrong.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn radio(standard: Standard, mbps: u64) -> StationRadio {
        let contention = Bss::new(standard).contention;
        StationRadio { standard, rate: Rate::from_mbps(mbps), contention }
    }

    #[test]
    fn a_rate_that_is_pinned_is_a_basic_rate() {
        let of = |standard, radios: &[StationRadio]| configuration(standard, radios);
        let g = of(Standard::G, &[radio(Standard::G, 54), radio(Standard::G, 24)]);
        assert!(g.contains("basic_rates=60 120 240 540\n") && !g.contains("ieee80211n"), "{g}");
        let n = of(Standard::N, &[radio(Standard::N, 65)]);
        assert!(n.contains("basic_rates=60 120 240\n") && n.contains("ieee80211n=1\n"), "{n}");
    }

    #[test]
    fn the_number_of_a_modulation_counts_streams() {
        let bss = Bss { streams: 2, ..Bss::new(Standard::N) };
        let of = |mbps| ht_index(&bss, Rate::from_mbps(mbps));
        assert_eq!([of(65), of(130), of(54)], [Some(7), Some(15), None]);
    }

    #[test]
    fn a_station_is_pinned_to_its_rate_or_to_all_of_its_streams() {
        let bss = Bss::new(Standard::N);
        let of = |stack| rates(&bss, &[radio(Standard::N, 65)], stack).join(" ");
        assert!(of(Stack::Mac80211).ends_with("set bitrates ht-mcs-2.4 7 lgi-2.4"));
        let minstrel = of(Stack::Minstrel);
        assert!(minstrel.ends_with("ht-mcs-2.4 0 1 2 3 4 5 6 7 lgi-2.4"), "{minstrel}");
        assert!(minstrel.contains("legacy-2.4 12 18 24 36 48 54 6 9 "), "{minstrel}");
        let g = rates(&Bss::new(Standard::G), &[radio(Standard::G, 54)], Stack::Minstrel);
        assert_eq!(g.last().map(String::as_str), Some("9"), "without HT");
    }

    #[test]
    fn a_host_is_told_the_addresses_of_all_others() {
        let told = |own| neighbours(own, 300);
        let first = "neigh add 10.73.255.254 lladdr 02:00:00:00:00:00 dev ";
        let last = "neigh add 10.73.1.44 lladdr 02:00:00:01:2c:00 dev ";
        for (own, has) in [(0, (false, true)), (7, (true, true)), (300, (true, false))] {
            let told = told(own);
            assert_eq!(told.lines().count(), 300, "{own}");
            assert_eq!((told.starts_with(first), told.contains(last)), has, "{own}");
        }
        assert!(!told(7).contains("10.73.0.7 "), "its own");
    }

    #[test]
    fn the_wire_holds_its_queue_and_what_is_under_way() {
        let wired = Wired {
            rate: Rate::from_mbps(120),
            delay: Duration::from_millis(100),
            queue: QueueLimit::Packets(50),
            loss_ppm: 1_500,
        };
        let words = wire("eth0", wired).join(" ");
        // 120 Mbit/s for 100 ms are 1.5 MB.
        assert!(
            words.ends_with("rate 120000000bit delay 100000us limit 1051 loss 0.15%"),
            "{words}"
        );
        let words = wire("eth0", Wired { loss_ppm: 0, ..wired }).join(" ");
        assert!(words.ends_with("limit 1051"), "{words}");
    }
}
