//! Machines for tests: the hosts of `wakeai lab --hold`, each with an sshd and a /run of its own, and a network apart from the
//! measured one, over which a controlling namespace reaches them.
//!
//! All share one kernel, whose congestion controls belong to all. So they share the records of what is registered
//! (`/run/wakeai`), as the stations of a lab do; everything is named by its network namespace there.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;
use wakeai_tests::{must, wait_for};

/// The address of the control network at which this host's sshd listens.
fn control_address(index: usize) -> String {
    format!("10.99.1.{}", index + 1)
}

/// The programs that were brought along. The machines share /tmp.
pub(crate) fn brought() -> Vec<String> {
    let entries = fs::read_dir(std::env::temp_dir()).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("wakeai-field.")).collect()
}

/// The longest wait until nothing is left. It is shorter than the usual `--grace`, so that what ends before ends before its
/// deadline.
const PATIENCE: Duration = Duration::from_secs(45);

/// The hosts of a scenario as machines.
pub(crate) struct Rig {
    pub(crate) directory: TempDir,
    lab: Option<Child>,
    held: Value,
    control: String,
    daemons: Vec<Child>,
    scenario: PathBuf,
    /// What was on the machines before the experiment.
    before: Vec<String>,
}

impl Rig {
    /// Holds the network of `scenario`, and starts an sshd in each host.
    pub(crate) fn new(scenario: &str) -> Self {
        fs::create_dir_all("/run/wakeai").unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("scenario.toml");
        fs::write(&path, scenario).unwrap();
        // `ip netns` makes the directory of names a mount of its own, which has to come before the lab's names.
        let control = format!("wkf-{}-control", std::process::id());
        must("ip", &format!("netns add {control}"));
        let mut lab = Command::new(wakeai_tests::program())
            .args(["lab", path.to_str().unwrap(), "--hold", "--json"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(lab.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let held = serde_json::from_str(&line).unwrap();
        let mut rig = Self {
            directory,
            lab: Some(lab),
            held,
            control,
            daemons: Vec::new(),
            scenario: path,
            before: Vec::new(),
        };
        rig.ip_control("link set lo up");
        rig.ip_control("link add br0 type bridge");
        rig.ip_control("addr add 10.99.0.1/16 dev br0");
        rig.ip_control("link set br0 up");
        rig.keys();
        for index in 0..rig.hosts().len() {
            rig.connect(index);
            rig.start_sshd(index, "true");
        }
        rig.write_files("");
        rig.before = rig.present();
        rig
    }

    fn hosts(&self) -> &Vec<Value> {
        self.held["hosts"].as_array().unwrap()
    }

    /// The place of a host among all: the server is 0.
    pub(crate) fn index(&self, host: &str) -> usize {
        self.hosts().iter().position(|one| one["name"] == host).unwrap()
    }

    pub(crate) fn namespace(&self, host: &str) -> String {
        self.hosts()[self.index(host)]["namespace"].as_str().unwrap().to_owned()
    }

    fn ip_control(&self, arguments: &str) {
        must("ip", &format!("-n {} {arguments}", self.control));
    }

    /// Runs `ip` in a host.
    pub(crate) fn ip(&self, host: &str, arguments: &str) {
        must("ip", &format!("-n {} {arguments}", self.namespace(host)));
    }

    /// Takes a host off the control network, or puts it back.
    pub(crate) fn cable(&self, host: &str, state: &str) {
        self.ip_control(&format!("link set m{} {state}", self.index(host)));
    }

    /// Cuts the connections of ssh to a host: a cable that is out for a moment does not end them.
    pub(crate) fn cut_connections(&self, host: &str) {
        let mut sessions = self.processes(host);
        let listener = self.daemon(host).cast_signed();
        sessions.retain(|(pid, command)| *pid != listener && command.starts_with("sshd: "));
        assert!(!sessions.is_empty(), "{:?}", self.processes(host));
        for (pid, _) in sessions {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL); // the end of one ends the other
        }
    }

    fn file(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    fn keys(&self) {
        for name in ["host", "user"] {
            let path = self.file(name);
            let mut command = Command::new("ssh-keygen");
            command.args(["-q", "-t", "ed25519", "-N", "", "-f", &path]);
            assert!(command.status().unwrap().success());
        }
        fs::copy(self.file("user.pub"), self.file("authorized")).unwrap();
    }

    /// Lays a cable of the control network to a host.
    fn connect(&self, index: usize) {
        let (namespace, control) =
            (self.hosts()[index]["namespace"].as_str().unwrap(), &self.control);
        let address = control_address(index);
        must(
            "ip",
            &format!("-n {namespace} link add mgmt0 type veth peer name m{index} netns {control}"),
        );
        must("ip", &format!("-n {namespace} addr add {address}/16 dev mgmt0"));
        must("ip", &format!("-n {namespace} link set mgmt0 up"));
        must("ip", &format!("-n {namespace} link set lo up"));
        self.ip_control(&format!("link set m{index} master br0 up"));
    }

    /// Starts the sshd of a host, in a mount namespace with a /run of its own, after `first` has run there.
    pub(crate) fn start_sshd(&mut self, index: usize, first: &str) {
        let address = control_address(index);
        let [config, host, authorized, bind] =
            ["sshd", "host", "authorized", "bind"].map(|name| self.file(name));
        let config = format!("{config}{index}");
        let text = format!(
            "Port 22\nListenAddress {address}\nHostKey {host}\nPidFile none\nAuthorizedKeysFile {authorized}\n\
             PasswordAuthentication no\nKbdInteractiveAuthentication no\nUsePAM no\nStrictModes no\n\
             PermitRootLogin prohibit-password\n"
        );
        fs::write(&config, text).unwrap();
        // What a user's shell does at its start (some of it takes locks) is no part of a machine for tests.
        let script = format!(
            "mkdir -p {bind}{index} && mount --bind /run/wakeai {bind}{index} && mount -t tmpfs none /run && \
             mkdir -p /run/sshd /run/wakeai && mount --bind {bind}{index} /run/wakeai && {first} && \
             {{ [ ! -f ~/.bashrc ] || mount --bind /dev/null ~/.bashrc; }} && \
             exec /usr/sbin/sshd -D -f {config}"
        );
        let namespace = self.hosts()[index]["namespace"].as_str().unwrap().to_owned();
        let daemon = Command::new("nsenter")
            .arg(format!("--net=/run/netns/{namespace}"))
            .args(["unshare", "--mount", "sh", "-c", &script])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        match self.daemons.get_mut(index) {
            Some(before) => *before = daemon,
            None => self.daemons.push(daemon),
        }
        let listening = format!("--net=/run/netns/{namespace}");
        wait_for("sshd listens", || {
            let output = Command::new("nsenter").args([&listening, "ss", "-ltn"]).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            text.contains(&format!("{address}:22")).then_some(())
        });
    }

    /// Writes the machines file, with `more` keys for each station, and the configuration of ssh.
    pub(crate) fn write_files(&self, more: &str) {
        let program = wakeai_tests::program();
        let broadcast = self.held["broadcast"].as_str().unwrap();
        let (mut machines, mut config) = (String::new(), String::new());
        for (index, host) in self.hosts().iter().enumerate() {
            let [name, interface, address] =
                ["name", "interface", "address"].map(|key| host[key].as_str().unwrap());
            let _ = writeln!(config, "Host {name}\n  HostName {}", control_address(index));
            let _ = writeln!(
                machines,
                "[[machines]]\nstation = \"{name}\"\nmachine = \"{name}\"\ninterface = \"{interface}\"\n\
                 address = \"{address}\""
            );
            let more = if index == 0 { "" } else { more };
            if !more.contains("program") {
                let _ = writeln!(machines, "program = \"{program}\"");
            }
            if index > 0 {
                let bssid = host["bssid"].as_str().unwrap();
                let _ =
                    writeln!(machines, "bssid = \"{bssid}\"\nbroadcast = \"{broadcast}\"\n{more}");
            }
        }
        let [user, known] = ["user", "known"].map(|name| self.file(name));
        let _ = writeln!(
            config,
            "Host *\n  User root\n  IdentityFile {user}\n  UserKnownHostsFile {known}\n  StrictHostKeyChecking accept-new"
        );
        fs::write(self.file("machines.toml"), machines).unwrap();
        fs::write(self.file("config"), config).unwrap();
        self.script("ssh", &format!("exec /usr/bin/ssh -F {} \"$@\"", self.file("config")));
    }

    /// The process of a host's sshd, which has the machine's mounts.
    pub(crate) fn daemon(&self, host: &str) -> u32 {
        self.daemons[self.index(host)].id()
    }

    /// The machines file after a change.
    pub(crate) fn edit_machines(&self, edit: impl FnOnce(String) -> String) {
        let path = self.file("machines.toml");
        fs::write(&path, edit(fs::read_to_string(&path).unwrap())).unwrap();
    }

    /// The bytes that the control network has carried to and from each host.
    pub(crate) fn carried(&self) -> Vec<u64> {
        let text = must("ip", &format!("-n {} -s -j link show", self.control));
        let links: Value = serde_json::from_str(&text).unwrap();
        let links = links.as_array().unwrap();
        let of = |index: usize| {
            let name = format!("m{index}");
            let link = links.iter().find(|link| link["ifname"] == name.as_str()).unwrap();
            let bytes = |way: &str| link["stats64"][way]["bytes"].as_u64().unwrap();
            bytes("rx") + bytes("tx")
        };
        (0..self.hosts().len()).map(of).collect()
    }

    /// Puts a program into the path of the controlling command.
    pub(crate) fn script(&self, name: &str, text: &str) {
        let bin = self.directory.path().join("bin");
        fs::create_dir_all(&bin).unwrap();
        let path = bin.join(name);
        wakeai_tests::write_program(&path, format!("#!/bin/sh\n{text}\n"));
    }

    /// `wakeai field` with the scenario and the machines, in the controlling namespace.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let path = format!("{}:{}", self.file("bin"), std::env::var("PATH").unwrap());
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.control)).arg(wakeai_tests::program());
        command.arg("field").arg(&self.scenario).args(["--machines", &self.file("machines.toml")]);
        command.args(arguments).env("PATH", path).stdin(Stdio::null());
        command
    }

    pub(crate) fn field(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// The processes in a host, with their commands.
    pub(crate) fn processes(&self, host: &str) -> Vec<(i32, String)> {
        let pids = must("ip", &format!("netns pids {}", self.namespace(host)));
        let pids = pids.lines().filter_map(|line| line.trim().parse().ok());
        let with_command = pids.map(|pid: i32| {
            let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            (pid, String::from_utf8_lossy(&command).replace('\0', " "))
        });
        with_command.collect()
    }

    /// The processes of Wakeai in a host.
    pub(crate) fn own_processes(&self, host: &str) -> Vec<(i32, String)> {
        let mut all = self.processes(host);
        all.retain(|(_, command)| command.contains("field-station") || command.contains(" agent "));
        all
    }

    /// Waits until a run goes on: until a flow of a host has its connection to the server's port.
    pub(crate) fn wait_for_traffic(&self, host: &str) {
        let namespace = format!("--net=/run/netns/{}", self.namespace(host));
        // Forty machines are reached, and their clocks compared one after another, before it begins.
        let give_up = Instant::now() + Duration::from_mins(3);
        loop {
            let output = Command::new("nsenter").args([&namespace, "ss", "-tn"]).output().unwrap();
            if String::from_utf8(output.stdout).unwrap().contains(":5201") {
                return;
            }
            assert!(Instant::now() < give_up, "no traffic flows within three minutes");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// What the experiment has left on the machines: network namespaces, algorithms, pins, files and processes that were not
    /// there before it.
    pub(crate) fn left(&self) -> Vec<String> {
        let mut left = self.present();
        left.retain(|found| !self.before.contains(found));
        left
    }

    /// What an experiment could leave on the machines.
    fn present(&self) -> Vec<String> {
        let named = |kind: &str, directory: &str| -> Vec<String> {
            let entries = fs::read_dir(directory).into_iter().flatten().flatten();
            entries.map(|entry| format!("{kind} {}", entry.path().display())).collect()
        };
        let mut present = named("network namespace", "/run/netns");
        present.extend(named("pin", "/sys/fs/bpf"));
        for directory in ["/run/wakeai", "/run/wakeai/leases"] {
            present.extend(named("file", directory));
        }
        let mut temporary = named("file", &std::env::temp_dir().display().to_string());
        temporary.retain(|file| file.contains("/wakeai-field"));
        present.extend(temporary);
        let algorithms = [
            must("bpftool", "struct_ops list"),
            fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap(),
        ];
        let algorithms = algorithms.iter().flat_map(|text| text.split_whitespace());
        let algorithms = algorithms.filter(|word| word.starts_with("wakeai_"));
        present.extend(algorithms.map(|name| format!("algorithm {name}")));
        for (host, daemon) in self.hosts().iter().zip(&self.daemons) {
            let name = host["name"].as_str().unwrap();
            let own = self.own_processes(name);
            present.extend(own.iter().map(|(pid, command)| format!("process {pid}: {command}")));
            // What the machine has in its own mounts.
            let root = format!("/proc/{}/root", daemon.id());
            let own =
                ["run", "sys/fs/bpf"].map(|directory| named("", &format!("{root}/{directory}")));
            let own = own.into_iter().flatten().map(|found| found.replace(&root, ""));
            present.extend(own.map(|found| format!("in {name}:{found}")));
            let namespace = format!("--net=/run/netns/{}", self.namespace(name));
            let default =
                must("nsenter", &format!("{namespace} sysctl -n net.ipv4.tcp_congestion_control"));
            present.push(format!("default of {name}: {}", default.trim()));
        }
        // The file of a lock stays, and the lab writes its lease again.
        let lab = self.lab.as_ref().map_or(String::new(), |lab| format!("/leases/{}-", lab.id()));
        present.retain(|found| !found.ends_with("/kernel.lock") && !found.contains(&lab));
        present
    }

    /// Waits until nothing is left on the machines: the deadline of each helper is a few seconds away.
    pub(crate) fn wait_until_nothing_is_left(&self) {
        let give_up = Instant::now() + PATIENCE;
        loop {
            let left = self.left();
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < give_up, "the machines have this left: {left:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        for mut daemon in self.daemons.drain(..) {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        let hosts: Vec<String> =
            self.hosts().iter().map(|host| host["name"].as_str().unwrap().to_owned()).collect();
        for (pid, _) in hosts.iter().flat_map(|host| self.processes(host)) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        if let Some(mut lab) = self.lab.take() {
            let _ = kill(Pid::from_raw(lab.id().cast_signed()), Signal::SIGINT);
            let _ = lab.wait();
        }
        let _ = Command::new("ip").args(["netns", "del", &self.control]).status();
        wakeai_tests::wakeai(&["sweep"]);
    }
}
