//! Agents on Linux's own 802.11 stack, with radios of `mac80211_hwsim`, two of which are hostapd's access points. The
//! agents' configurations name no access point, so the agents can learn it only from nl80211.

use std::fs;
use std::net::UdpSocket;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use wakeai_api::Request;

use crate::passed;
use wakeai_tests::agent::{Agent, Fleet, in_namespace};
use wakeai_tests::bss::{Bss, WIFI};
use wakeai_tests::{must, nothing_left, stderr, stdout, wait_for, wakeai};

/// A user without privileges.
const NOBODY: u32 = 65534;
/// The namespaces. The second access point isolates its stations from each other.
const NAMESPACES: [&str; 4] = ["ap1", "ap2", "a", "b"];

pub(crate) fn agents_follow_their_access_point() {
    let began = Instant::now();
    load_modules();
    let air = Air::new();
    let fleet = Fleet::new();
    for station in ["a", "b"] {
        air.join(station, "ap1");
    }
    let start = |name, station| fleet.start_at(&air.bss, name, station, "auto", "");
    let default = disciplines(&air);
    let (mut first, second) = (start("a", 1), start("b", 2));
    let put = disciplines(&air);
    println!("guest: the default {default:?} became {put:?}");
    assert!(put[0].ends_with("7761: root") && put[0] != default[0], "{put:?}");
    wait_for("two stations of an access point hear each other", || {
        hear_each_other(&first, &second)
    });
    for agent in [&first, &second] {
        assert_eq!(bssid(agent), air.address("ap1"));
        assert_eq!(agent.state(), "controlling");
    }
    passed("agents found their access point and each other", began);

    let began = Instant::now();
    probe_air_shows_what_the_driver_tells(&air);
    passed("probe air showed the link and named what the driver does not tell", began);

    let began = Instant::now();
    air.join("b", "ap2");
    wait_for("roaming is seen", || (bssid(&second) == air.address("ap2")).then_some(()));
    assert_eq!(second.peers(), [0_u64; 0], "peers of another access point do not count");
    wait_for("the first agent has no peer any more", || first.peers().is_empty().then_some(()));
    assert_eq!(bssid(&first), air.address("ap1"));
    passed("an agent roamed", began);

    let began = Instant::now();
    air.join("a", "ap2");
    wait_for("roaming is seen", || (bssid(&first) == air.address("ap2")).then_some(()));
    let sent = |agent: &Agent| agent.ask(Request::Status)["presence"]["sent"].as_u64().unwrap();
    wait_for("both agents have sent presence messages", || {
        (sent(&first).min(sent(&second)) >= 3).then_some(())
    });
    assert!(first.peers().is_empty() && second.peers().is_empty(), "the stations are isolated");
    let socket = first.socket.display().to_string();
    let said = stdout(&wakeai(&["status", "--socket", &socket]));
    assert!(said.contains("client isolation"), "{said}");
    passed("status named client isolation as a possible cause", began);

    leave_and_join_again(&air, &first, &second);
    make_the_interface_again(&air, &first, &second);
    refuse_the_access_points_interface(&air, &fleet);

    let began = Instant::now();
    first.end(Signal::SIGKILL);
    let swept = wakeai(&["sweep"]);
    assert!(swept.status.success(), "{}", stderr(&swept));
    assert_eq!(disciplines(&air), default);
    assert!(!stderr(&swept).contains("WARN"), "{}", stderr(&swept));
    drop(second);
    drop(air);
    nothing_left();
    passed("sweep undid what a killed agent left", began);
}

/// Whether the agents of stations 1 and 2 are each other's peers.
fn hear_each_other(first: &Agent, second: &Agent) -> Option<()> {
    (first.peers() == [2] && second.peers() == [1]).then_some(())
}

fn leave_and_join_again(air: &Air, first: &Agent, second: &Agent) {
    let began = Instant::now();
    for station in ["a", "b"] {
        air.leave(station);
    }
    let waits = |agent: &Agent| (agent.state() == "waiting-for-access-point").then_some(());
    wait_for("the agent waits for an access point", || waits(first));
    wait_for("the agent waits for an access point", || waits(second));
    let left = stderr(&probe_air(air, "a", &[]));
    assert!(left.contains("wlan0 is not associated with an access point"), "{left}");
    for station in ["a", "b"] {
        air.join(station, "ap1");
    }
    wait_for("the agents hear each other again", || hear_each_other(first, second));
    passed("agents were associated again", began);
}

/// The disciplines of a station's interface, the root first: kind, handle, and `root` or parent.
fn disciplines(air: &Air) -> Vec<String> {
    let text = air.bss.inside("a", &format!("tc qdisc show dev {WIFI}"));
    let words = |line: &str| {
        let most = if line.contains(" root") { 4 } else { 5 };
        line.split(' ').take(most).skip(1).collect::<Vec<_>>().join(" ")
    };
    let mut all: Vec<_> = text.lines().map(words).collect();
    all.sort_by_key(|words| !words.ends_with("root"));
    all
}

fn make_the_interface_again(air: &Air, first: &Agent, second: &Agent) {
    let began = Instant::now();
    air.bss.inside("b", &format!("iw dev {WIFI} del"));
    wait_for("the agent notices that the interface is gone", || {
        (second.state() == "waiting-for-interface").then_some(())
    });
    // The radio is given by its number, because iw looks up a name in /sys, which shows the radios of the initial
    // namespace.
    let radio = air.phy("b").replace("phy", "phy#");
    air.bss.inside("b", &format!("iw {radio} interface add {WIFI} type managed"));
    air.set_up("b");
    air.join("b", "ap1");
    wait_for("the agents hear each other again", || hear_each_other(first, second));
    wait_for("the agent controls again", || (second.state() == "controlling").then_some(()));
    wait_for("the new interface has fq", || {
        air.bss
            .inside("b", &format!("tc qdisc show dev {WIFI}"))
            .contains(" 7761: root")
            .then_some(())
    });
    passed("an interface was deleted and made again", began);
}

fn refuse_the_access_points_interface(air: &Air, fleet: &Fleet) {
    let began = Instant::now();
    let config = fleet.configure(3, "auto", "");
    let mut command = in_namespace(&air.bss, "ap1");
    let checked = command.args(["agent", "--check", "--config"]).arg(&config).output().unwrap();
    assert!(!checked.status.success());
    let said = format!("{}{}", stdout(&checked), stderr(&checked));
    assert!(said.contains("of type AP, not a station"), "{said}");
    passed("an access point's own interface is refused", began);
}

/// `wakeai probe air` in this namespace, as a user without privileges.
fn probe_air(air: &Air, namespace: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(wakeai_tests::program());
    command.args(["probe", "air"]).args(arguments).uid(NOBODY).gid(NOBODY);
    air.bss.namespace(namespace).run(|| command.output()).unwrap().unwrap()
}

/// Sends datagrams to and fro between the stations, so that both have sent and received data.
fn exchange(air: &Air) {
    let open = |station: &str| {
        let address = format!("10.77.0.{}:4000", Air::of(station) + 1);
        let socket = air.bss.namespace(station).run(|| UdpSocket::bind(address)).unwrap().unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        socket
    };
    let (a, b) = (open("a"), open("b"));
    let mut bytes = [0; 1000];
    for _ in 0..50 {
        wait_for("a datagram has come back", || {
            a.send_to(&bytes, b.local_addr().unwrap()).unwrap();
            let (length, from) = b.recv_from(&mut bytes).ok()?;
            b.send_to(&bytes[..length], from).unwrap();
            a.recv_from(&mut bytes).ok()
        });
    }
}

/// The arguments of each `wakeai probe air` of the guide.
fn guide_commands() -> Vec<Vec<&'static str>> {
    let guide = include_str!("../../../docs/guides/field.md");
    let lines = guide.lines().filter_map(|line| line.strip_prefix("wakeai probe air"));
    let found: Vec<Vec<&str>> = lines.map(|line| line.split_whitespace().collect()).collect();
    assert!(found.len() >= 2, "{found:?}");
    found
}

fn probe_air_shows_what_the_driver_tells(air: &Air) {
    exchange(air);
    let output = probe_air(air, "a", &["--json", "--interval", "500ms"]);
    assert!(output.status.success(), "{}", stderr(&output));
    println!("{}", stdout(&output));
    let said: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(said["interfaces"].as_array().unwrap().len(), 1, "{said}");
    let link = &said["interfaces"][0];
    assert_eq!(link["interface"], WIFI);
    assert_eq!(link["bssid"], air.address("ap1"));
    assert_eq!((&link["ssid"], &link["frequency_mhz"]), (&json!("ap1"), &json!(2412)));
    assert_eq!(link["width_mhz"], 20);
    assert!(link["signal_dbm"].as_i64().unwrap() < 0, "{link}");
    for way in ["tx", "rx"] {
        assert!(link[way]["packets"].as_u64().unwrap() >= 50, "{link}");
        assert!(link[way]["bytes"].as_u64().unwrap() >= 50_000, "{link}");
        assert!(link[way]["rate"]["mbps"].as_f64().unwrap() >= 1.0, "{link}");
        // The radio of mac80211_hwsim takes no time to send.
        assert!(link[way]["airtime_us"].is_null(), "{link}");
    }
    assert!(link["interval"]["elapsed_ms"].as_f64().unwrap() >= 500.0, "{link}");
    let untold: Vec<&str> = link["does_not_tell"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    assert!(untold.contains(&"TX airtime") && untold.contains(&"RX airtime"), "{untold:?}");
    assert!(!untold.contains(&"retries") && !untold.contains(&"BSSID"), "{untold:?}");

    for words in guide_commands() {
        let output = probe_air(air, "a", &words);
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        let text = stdout(&output);
        println!("{text}");
        let is_table = words.contains(&"--json") || text.contains("SSID \"ap1\", BSSID ");
        assert!(is_table && untold.iter().all(|name| text.contains(name)), "{text}");
    }

    let cases: [(&str, &[&str], &str); 4] = [
        (
            "a",
            &["--interface", "lo"],
            "lo is not a Wi-Fi interface; those of this network namespace: wlan0",
        ),
        ("ap1", &["--interface", WIFI], "wlan0 is of type AP, not a station"),
        ("ap1", &[], "wlan0 is of type AP, not a station"),
        ("air", &[], "this network namespace has no Wi-Fi interface"),
    ];
    for (namespace, arguments, expected) in cases {
        let output = probe_air(air, namespace, arguments);
        assert_eq!((output.status.code(), stdout(&output)), (Some(1), String::new()));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
}

fn bssid(agent: &Agent) -> String {
    agent.ask(Request::Status)["bssid"].as_str().unwrap_or_default().to_owned()
}

/// Loads the modules, with a radio for each namespace.
fn load_modules() {
    for module in fs::read_to_string("/modules/wifi").unwrap().lines() {
        let radios = format!(" radios={}", NAMESPACES.len());
        let options = if module == "mac80211_hwsim" { &*radios } else { "" };
        must("insmod", &format!("/modules/{module}.ko{options}"));
    }
}

/// Two access points and two stations, whose radios all receive each other.
struct Air {
    bss: Bss,
    phys: Vec<String>,
    addresses: Vec<String>,
}

impl Air {
    fn new() -> Self {
        let bss = Bss::without_interfaces(&NAMESPACES);
        let mut air = Self { bss, phys: Vec::new(), addresses: Vec::new() };
        for (radio, name) in NAMESPACES.iter().enumerate() {
            let interface = format!("wlan{radio}");
            let fact = |file: &str| {
                let path = format!("/sys/class/net/{interface}/{file}");
                fs::read_to_string(path).unwrap().trim().to_owned()
            };
            air.phys.push(fact("phy80211/name"));
            air.addresses.push(fact("address"));
            must("iw", &format!("phy {} set netns name {}", air.phys[radio], air.bss.name(name)));
            if interface != WIFI {
                air.bss.ip(name, &format!("link set {interface} name {WIFI}"));
            }
        }
        for (access_point, isolate) in [("ap1", 0), ("ap2", 1)] {
            let file = format!("/tmp/{access_point}.conf");
            let config = format!(
                "interface={WIFI}\ndriver=nl80211\nssid={access_point}\nhw_mode=g\nchannel=1\n\
                 ieee80211n=1\nwmm_enabled=1\nap_isolate={isolate}\n"
            );
            fs::write(&file, config).unwrap();
            air.bss.inside(access_point, &format!("hostapd -B {file}"));
        }
        for station in ["a", "b"] {
            air.set_up(station);
        }
        air
    }

    fn of(name: &str) -> usize {
        NAMESPACES.iter().position(|one| *one == name).unwrap()
    }

    fn phy(&self, name: &str) -> &str {
        &self.phys[Self::of(name)]
    }

    fn address(&self, name: &str) -> &str {
        &self.addresses[Self::of(name)]
    }

    fn set_up(&self, station: &str) {
        let host = Self::of(station) + 1;
        self.bss.ip(station, &format!("link set {WIFI} up"));
        self.bss.ip(station, &format!("addr add 10.77.0.{host}/24 brd + dev {WIFI}"));
    }

    /// Associates the station with this access point and no other.
    fn join(&self, station: &str, access_point: &str) {
        self.leave(station);
        let address = self.address(access_point);
        let connect = format!("iw dev {WIFI} connect {access_point} 2412 {address}");
        self.bss.inside(station, &connect);
        wait_for("the station is associated", || {
            let link = self.bss.inside(station, &format!("iw dev {WIFI} link"));
            link.contains(&format!("Connected to {address}")).then_some(())
        });
    }

    fn leave(&self, station: &str) {
        if self.bss.inside(station, &format!("iw dev {WIFI} link")).contains("Connected to") {
            self.bss.inside(station, &format!("iw dev {WIFI} disconnect"));
        }
    }
}
