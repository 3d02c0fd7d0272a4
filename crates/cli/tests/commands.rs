//! The output and the exit status of commands that need neither an agent nor a lab.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output};

use wakeai_tests::{Machine, stderr, stdout, wakeai};

const COMMANDS: [&str; 14] = [
    "sim",
    "lab",
    "medium",
    "agent",
    "status",
    "monitor",
    "top",
    "probe",
    "proxy",
    "use",
    "doctor",
    "completion",
    "man",
    "sweep",
];

#[test]
fn help_names_every_command_and_every_exit_status() {
    let help = wakeai(&["--help"]);
    assert!(help.status.success());
    let text = stdout(&help);
    for command in COMMANDS {
        assert!(text.contains(&format!("\n  {command} ")), "{command} is not in:\n{text}");
        assert!(wakeai(&[command, "--help"]).status.success());
    }
    for status in ["  0 ", "  1 ", "  2 ", "  77 ", "  130 "] {
        assert!(text.contains(status), "{text}");
    }
}

#[test]
fn the_directory_of_the_state_may_be_another_one_but_not_a_relative_one() {
    let with = |run: &Path| {
        let mut wakeai = Command::new(env!("CARGO_BIN_EXE_wakeai"));
        wakeai.arg("status").env("WAKEAI_RUN", run).output().unwrap()
    };
    let refused = with(Path::new("run/wakeai"));
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("WAKEAI_RUN is \"run/wakeai\""), "{}", stderr(&refused));
    let dir = tempfile::tempdir().unwrap();
    let elsewhere = with(&dir.path().join("wakeai"));
    assert_eq!(elsewhere.status.code(), Some(1));
    let place = format!("no socket in {}/wakeai", dir.path().display());
    assert!(stderr(&elsewhere).contains(&place), "{}", stderr(&elsewhere));
}

#[test]
fn the_reference_page_names_every_option_of_each_probe() {
    let page = include_str!("../../../docs/reference/cli.md");
    let help = stdout(&wakeai(&["probe", "--help"]));
    let probes = help.split("Commands:").nth(1).unwrap().lines().skip(1);
    let probes =
        probes.map_while(|line| line.trim().split(' ').next().filter(|one| !one.is_empty()));
    let probes: Vec<&str> = probes.filter(|probe| *probe != "help").collect();
    assert!(probes.len() >= 2, "{help}");
    for probe in probes {
        let heading = format!("### wakeai probe {probe}\n");
        let section = page.split(heading.as_str()).nth(1).unwrap_or_else(|| panic!("{heading}"));
        let section = section.split("\n##").next().unwrap();
        let help = stdout(&wakeai(&["probe", probe, "--help"]));
        let options = help.lines().filter_map(|line| line.trim().strip_prefix("--"));
        for option in options.map(|line| line.split([' ', ',']).next().unwrap()) {
            assert!(section.contains(&format!("`--{option}")), "{probe}: {option}");
        }
    }
}

#[test]
fn the_reference_page_names_every_option() {
    let page = include_str!("../../../docs/reference/cli.md");
    for command in COMMANDS {
        assert!(page.contains(&format!("## wakeai {command}")), "{command}");
        let help = stdout(&wakeai(&[command, "--help"]));
        let options =
            help.split([' ', '\n', ',', '`', '[', ']']).filter(|word| word.starts_with("--"));
        for option in options.filter(|option| *option != "--help") {
            assert!(page.contains(option), "{command} {option}");
        }
    }
}

#[test]
fn bad_usage_exits_with_2() {
    let cases: [&[&str]; 22] = [
        &["use"],
        &["use", "bbr", "--list"],
        &["use", "bbr", "--connections", "--unit", "x.service"],
        &["use", "bbr", "--to", "192.0.2.0/24"],
        &["use", "bbr", "--route", "192.0.2.1/24"],
        &["use", "wakeai_av", "--rate", "0bit/s"],
        &["use", "--set", "1"],
        &["use", "--undo", "some"],
        &[],
        &["fly"],
        &["sim"],
        &["sim", "x.toml", "--jobs", "0"],
        &["sim", "x.toml", "--lateness-max", "1ms"],
        &["lab"],
        &["lab", "x.toml", "--repeat", "0"],
        &["lab", "x.toml", "--set", "novalue"],
        &["monitor", "--duration", "10"],
        &["probe", "air", "--interval", "1ms"],
        &["monitor", "--port", "70000"],
        &["completion", "cobol"],
        &["man", "no-such-page"],
        &["man", "lab", "--list"],
    ];
    for arguments in cases {
        let found = wakeai(arguments);
        assert_eq!(found.status.code(), Some(2), "{arguments:?}");
        assert_eq!(stdout(&found), "", "{arguments:?}");
    }
}

#[test]
fn probe_air_without_wi_fi_says_what_to_do() {
    let Some(_machine) = Machine::take() else { return };
    let cases: [(&[&str], &str); 3] = [
        (&[], "this network namespace has no Wi-Fi interface"),
        (&["--json", "--interface", "lo"], "this network namespace has no Wi-Fi interface"),
        (&["--interface", "wlan7"], "this network namespace has no interface wlan7; it has: lo"),
    ];
    for (arguments, expected) in cases {
        let mut command = Command::new("unshare");
        command.args(["--net", env!("CARGO_BIN_EXE_wakeai"), "probe", "air"]).args(arguments);
        let found = command.output().unwrap();
        assert_eq!((found.status.code(), stdout(&found)), (Some(1), String::new()));
        assert!(stderr(&found).contains(expected), "{}", stderr(&found));
    }
}

#[test]
fn the_lab_says_why_it_runs_one_at_a_time() {
    let found = wakeai(&["lab", "x.toml", "--jobs", "2"]);
    assert_eq!(found.status.code(), Some(2));
    assert!(stderr(&found).contains("one run at a time"), "{}", stderr(&found));
}

#[test]
fn a_bad_scenario_exits_with_2_and_names_line_and_key() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bad.toml");
    fs::write(&path, "name = \"bad\"\nduration = \"10s\"\nspeed = 9\n").unwrap();
    let found = wakeai(&["lab", path.to_str().unwrap(), "--json"]);
    assert_eq!(found.status.code(), Some(2));
    assert_eq!(stdout(&found), "");
    assert!(stderr(&found).contains("line 3"), "{}", stderr(&found));
    assert!(stderr(&found).contains("speed"), "{}", stderr(&found));
    let gone = wakeai(&["lab", "/nonexistent.toml"]);
    assert_eq!(gone.status.code(), Some(2));
}

fn check(directory: &Path, text: &str) -> Output {
    let config = directory.join("agent.toml");
    fs::write(&config, text).unwrap();
    wakeai(&["agent", "--config", config.to_str().unwrap(), "--check"])
}

#[test]
fn check_accepts_a_good_configuration_and_names_problems() {
    let directory = tempfile::tempdir().unwrap();
    let key = directory.path().join("group.key");
    let made = wakeai(&["agent", "--generate-key", key.to_str().unwrap()]);
    assert!(made.status.success(), "{}", stderr(&made));
    let shown = key.display().to_string();
    let good = format!(
        "interface = \"lo\"\nkey_file = {shown:?}\nbssid = \"02:00:00:00:00:01\"\nstation = 1\n"
    );
    assert!(check(directory.path(), &good).status.success());
    let cases = [
        (
            format!("{good}[law]\nname = \"fast\"\n"),
            ": line 6, column 8: `law.name`: found \"fast\"; allowed: \"none\"",
        ),
        (
            format!("{good}[presence]\nport = 0\n"),
            ": line 6, column 8: `presence.port`: found 0; allowed: ",
        ),
        (format!("{good}[log]\nlevel = \"a=b=c\"\n"), "log.level: found \"a=b=c\", expected"),
        (
            "interface = \"wlan0\"\nkey_file = \"/nonexistent\"\n".to_owned(),
            "key file /nonexistent",
        ),
    ];
    for (text, expected) in cases {
        let found = check(directory.path(), &text);
        assert_eq!(found.status.code(), Some(2), "{text}");
        assert!(stderr(&found).contains(expected), "{text}: {}", stderr(&found));
        assert_eq!(stdout(&found), "");
    }
    fs::set_permissions(&key, fs::Permissions::from_mode(0o604)).unwrap();
    let open = check(directory.path(), &good);
    assert_eq!(open.status.code(), Some(2));
    assert!(stderr(&open).contains("found mode 604, allowed is at most 640"), "{}", stderr(&open));
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&key, "short\n").unwrap();
    let short = check(directory.path(), &good);
    assert_eq!(short.status.code(), Some(2));
    assert!(stderr(&short).contains("line 1: found a line of 5 characters"), "{}", stderr(&short));
}

#[test]
fn check_finds_another_file_at_the_path_of_the_socket() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let key = path("group.key");
    wakeai_agent::key::GroupKeys::generate(&key).unwrap();
    fs::create_dir(path("archive")).unwrap();
    fs::write(path("notes.txt"), "mine").unwrap();
    std::os::unix::fs::symlink(path("nowhere"), path("link")).unwrap();
    let _live = std::os::unix::net::UnixListener::bind(path("live.sock")).unwrap();
    drop(std::os::unix::net::UnixListener::bind(path("dead.sock")).unwrap());
    let cases = [
        ("archive", Some("found a directory, expected nothing")),
        ("notes.txt", Some("found a regular file, expected nothing")),
        ("link", Some("found a symbolic link, expected nothing")),
        ("none/agent.sock", Some("No such file or directory")),
        ("dead.sock", None),
        ("agent.sock", None),
    ];
    // Only root can see whether a process listens on the socket.
    let live = ("live.sock", Some("a process listens at"));
    for (name, expected) in
        cases.into_iter().chain(nix::unistd::geteuid().is_root().then_some(live))
    {
        let socket = path(name);
        let text = format!(
            "interface = \"lo\"\nkey_file = {key:?}\nbssid = \"02:00:00:00:00:01\"\nstation = 1\n\
             [api]\nsocket = {socket:?}\n"
        );
        let found = check(directory.path(), &text);
        let said = stderr(&found);
        let Some(expected) = expected else {
            assert!(found.status.success(), "{name}: {said}");
            continue;
        };
        assert_eq!(found.status.code(), Some(2), "{name}: {said}");
        assert!(said.contains("api.socket: "), "{name}: {said}");
        assert!(
            said.contains(expected) && said.contains(socket.to_str().unwrap()),
            "{name}: {said}"
        );
    }
    assert_eq!(fs::read(path("notes.txt")).unwrap(), b"mine");
}

#[test]
fn an_existing_key_is_kept_and_the_advice_works() {
    let directory = tempfile::tempdir().unwrap();
    let key = directory.path().join("group.key");
    let generate = || wakeai(&["agent", "--generate-key", key.to_str().unwrap()]);
    assert!(generate().status.success());
    let before = fs::read(&key).unwrap();
    let again = generate();
    assert_eq!(again.status.code(), Some(1));
    assert_eq!(fs::read(&key).unwrap(), before);
    let said = stderr(&again);
    assert!(
        !said.contains("make a key with"),
        "the advice must not be the command that failed: {said}"
    );
    assert!(said.contains("exists") && said.contains("is not replaced"), "{said}");
    // The advice for a new key.
    let advice = format!("mv {0} {0}.old", key.display());
    assert!(said.contains(&advice), "{said}");
    let words: Vec<_> = advice.split(' ').collect();
    assert!(Command::new(words[0]).args(&words[1..]).status().unwrap().success());
    assert!(generate().status.success());

    let nowhere = directory.path().join("none/group.key");
    let made = wakeai(&["agent", "--generate-key", nowhere.to_str().unwrap()]);
    let said = stderr(&made);
    assert!(
        said.contains("No such file or directory") && !said.contains("make a key with"),
        "{said}"
    );
}

#[test]
fn tcp_av_needs_a_rate_to_hold() {
    let asked: [&[&str]; 5] = [
        // This namespace does not exist, so the command would change nothing if it were accepted.
        &["use", "wakeai_av", "--namespace", "wkt-nowhere"],
        &["use", "wakeai_av", "--namespace", "wkt-nowhere", "--for", "1s"],
        &["use", "wakeai_av", "--namespace", "wkt-nowhere", "--connections"],
        &["proxy", "--algorithm", "wakeai_av"],
        &["proxy", "--algorithm", "wakeai_av", "--listen", "127.0.0.1:0"],
    ];
    for arguments in asked {
        // A command that is accepted runs until it is ended.
        let found = Command::new("timeout")
            .args(["--signal=INT", "5", env!("CARGO_BIN_EXE_wakeai")])
            .args(arguments)
            .output()
            .unwrap();
        assert_eq!(found.status.code(), Some(2), "{arguments:?}: {}", stderr(&found));
        let said = stderr(&found);
        assert!(said.contains("wakeai_av holds a target rate"), "{arguments:?}: {said}");
        assert!(said.contains("--rate 5Mbit/s"), "{arguments:?}: {said}");
    }
}

#[test]
fn a_completion_script_knows_commands_and_options() {
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout(&wakeai(&["completion", shell]));
        for word in ["monitor", "every-ack", "generate-key"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
}

#[test]
fn man_prints_what_it_writes_into_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let written = wakeai(&["man", "--all", directory.path().to_str().unwrap()]);
    assert!(written.status.success(), "{}", stderr(&written));
    let list = stdout(&wakeai(&["man", "--list"]));
    let file = |section: &str, name: &str| {
        directory.path().join(format!("man{section}")).join(format!("{name}.{section}"))
    };
    let mut pages = 0;
    for line in list.lines() {
        let (name, section) = line.trim_end_matches(')').split_once('(').unwrap();
        assert!(file(section, name).is_file(), "{line}");
        pages += 1;
    }
    assert!(pages > 20, "{list}");
    let cases: [(&[&str], &str, &str); 3] = [
        (&["man"], "1", "wakeai"),
        (&["man", "probe-buffer"], "1", "wakeai-probe-buffer"),
        (&["man", "agent.toml"], "5", "wakeai-agent.toml"),
    ];
    for (arguments, section, name) in cases {
        let printed = stdout(&wakeai(arguments));
        assert!(printed.starts_with(".TH "), "{printed}");
        assert_eq!(printed, fs::read_to_string(file(section, name)).unwrap());
    }
}

#[test]
fn the_doctor_finds_the_same_in_words_and_in_json() {
    let json = wakeai(&["doctor", "--json"]);
    let found: serde_json::Value = serde_json::from_str(&stdout(&json)).unwrap();
    let text = stdout(&wakeai(&["doctor"]));
    assert!(text.contains(found["kernel"].as_str().unwrap()));
    for finding in found["findings"].as_array().unwrap() {
        assert!(text.contains(finding["name"].as_str().unwrap()), "{text}");
        let is_ok = finding["ok"].as_bool().unwrap();
        assert_eq!(
            is_ok,
            finding["remedy"].is_null(),
            "every missing feature has a remedy: {finding}"
        );
        assert_eq!(is_ok, finding["level"] == "ok", "{finding}");
    }
    let able = found["can_monitor"] == true && found["can_bound"] == true;
    assert_eq!(json.status.code(), Some(if able { 0 } else { 77 }));
    assert_eq!(able, findings(&found, "missing").is_empty(), "{text}");
    assert_eq!(able, !text.contains("MISSING"), "{text}");
}

/// The names of the findings of this level.
fn findings(said: &serde_json::Value, level: &str) -> Vec<String> {
    let all = said["findings"].as_array().unwrap().iter();
    let name = |finding: &serde_json::Value| finding["name"].as_str().unwrap().to_owned();
    all.filter(|finding| finding["level"] == level).map(name).collect()
}

#[test]
fn without_root_the_doctor_marks_only_needed_features_missing() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let program = wakeai_tests::program_in(directory.path());
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let run = |arguments: &[&str]| {
        // iperf3 is not in the path. Only the lab needs it, so the finding is a note and no error.
        let mut command = Command::new(&program);
        command.args(arguments).env("PATH", directory.path()).uid(65534).gid(65534);
        command.output().unwrap()
    };
    let json = run(&["doctor", "--json"]);
    assert_eq!(json.status.code(), Some(77));
    let found: serde_json::Value = serde_json::from_str(&stdout(&json)).unwrap();
    let all = wakeai(&["doctor", "--json"]);
    let as_root: serde_json::Value = serde_json::from_str(&stdout(&all)).unwrap();
    if findings(&as_root, "missing").is_empty() {
        assert_eq!(findings(&found, "missing"), ["capabilities"]);
        let said = stderr(&json);
        assert!(said.trim_end().ends_with("required features are missing: capabilities"), "{said}");
    }
    assert!(findings(&found, "note").contains(&"iperf3".to_owned()), "{found}");
    let text = stdout(&run(&["doctor"]));
    assert!(text.contains("note     iperf3: not found"), "{text}");
    assert!(text.contains("MISSING  capabilities: CAP_BPF"), "{text}");
}

#[test]
fn without_agents_status_fails_and_says_what_to_do() {
    let found = wakeai(&["status", "--socket", "/nonexistent.sock"]);
    assert_eq!(found.status.code(), Some(1));
    assert!(stderr(&found).contains("/nonexistent.sock"), "{}", stderr(&found));
}

#[test]
fn a_namespace_that_does_not_exist_is_bad_usage() {
    let found = wakeai(&["monitor", "--netns", "wkt-nowhere"]);
    assert_eq!(found.status.code(), Some(2));
    assert!(stderr(&found).contains("expected a name that `ip netns` lists"), "{}", stderr(&found));
}

#[test]
fn without_privileges_every_command_that_needs_them_exits_with_77_and_names_them() {
    let Some(_machine) = Machine::take() else { return };
    let directory = tempfile::tempdir().unwrap();
    let program = wakeai_tests::program_in(directory.path());
    let key = directory.path().join("group.key");
    wakeai_agent::key::GroupKeys::generate(&key).unwrap();
    std::os::unix::fs::chown(&key, Some(65534), None).unwrap();
    let config = directory.path().join("agent.toml");
    let shown = key.display().to_string();
    let text = format!("interface = \"lo\"\nkey_file = {shown:?}\nbssid = \"02:00:00:00:00:01\"\n");
    fs::write(&config, text).unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();

    let run = |arguments: &[&str]| {
        Command::new(&program).args(arguments).uid(65534).gid(65534).output().unwrap()
    };
    for arguments in [
        &["monitor", "--duration", "1s"] as &[&str],
        &["agent", "--config", config.to_str().unwrap()],
        &["use", "bbr"],
        &["doctor"],
    ] {
        let found = run(arguments);
        assert_eq!(found.status.code(), Some(77), "{arguments:?}: {}", stderr(&found));
        let said = stderr(&found) + &stdout(&found);
        assert!(said.contains("CAP_BPF"), "{arguments:?}: {said}");
    }
    assert!(
        run(&["completion", "bash"]).status.success(),
        "a command that needs no privilege works"
    );
}
