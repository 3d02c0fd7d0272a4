//! The commands of docs/guides/operator.md, each run as it is printed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "the harness shows it where a test fails or is skipped")]

mod device;

use std::fs;
use std::path::PathBuf;

use device::Device;
use serde_json::Value;
use wakeai_tests::bss::Bss;
use wakeai_tests::guide::blocks;
use wakeai_tests::{Machine, must, nothing_left, stderr, stdout, wait_for};

const GUIDE: &str = include_str!("../../../docs/guides/operator.md");

/// The access point and its link, which an agent gets from the kernel where the interface is a radio.
const NO_RADIO: &str = "bssid = \"02:00:5e:10:00:01\"\nlink_rate = \"54Mbit/s\"\n";

/// What the guide says of a block's output: a part of the block, and words that the output has, maybe only after
/// some seconds.
const SAID: [(&str, &[&str]); 7] = [
    ("wakeai doctor", &["ok"]),
    ("systemctl enable --now wakeai-agent\nwakeai status", &["controlling"]),
    ("wakeai status --json", &["\"state\":\"controlling\"", "\"peers\":[{"]),
    ("wakeai top --once", &["controlling", "iperf3", "wakeai_"]),
    ("wakeai status --all", &["itself", "yes"]),
    ("sum(up", &["=> 2 "]),
    ("tail -n 4 upload.txt", &["receiver", "iperf Done"]),
];

#[test]
#[ignore = "a minute: make test-operator"]
fn each_command_of_the_guide_works() {
    let Some(_machine) = Machine::take() else { return };
    let names = ["tablet1", "tablet2", "desk"];
    let bss = Bss::new(&names);
    // The air: what all send to the desk shares one queue of 150 kB, about 60 ms.
    bss.ip("air", "link set desk-wlan0 txqueuelen 1000");
    let air = bss.name("air");
    must(
        "tc",
        &format!("-n {air} qdisc add dev desk-wlan0 root tbf rate 20mbit burst 10kb limit 150kb"),
    );
    let devices = names.map(|name| Device::start(&bss, name));
    let device = |name: &str| &devices[names.iter().position(|it| *it == name).unwrap()];
    for name in ["tablet1", "tablet2"] {
        bring(device(name));
    }
    for name in ["prometheus/alerts.yml", "grafana/wakeai.json"] {
        let packaging = wakeai_tests::root().join("packaging");
        let file = fs::read(packaging.join(name)).unwrap();
        device("desk").write(
            &format!("/root/{}", name.split('/').next_back().unwrap()),
            &file,
            0o644,
        );
    }
    let mut told = 0;
    for block in blocks(GUIDE) {
        let here = device(block.machine);
        if block.machine == "tablet2" && block.commands.contains("group.key /etc") {
            here.write(
                "/root/group.key",
                device("tablet1").read("/etc/wakeai/group.key").as_bytes(),
                0o600,
            );
        }
        let commands = &block.commands;
        let expected = SAID.iter().find(|(part, _)| block.commands.contains(part));
        told += usize::from(expected.is_some());
        wait_for(&format!("{commands}\nsays {expected:?}"), || {
            let output = here.run(commands);
            let (said, log) = (stdout(&output), here.read("/run/units/wakeai-agent.log"));
            println!("$ {commands}\n{said}{}", stderr(&output));
            assert!(
                output.status.success(),
                "{commands}\n{said}\n{}\nagent: {log}",
                stderr(&output)
            );
            let has = |words: &&&str| said.contains(**words);
            expected.is_none_or(|(_, words)| words.iter().all(|it| has(&it))).then_some(())
        });
        without_radio(here);
    }
    assert_eq!(told, SAID.len(), "the guide has changed");
    let left = device("tablet1").run("wakeai status --json");
    let status: Value = serde_json::from_str(&stdout(&left)).unwrap();
    assert_eq!(status["status"]["state"], "controlling");
    drop(devices);
    drop(bss);
    nothing_left();
}

/// Debian's package, as `make deb` has made it, or the one that `WAKEAI_DEB` names.
fn package() -> PathBuf {
    if let Some(path) = std::env::var_os("WAKEAI_DEB") {
        return path.into();
    }
    let made = wakeai_tests::root().join("target/debian");
    let files = fs::read_dir(&made).into_iter().flatten().map(|entry| entry.unwrap().path());
    let mut packages: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|it| it == "deb")).collect();
    assert_eq!(packages.len(), 1, "one package in {}: make deb", made.display());
    packages.remove(0)
}

/// Copies to a tablet what the guide tells to copy.
fn bring(tablet: &Device) {
    let package = package();
    let name = package.file_name().unwrap().to_str().unwrap();
    tablet.write(&format!("/root/{name}"), &fs::read(&package).unwrap(), 0o644);
}

/// Completes the configuration that a tablet may have by now, for an interface that is no radio.
fn without_radio(tablet: &Device) {
    let configuration = tablet.read("/etc/wakeai/agent.toml");
    let complete = configuration.lines().any(|line| line.starts_with("bssid"));
    if !configuration.is_empty() && !complete {
        tablet.write(
            "/etc/wakeai/agent.toml",
            format!("{NO_RADIO}{configuration}").as_bytes(),
            0o644,
        );
    }
}
