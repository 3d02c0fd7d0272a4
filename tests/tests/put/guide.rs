//! The commands of docs/guides/transfer.md, each run as it is printed.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use wakeai_tests::bss::Bss;
use wakeai_tests::guide::{Block, blocks};
use wakeai_tests::{Machine, stderr, wait_for};

const GUIDE: &str = include_str!("../../../docs/guides/transfer.md");

/// Whether the last command of a block runs until it is ended.
fn serves(block: &Block) -> bool {
    let last = block.commands.trim_end().rsplit('\n').next().unwrap_or_default();
    ["wakeai serve", "nginx ", "apache2 "].iter().any(|server| last.starts_with(server))
}

#[test]
fn each_command_of_the_guide_works() {
    let Some(_machine) = Machine::share() else { return };
    let bss = Bss::new(&["tablet", "server"]);
    let home = tempfile::tempdir().unwrap();
    fs::set_permissions(home.path(), Permissions::from_mode(0o755)).unwrap();
    fs::write(home.path().join("hosts"), "127.0.0.1 localhost\n10.77.0.2 server.example\n")
        .unwrap();
    for machine in ["tablet", "server"] {
        fs::create_dir(home.path().join(machine)).unwrap();
    }
    let mut server = None;
    let mut ran = 0;
    for block in blocks(GUIDE) {
        if serves(&block) {
            // This server replaces the previous one, which serves the same directory.
            drop(server.take());
            let mut command = shell(&bss, home.path(), &block);
            command.stderr(fs::File::create(home.path().join("server.log")).unwrap());
            server = Some(Server::start(command));
        } else {
            let output = shell(&bss, home.path(), &block).output().unwrap();
            let log = fs::read_to_string(home.path().join("server.log")).unwrap_or_default();
            let (commands, said) = (&block.commands, stderr(&output));
            assert!(output.status.success(), "{commands}\n{said}\nserver: {log}");
            copy_secrets(home.path());
        }
        ran += 1;
    }
    assert_eq!(ran, GUIDE.matches("```sh ").count());
    let (sent, served) = (home.path().join("tablet/photo.bin"), home.path().join("server/uploads"));
    let sent = fs::read(sent).unwrap();
    for name in ["holiday.bin", "photo (2).bin", "../by-nginx/photo.bin", "../by-apache/photo.bin"]
    {
        assert_eq!(fs::read(served.join(name)).unwrap(), sent, "{name}");
    }
    let report = fs::read_to_string(home.path().join("tablet/report.json")).unwrap();
    assert!(report.contains("\"verified\":\"digest\""), "{report}");
    assert!(fs::metadata(served.join("backup.tar")).unwrap().len() > 5_000_000);
}

/// The shell that runs a block on its machine, in a directory of that machine.
fn shell(bss: &Bss, home: &Path, block: &Block) -> Command {
    let program = Path::new(wakeai_tests::program()).parent().unwrap();
    let hosts = home.join("hosts");
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &bss.name(block.machine)]);
    // Only these processes see the hosts file with the server's name.
    command.args([
        "unshare",
        "--mount",
        "sh",
        "-c",
        "mount --bind \"$0\" /etc/hosts && exec timeout --foreground 60 sh -eu -c \"$1\"",
    ]);
    command.arg(hosts).arg(&block.commands).current_dir(home.join(block.machine));
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", program.display()));
    command.env("XDG_STATE_HOME", home.join("state")).env_remove("WAKEAI_TOKEN");
    command.stdin(Stdio::null());
    command
}

/// Copies the certificate and the token to the tablet, as the guide says, once they exist.
fn copy_secrets(home: &Path) {
    let Ok(tokens) = fs::read_to_string(home.join("server/tokens")) else { return };
    fs::copy(home.join("server/cert.pem"), home.join("tablet/cert.pem")).unwrap();
    let token = home.join("tablet/token");
    fs::write(&token, tokens.split_whitespace().nth(1).unwrap()).unwrap();
    fs::set_permissions(&token, Permissions::from_mode(0o600)).unwrap();
}

/// A server and the processes that it starts; killed when dropped.
struct Server(Child);

impl Server {
    fn start(mut command: Command) -> Self {
        Self(command.process_group(0).stdout(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let group = Pid::from_raw(i32::try_from(self.0.id()).unwrap());
        let _ = killpg(group, Signal::SIGKILL); // it may have ended by itself
        let _ = self.0.wait();
        wait_for("the group is gone", || killpg(group, None).is_err().then_some(()));
    }
}
