//! What Linux decides above the air: roaming; and what a capture says of the frames.

use std::process::Command;

use crate::air::THREE;
use crate::run;

/// From one access point of a network to the other, on another channel, during a ping ten times a second.
#[test]
#[ignore = "boots a guest: minutes"]
fn a_station_roams_between_two_access_points_and_the_capture_has_it() {
    let of_n = THREE.replace("802.11g", "802.11n");
    let scenario =
        format!("{of_n}[[bss]]\nname = \"one\"\n[[bss]]\nname = \"other\"\nchannel = 6\n")
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

/// The fields of the frames in the capture in the console, as tshark reads them; `None` where that is not installed.
pub(crate) fn captured(console: &str, names: &[&str]) -> Option<String> {
    let text = console.split("CAPTURE").nth(1).unwrap().split("END OF").next().unwrap();
    let text: String = text.chars().filter(|letter| *letter != '\r').collect();
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let [encoded, packed, file] =
        ["air.base64", "air.pcap.gz", "air.pcap"].map(|name| directory.path().join(name));
    std::fs::write(&encoded, text.trim()).unwrap();
    let output = |program: &str, file: &std::path::Path| {
        let run = Command::new(program).arg("-d").arg(file).output().unwrap();
        assert!(run.status.success(), "{run:?}");
        run.stdout
    };
    std::fs::write(&packed, output("base64", &encoded)).unwrap();
    let done = Command::new("gzip").arg("-d").arg(&packed).status().unwrap();
    assert!(done.success());
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(&file).args(["-T", "fields"]);
    for name in names {
        tshark.args(["-e", name]);
    }
    let Ok(read) = tshark.output() else {
        assert!(std::env::var_os("WAKEAI_REQUIRE_KERNEL").is_none(), "tshark is not installed");
        println!("SKIPPED: tshark is not installed: nothing has read {}", file.display());
        return None;
    };
    Some(String::from_utf8(read.stdout).unwrap())
}

/// The fields of each frame.
pub(crate) fn fields(lines: &str) -> impl Iterator<Item = Vec<&str>> {
    lines.lines().map(|line| line.split('\t').collect())
}

fn read(console: &str) {
    let names = [
        "radiotap.datarate",
        "radiotap.channel.freq",
        "radiotap.data_retries",
        "wlan.fc.type_subtype",
        "radiotap.mcs.index",
        "radiotap.mcs.gi",
        "radiotap.mcs.bw",
    ];
    let Some(lines) = captured(console, &names) else { return };
    let rows: Vec<Vec<&str>> = fields(&lines).collect();
    let beacons = |frequency: &str| {
        rows.iter().filter(|row| row[..4] == ["6", frequency, "0", "0x0008"]).count()
    };
    println!("{} frames; {} and {} beacons", rows.len(), beacons("2412"), beacons("2437"));
    assert!(beacons("2412") > 20 && beacons("2437") > 20, "{lines}");
    // An association on each of the channels.
    let requests = rows.iter().filter(|row| row[3] == "0x0000" || row[3] == "0x0002");
    let channels: std::collections::BTreeSet<&str> = requests.map(|row| row[1]).collect();
    assert_eq!(channels.len(), 2, "{lines}");
    // Frames of HT have an MCS, and tshark finds their rate by it. The pings were sent at the one that is pinned.
    let data: Vec<_> = rows.iter().filter(|row| !row[4].is_empty()).collect();
    for row in &data {
        let index: usize = row[4].parse().unwrap();
        let of_one_stream = [6.5, 13.0, 19.5, 26.0, 39.0, 52.0, 58.5, 65.0][index % 8];
        let expected = of_one_stream * (index / 8 + 1) as f64;
        assert_eq!((row[0], row[5], row[6]), (&*expected.to_string(), "0", "0"), "{row:?}");
    }
    let pinned = data.iter().filter(|row| row[4] == "5" && row[3] == "0x0028").count();
    println!("{} frames of HT, {pinned} of data at MCS 5", data.len());
    assert!(pinned >= 40, "{lines}");
}
