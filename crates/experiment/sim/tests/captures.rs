//! The captures of a simulation, read back.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]
#![allow(clippy::disallowed_methods, reason = "captures are files, and read back here")]

mod common;
#[path = "common/pcapng.rs"]
mod pcapng;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{DOWN, scenario, simulate};
use pcapng::Tcp;
use wakeai_medium::{Destination, Node, StationId};
use wakeai_scenario::Scenario;
use wakeai_sim::{Observer, Seen};
use wakeai_tcp::Segment;
use wakeai_units::Duration;
use wakeai_world::{Options, Silent};

/// Downloads through a queue so short that many of their packets are lost.
fn lossy(laws: &str) -> Scenario {
    let flow = format!("{DOWN}\nsize = \"2MB\"\n{laws}");
    scenario("802.11g", 2, &flow, "").with_overrides(&[buffer(20)]).unwrap()
}

fn buffer(packets: u32) -> (String, String) {
    ("access_point.buffer".to_owned(), packets.to_string())
}

fn capture(directory: &Path, scenario: &Scenario, jobs: usize) {
    let options =
        Options { repeat: 2, out: Some(directory.into()), captures: true, ..Options::default() };
    wakeai_sim::run(&options, jobs, scenario, &Silent).unwrap();
}

fn files(directory: &Path) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    for run in std::fs::read_dir(directory.join("pcap")).unwrap() {
        for file in std::fs::read_dir(run.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let name = path.strip_prefix(directory.join("pcap")).unwrap().to_str().unwrap();
            found.insert(name.to_owned(), path);
        }
    }
    found
}

/// The segments at each host: the time, whether it received the segment, and the segment.
#[derive(Default)]
struct Witness {
    seen: BTreeMap<Node, Vec<(u64, bool, Segment)>>,
    /// The window scales by flow and direction.
    scales: BTreeMap<(u32, bool), u8>,
    windows: BTreeMap<Node, Vec<u64>>,
}

impl Witness {
    fn note(&mut self, at: Duration, host: Node, inbound: bool, packet: Seen<'_>) {
        let Seen::Segment { flow, to_sender, segment, .. } = packet else { return };
        if let Some(scale) = segment.options.window_scale {
            self.scales.insert((flow, to_sender), scale);
        }
        let scale = if segment.flags.syn { 0 } else { self.scales[&(flow, to_sender)] };
        self.windows.entry(host).or_default().push(segment.window >> scale);
        self.seen.entry(host).or_default().push((at.as_nanos(), inbound, segment));
    }
}

impl Observer for Witness {
    fn on_sent(&mut self, at: Duration, from: Node, _: Destination, packet: Seen<'_>) {
        self.note(at, from, false, packet);
    }

    fn on_received(&mut self, at: Duration, _: Node, to: Node, packet: Seen<'_>) {
        self.note(at, to, true, packet);
    }
}

/// The header of `segment` as it has to be on the wire.
fn on_the_wire(segment: &Segment, window: u64) -> Tcp {
    let flags = segment.flags;
    let bits = [(flags.fin, 1), (flags.syn, 2), (flags.rst, 4), (flags.psh, 8), (flags.ack, 16)];
    let wrap = |position: u64| (position % (1 << 32)) as u32;
    let offered = |given: bool| flags.syn && given;
    Tcp {
        seq: wrap(segment.seq),
        ack: if flags.ack { wrap(segment.ack) } else { 0 },
        bits: bits.into_iter().filter(|(set, _)| *set).map(|(_, bit)| bit).sum(),
        window: window.min(65_535) as u16,
        len: segment.len as usize,
        mss: segment.options.mss.filter(|_| flags.syn),
        scale: segment.options.window_scale.filter(|_| flags.syn),
        sack_permitted: offered(segment.options.sack_permitted),
        timestamps: segment.timestamp.map(|stamp| (stamp.value, stamp.echo)),
        sack: segment.sack.iter().map(|&(start, end)| (wrap(start), wrap(end))).collect(),
    }
}

#[test]
fn every_segment_that_a_host_sees_stands_in_its_file_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let scenario = lossy("");
    capture(directory.path(), &scenario, 1);
    let (_, witness) = simulate(&scenario, 1, Witness::default());
    let hosts = [
        ("server", Node::Server),
        ("tablet1", Node::Station(StationId(0))),
        ("tablet2", Node::Station(StationId(1))),
    ];
    let (mut blocks, mut again) = (0, 0);
    for (name, host) in hosts {
        let file = pcapng::read(&directory.path().join(format!("pcap/default-0/{name}.pcapng")));
        let (seen, windows) = (&witness.seen[&host], &witness.windows[&host]);
        assert_eq!(file.packets.len(), seen.len(), "{name}");
        let mut sent = BTreeSet::new();
        for ((packet, (at, inbound, segment)), window) in file.packets.iter().zip(seen).zip(windows)
        {
            let read = packet.segment();
            assert_eq!((packet.at_ns, packet.inbound), (*at, *inbound));
            assert_eq!(packet.length, segment.packet_len());
            assert_eq!(read, on_the_wire(segment, *window));
            blocks += read.sack.len();
            let ends = packet.addresses();
            again += usize::from(!inbound && read.len > 0 && !sent.insert((ends, read.seq)));
            let station = |address: [u8; 4]| address[..3] == [10, 73, 0];
            let down = station(ends.1) && ends.0 == [10, 74, 0, 1];
            assert!(down || station(ends.0) && ends.1 == [10, 74, 0, 1], "{ends:?}");
        }
        assert!(file.packets.is_sorted_by_key(|packet| packet.at_ns), "{name}");
    }
    assert!(blocks > 100 && again > 10, "{blocks} blocks, {again} retransmissions");
}

#[test]
fn a_file_says_what_it_is() {
    let directory = tempfile::tempdir().unwrap();
    capture(directory.path(), &lossy(""), 1);
    let names: Vec<String> = files(directory.path()).into_keys().collect();
    let expected = ["default-0", "default-1"]
        .map(|run| ["server", "tablet1", "tablet2"].map(|host| format!("{run}/{host}.pcapng")));
    assert_eq!(names, expected.concat());
    let file = pcapng::read(&directory.path().join("pcap/default-1/tablet2.pcapng"));
    let [(_, section), (_, interface)] = &file.headers[..] else { panic!("{:?}", file.headers) };
    let application = format!("wakeai {}", wakeai_world::VERSION);
    assert_eq!(section[..], [(4, application.into_bytes())]);
    let value = |code| &interface.iter().find(|(found, _)| *found == code).unwrap().1;
    assert_eq!((&value(2)[..], &value(9)[..]), (&b"tablet2"[..], &[9][..]));
    let comment = std::str::from_utf8(value(1)).unwrap();
    assert!(comment.contains("condition default, repeat 1"), "{comment}");
    let manifest = std::fs::read_to_string(directory.path().join("run.json")).unwrap();
    assert!(manifest.contains("\"pcap\": true"), "{manifest}");
}

#[test]
fn presence_reaches_every_station_whole_and_not_the_server() {
    let directory = tempfile::tempdir().unwrap();
    let law = "[[conditions]]\nname = \"law\"\nlaw = \"airtime\"";
    capture(directory.path(), &lossy(law), 1);
    let presence = |host: &str| {
        let file = pcapng::read(&directory.path().join(format!("pcap/law-0/{host}.pcapng")));
        file.packets.into_iter().filter(|packet| !packet.is_tcp()).collect::<Vec<_>>()
    };
    assert!(presence("server").is_empty());
    let (one, two) = (presence("tablet1"), presence("tablet2"));
    let sent: Vec<_> = one.iter().filter(|packet| !packet.inbound).collect();
    let arrived: Vec<_> = two.iter().filter(|packet| packet.inbound).collect();
    assert!(!arrived.is_empty() && arrived.len() <= sent.len());
    for packet in &arrived {
        assert_eq!(packet.addresses(), ([10, 73, 0, 1], [10, 73, 255, 255]));
        assert_eq!(packet.datagram().0, [19_719; 2]);
        assert!(sent.iter().any(|sent| sent.bytes == packet.bytes && sent.at_ns <= packet.at_ns));
    }
}

#[test]
fn captures_are_the_same_for_any_number_of_jobs() {
    let (one, three) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    capture(one.path(), &lossy(""), 1);
    capture(three.path(), &lossy(""), 3);
    let (one, three) = (files(one.path()), files(three.path()));
    assert!(one.keys().eq(three.keys()));
    for (name, path) in one {
        assert!(std::fs::read(path).unwrap() == std::fs::read(&three[&name]).unwrap(), "{name}");
    }
}

#[test]
#[allow(clippy::print_stdout, reason = "says that it was skipped")]
fn wireshark_finds_nothing_malformed() {
    let tshark = |path: &Path, filter: &str| {
        let mut command = Command::new("tshark");
        // Where a packet is not captured whole, Wireshark checks only the IPv4 checksum.
        for protocol in ["ip", "tcp", "udp"] {
            command.args(["-o", &format!("{protocol}.check_checksum:TRUE")]);
        }
        command.arg("-r").arg(path).args(["-Y", filter, "-T", "fields", "-e", "frame.number"]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().count()
    };
    if Command::new("tshark").arg("--version").output().is_err() {
        println!("SKIPPED: tshark is not installed");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let law = "[[conditions]]\nname = \"law\"\nlaw = \"airtime\"";
    capture(directory.path(), &lossy(law), 1);
    for (name, path) in files(directory.path()) {
        let packets = pcapng::read(&path).packets.len();
        assert_eq!(tshark(&path, "ip.checksum.status == 1"), packets, "{name}");
        let bad = "_ws.malformed || tcp.checksum.status == 0 || udp.checksum.status == 0 \
                   || ip.bogus_header_length || tcp.bogus_header_length";
        assert_eq!(tshark(&path, bad), 0, "{name}");
    }
    let server = directory.path().join("pcap/law-0/server.pcapng");
    assert!(tshark(&server, "tcp.options.sack_le") > 0);
    assert!(tshark(&server, "tcp.analysis.retransmission") > 0);
}
