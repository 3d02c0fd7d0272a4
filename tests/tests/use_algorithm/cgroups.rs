//! New connections of the processes in a control group.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use wakeai_kernel::TcpSnapshot;

use crate::rig::{SERVER, Use, find, hosts, is_as_before, state};
use wakeai_tests::bss::Bss;
use wakeai_tests::{Machine, must, stderr, stdout, wait_for, wakeai};

/// A control group of the test, removed when dropped.
pub(crate) struct Group(pub(crate) PathBuf);

impl Group {
    pub(crate) fn new() -> Self {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let mut mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let root = mounts.find(|mount| mount[2] == "cgroup2").expect("these tests need cgroup v2");
        let path = PathBuf::from(root[1]).join(format!("wkt-use-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The group is busy for a moment after its last process has ended.
        for _ in 0..100 {
            let _ = fs::remove_dir(self.0.join("below"));
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        println!("{} stays", self.path());
    }
}

/// A process on host `a`, with one connection to the server; killed when dropped.
pub(crate) struct Client {
    child: Child,
    far: TcpStream,
}

impl Client {
    pub(crate) fn start(bss: &Bss, group: &str) -> Self {
        let listener = |address| move || TcpListener::bind(address).unwrap();
        let address = SocketAddr::from((SERVER, 0));
        let listener = bss.namespace("server").run(listener(address)).unwrap();
        let port = listener.local_addr().unwrap().port().to_string();
        let script = "echo $$ > $0/cgroup.procs && exec 3<>/dev/tcp/10.77.0.2/$1 && \
                      while read -u 3; do echo >&3; done";
        let child = Command::new("nsenter")
            .arg(format!("--net=/run/netns/{}", bss.name("a")))
            .args(["bash", "-c", script, group, &port])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let (far, _) = listener.accept().unwrap();
        Self { child, far }
    }

    pub(crate) fn algorithm(&self, bss: &Bss) -> String {
        self.look(bss).algorithm.to_string()
    }

    /// The cookie of its connection.
    pub(crate) fn cookie(&self, bss: &Bss) -> u64 {
        self.look(bss).socket.cookie
    }

    /// Sends a byte to the process and receives its answer.
    pub(crate) fn talk(&self) {
        (&self.far).write_all(b"\n").unwrap();
        (&self.far).read_exact(&mut [0]).unwrap();
    }

    fn move_to(&self, group: &Path) {
        fs::write(group.join("cgroup.procs"), self.child.id().to_string()).unwrap();
    }

    fn look(&self, bss: &Bss) -> TcpSnapshot {
        let (far, near) = (self.far.local_addr().unwrap(), self.far.peer_addr().unwrap());
        wait_for("the connection is seen", || find(bss, "a", near, far))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn new_connections_of_a_cgroup_and_no_others_get_the_algorithm() {
    let Some(_machine) = Machine::take() else { return };
    let (bss, group) = (hosts(), Group::new());
    let below = group.0.join("below");
    fs::create_dir(&below).unwrap();
    let root = group.0.parent().unwrap().to_str().unwrap().to_owned();
    let before = state(&bss);
    let earlier = Client::start(&bss, group.path());
    let mut running = Use::run(&format!("wakeai_cubic --cgroup {}", group.path()), &[]);
    let inside = Client::start(&bss, group.path());
    let deeper = Client::start(&bss, below.to_str().unwrap());
    let outside = Client::start(&bss, &root);
    wait_for("the connections of both processes have the algorithm", || {
        let ruled = [&inside, &deeper].map(|client| client.algorithm(&bss));
        (ruled == ["wakeai_cubic"; 2]).then_some(())
    });
    assert_eq!([&outside, &earlier].map(|client| client.algorithm(&bss)), ["reno"; 2]);

    running.ends_well();
    assert_eq!([&inside, &deeper].map(|client| client.algorithm(&bss)), ["reno"; 2]);
    assert_eq!(Client::start(&bss, group.path()).algorithm(&bss), "reno");
    drop((earlier, inside, deeper, outside));
    is_as_before(&bss, &before);
}

/// When systemd starts a unit again, it makes such a new cgroup for it.
#[test]
fn a_new_cgroup_in_the_same_place_is_covered_again() {
    let Some(_machine) = Machine::take() else { return };
    let (bss, group) = (hosts(), Group::new());
    let root = group.0.parent().unwrap().to_owned();
    let before = state(&bss);
    let mut running = Use::run(&format!("wakeai_cubic --cgroup {}", group.path()), &[]);
    let first = Client::start(&bss, group.path());
    wait_for("the algorithm is assigned", || {
        (first.algorithm(&bss) == "wakeai_cubic").then_some(())
    });

    first.move_to(&root);
    wait_for("the group is empty", || fs::remove_dir(&group.0).ok());
    fs::create_dir(&group.0).unwrap();
    // `wakeai use` notices the new cgroup after a moment, and does not cover connections opened
    // before.
    let second = wait_for("a new connection is covered", || {
        let client = Client::start(&bss, group.path());
        (client.algorithm(&bss) == "wakeai_cubic").then_some(client)
    });
    assert_eq!(first.algorithm(&bss), "wakeai_cubic");

    running.ends_well();
    assert_eq!([&first, &second].map(|client| client.algorithm(&bss)), ["reno"; 2]);
    drop((first, second));
    is_as_before(&bss, &before);
}

#[test]
fn a_program_for_new_connections_that_another_program_detaches_is_attached_again_and_listed() {
    let Some(_machine) = Machine::take() else { return };
    let (bss, group) = (hosts(), Group::new());
    let before = state(&bss);
    let mut running = Use::run(&format!("wakeai_cubic --cgroup {}", group.path()), &[]);
    let cgroup = fs::metadata(&group.0).unwrap().ino();
    let attached = || -> Option<u64> {
        let links: Vec<Value> = serde_json::from_str(&must("bpftool", "-j link show")).unwrap();
        links
            .iter()
            .find(|link| link["cgroup_id"] == cgroup)
            .map(|link| link["id"].as_u64().unwrap())
    };
    let first = attached().unwrap();
    must("bpftool", &format!("link detach id {first}"));
    let again = wait_for("it is attached again", attached);
    assert_ne!(again, first);
    let client = Client::start(&bss, group.path());
    wait_for("a new connection has the algorithm", || {
        (client.algorithm(&bss) == "wakeai_cubic").then_some(())
    });
    let list = wakeai(&["use", "--list", "--json"]);
    let listed: Value = serde_json::from_str(&stdout(&list)).unwrap();
    let drift = &listed["drifts"][0];
    assert_eq!(drift["found"], "no program that moves new connections of the cgroup");
    assert_eq!(drift["outcome"], "put back");
    running.ends_well();
    assert_eq!(client.algorithm(&bss), "reno");
    assert_eq!(attached(), None);
    drop(client);
    is_as_before(&bss, &before);
}

/// At first the limit of open files prevents the assignment to the new cgroup: it leaves one file
/// for the cgroup itself, and none for the BPF programs.
#[test]
fn one_that_could_not_be_ruled_when_it_was_made_anew_is_tried_again() {
    let Some(_machine) = Machine::take() else { return };
    let (bss, group) = (hosts(), Group::new());
    let before = state(&bss);
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut ruling = Use::logged(&format!("wakeai_cubic --cgroup {}", group.path()), log.path());
    let limit = |files: &str| must("prlimit", &format!("--pid {} --nofile={files}", ruling.id()));
    let path = format!("/proc/{}/fd", ruling.id());
    let free =
        (0..1024).find(|number| !Path::new(&path).join(number.to_string()).exists()).unwrap();
    limit(&format!("{}:", free + 1));
    fs::remove_dir(&group.0).unwrap();
    fs::create_dir(&group.0).unwrap();
    let warnings = || fs::read_to_string(log.path()).unwrap().matches("warning: ").count();
    wait_for("the group is refused", || (warnings() > 0).then_some(()));
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(warnings(), 1, "a refusal that lasts is reported once");
    limit("1024:");
    let client = wait_for("a new connection has the algorithm", || {
        let client = Client::start(&bss, group.path());
        (client.algorithm(&bss) == "wakeai_cubic").then_some(client)
    });
    ruling.ends_well();
    assert_eq!(client.algorithm(&bss), "reno");
    drop(client);
    is_as_before(&bss, &before);
}

#[test]
fn connections_that_a_cgroup_accepts_get_the_algorithm() {
    let Some(_machine) = Machine::take() else { return };
    let (bss, group) = (hosts(), Group::new());
    let place = group.path().strip_prefix(group.0.parent().unwrap().to_str().unwrap()).unwrap();
    let script = "echo $$ > $0/cgroup.procs && exec iperf3 --server --port 5299";
    let mut server = Command::new("nsenter")
        .arg(format!("--net=/run/netns/{}", bss.name("server")))
        .args(["bash", "-c", script, group.path()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // `--cgroup` names the cgroup by its place in the hierarchy, and `--to` gives a destination.
    let mut running = Use::run(&format!("wakeai_rtt --cgroup {place} --to 10.77.0.1"), &[]);
    let connect = || TcpStream::connect("10.77.0.2:5299").ok();
    let far_end = |near: &TcpStream| {
        let (near, far) = (near.local_addr().unwrap(), near.peer_addr().unwrap());
        wait_for("the server's end is seen", || find(&bss, "server", far, near)).algorithm
    };
    let near = wait_for("the server listens", || bss.namespace("a").run(connect).unwrap());
    wait_for("the algorithm is assigned", || (&*far_end(&near) == "wakeai_rtt").then_some(()));
    running.ends_well();
    let mut elsewhere = Use::run(&format!("wakeai_rtt --cgroup {place} --to 10.77.0.9"), &[]);
    let second = wait_for("the server accepts a second connection", || {
        bss.namespace("a").run(connect).unwrap()
    });
    assert_eq!(&*far_end(&second), "reno", "a connection to another destination is not covered");
    elsewhere.ends_well();
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn other_directories_and_the_root_cgroup_are_refused() {
    let Some(_machine) = Machine::take() else { return };
    let group = Group::new();
    let root = group.0.parent().unwrap().to_str().unwrap();
    for (path, expected) in [
        (root, "is the root"),
        ("/", "is the root"),
        ("/tmp", "expected a directory below"),
        ("/wkt-nowhere", "expected a directory below"),
    ] {
        let found = wakeai(&["use", "bbr", "--cgroup", path]);
        assert_eq!(found.status.code(), Some(2), "{path}");
        assert!(stderr(&found).contains(expected), "{path}: {}", stderr(&found));
    }
    assert!(must("bpftool", "cgroup tree").lines().all(|line| !line.contains("take_in_cgroup")));
}

#[test]
fn a_pattern_of_unit_names_is_refused() {
    let Some(_machine) = Machine::take() else { return };
    let _group = Group::new(); // there is a cgroup v2
    for unit in ["", "wkt-*", "wkt-[ab].service", "wkt-?"] {
        let found = wakeai(&["use", "bbr", "--unit", unit]);
        assert_eq!(found.status.code(), Some(2), "{unit:?}");
        assert!(stderr(&found).contains("expected the name of one unit"), "{}", stderr(&found));
    }
}

#[test]
fn without_cgroup_v2_the_exit_status_is_77() {
    let Some(_machine) = Machine::take() else { return };
    let script = "umount --all --types cgroup2 && exec \"$0\" use bbr --cgroup /any";
    let found = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, wakeai_tests::program()])
        .output()
        .unwrap();
    assert_eq!(found.status.code(), Some(77), "{}", stderr(&found));
    assert!(stderr(&found).contains("no cgroup v2"), "{}", stderr(&found));
}
