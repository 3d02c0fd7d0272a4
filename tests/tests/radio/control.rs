//! What Linux decides above the air: roaming; and what a capture says of the frames.

use std::process::Command;

use crate::air::THREE;
use crate::run;

/// From one access point of a network to the other, on another channel, during a ping ten times a second.
#[test]
#[ignore = "boots a guest: minutes"]
fn a_station_roams_between_two_access_points_and_the_capture_has_it() {
    let scenario =
        format!("{THREE}[[bss]]\nname = \"one\"\n[[bss]]\nname = \"other\"\nchannel = 6\n")
            .replace("count = 2", "bss = \"one\"");
    let Some(said) = run("roam", &[("/air.toml", &scenario)]) else { return };
    let line = |word: &str| said.lines(word).next().unwrap_or_default().to_owned();
    let (roam, now, pinged) = (line("ROAM"), line("NOW"), line("PINGED"));
    println!("{roam}; {now}; {pinged}");
    let (first, last) = (roam.split("from ").nth(1).unwrap(), now.as_str());
    assert!(roam.starts_with("OK") && first != last && last.contains(" at 24"), "{roam} {now}");
    let received: u32 =
        pinged.split(", ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(received >= 36, "{pinged}");
    let counted = said.json("COUNTED");
    assert_eq!(counted["faithful"], true, "{counted}");
    let station = counted["radios"].as_array().unwrap().iter().find(|radio| radio["name"] == "sta");
    let frequency = station.unwrap()["frequency_mhz"].to_string();
    assert!(last.ends_with(&frequency), "{last}: {frequency}");
    read(&said.console);
}

/// Reads the capture in the console with tshark, where that is installed.
fn read(console: &str) {
    let text = console.split("CAPTURE").nth(1).unwrap().split("END OF").next().unwrap();
    let text: String = text.chars().filter(|letter| *letter != '\r').collect();
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("air.pcap");
    let encoded = file.with_extension("base64");
    std::fs::write(&encoded, text.trim()).unwrap();
    let decoded = Command::new("base64").arg("-d").arg(&encoded).output().unwrap();
    std::fs::write(&file, decoded.stdout).unwrap();
    let fields = [
        "radiotap.datarate",
        "radiotap.channel.freq",
        "radiotap.data_retries",
        "wlan.fc.type_subtype",
    ];
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(&file).args(["-T", "fields"]);
    for field in fields {
        tshark.args(["-e", field]);
    }
    let Ok(read) = tshark.output() else {
        assert!(std::env::var_os("WAKEAI_REQUIRE_KERNEL").is_none(), "tshark is not installed");
        println!("SKIPPED: tshark is not installed: nothing has read {}", file.display());
        return;
    };
    let lines = String::from_utf8(read.stdout).unwrap();
    let rows: Vec<Vec<&str>> = lines.lines().map(|line| line.split('\t').collect()).collect();
    let beacons = |frequency: &str| {
        rows.iter().filter(|row| row[..] == ["6", frequency, "0", "0x0008"]).count()
    };
    println!("{} frames; {} and {} beacons", rows.len(), beacons("2412"), beacons("2437"));
    assert!(beacons("2412") > 20 && beacons("2437") > 20, "{lines}");
    // An association on each of the channels.
    let requests = rows.iter().filter(|row| row[3] == "0x0000" || row[3] == "0x0002");
    let channels: std::collections::BTreeSet<&str> = requests.map(|row| row[1]).collect();
    assert_eq!(channels.len(), 2, "{lines}");
}
