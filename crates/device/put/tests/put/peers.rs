//! Uploads to nginx, Apache and rclone, which are real programs on the loopback interface.

use std::fs::{self, Permissions};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Instant;

use tempfile::TempDir;
use wakeai_put::{Chunks, Protocol, PutError};

use crate::{Home, content, put};

/// The user and group `nobody`, because Apache does not serve as root.
const NOBODY: u32 = 65534;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerKind {
    /// It takes whole files.
    Nginx,
    /// It takes parts of files, and speaks WebDAV.
    Apache,
    /// `rclone serve webdav`, which takes whole files.
    Rclone,
    /// The same, ignoring case.
    RcloneFolding,
}

/// A running server; killed when dropped.
pub(crate) struct PeerServer {
    child: Child,
    port: u16,
    pub(crate) served: PathBuf,
    /// Its directory, which is removed with it.
    home: Option<TempDir>,
}

impl PeerServer {
    /// Starts the server and waits until it listens; `None` where the program is not installed.
    pub(crate) fn start(kind: PeerKind) -> Option<Self> {
        let home = tempfile::tempdir().unwrap();
        fs::set_permissions(home.path(), Permissions::from_mode(0o755)).unwrap();
        let served = home.path().join("served");
        fs::create_dir(&served).unwrap();
        for path in [home.path(), &served] {
            let _ = chown(path, Some(NOBODY), Some(NOBODY)); // Apache serves as the test's own user otherwise
        }
        for _ in 0..5 {
            let port = free_port();
            let mut command = command(kind, home.path(), port);
            let log = fs::File::create(home.path().join("log")).unwrap();
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
            let Ok(child) = command.spawn() else {
                let required = std::env::var_os("WAKEAI_REQUIRE_KERNEL").is_some();
                assert!(!required, "{kind:?} is not installed");
                eprintln!("SKIPPED: {kind:?} is not installed (scripts/apt-packages)");
                return None;
            };
            let mut peer = Self { child, port, served: served.clone(), home: None };
            if peer.listens() {
                peer.home = Some(home);
                return Some(peer);
            }
        }
        panic!("{kind:?}: {}", fs::read_to_string(home.path().join("log")).unwrap());
    }

    /// Waits until the server listens, and returns false if it ends instead.
    fn listens(&mut self) -> bool {
        let began = Instant::now();
        loop {
            // First this, because another program may listen at the port.
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return true;
            }
            assert!(began.elapsed().as_secs() < 60, "it does not listen");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The number of files in the served directory, hidden ones, too.
    pub(crate) fn files(&self) -> usize {
        fs::read_dir(&self.served).unwrap().flatten().filter(|entry| entry.path().is_file()).count()
    }
}

impl Drop for PeerServer {
    fn drop(&mut self) {
        // SIGTERM, so that the workers of nginx and Apache end, too.
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
        let _ = self.child.wait();
    }
}

/// A port on which nobody listens. It is below those that the kernel gives to whoever asks for any (32768 on), and each process
/// of these tests takes others. So nobody else listens there before the server does.
fn free_port() -> u16 {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let own = std::process::id().wrapping_mul(32);
    loop {
        let number = own.wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed));
        let port = 20_000 + (number % 12_000) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

fn command(kind: PeerKind, home: &std::path::Path, port: u16) -> Command {
    let at = |file: &str| home.join(file);
    match kind {
        PeerKind::Nginx => {
            fs::write(at("nginx.conf"), nginx(home, port)).unwrap();
            let mut command = Command::new("nginx");
            command.arg("-c").arg(at("nginx.conf")).arg("-p").arg(home).args(["-e", "stderr"]);
            command
        }
        PeerKind::Apache => {
            fs::write(at("apache.conf"), apache(home, port)).unwrap();
            let mut command = Command::new("apache2");
            command.arg("-DFOREGROUND").arg("-f").arg(at("apache.conf"));
            command
        }
        PeerKind::Rclone | PeerKind::RcloneFolding => {
            let mut command = Command::new("rclone");
            command.args(["serve", "webdav", "--addr", &format!("127.0.0.1:{port}")]);
            command.args(["--vfs-cache-mode", "writes", "--cache-dir"]).arg(at("cache"));
            command.args(["--vfs-write-back", "0s", "--dir-cache-time", "0s", "--config", ""]);
            if kind == PeerKind::RcloneFolding {
                command.arg("--vfs-case-insensitive");
            }
            command.arg(at("served")).env("HOME", home);
            command
        }
    }
}

fn nginx(home: &std::path::Path, port: u16) -> String {
    let home = home.display();
    format!(
        "daemon off;
user nobody nogroup;
pid {home}/nginx.pid;
events {{}}
http {{
  access_log off;
  client_body_temp_path {home}/body;
  server {{
    listen 127.0.0.1:{port};
    root {home}/served;
    client_max_body_size 8m;
    dav_methods PUT;
  }}
}}
"
    )
}

fn apache(home: &std::path::Path, port: u16) -> String {
    let home = home.display();
    let modules = "/usr/lib/apache2/modules";
    format!(
        "ServerRoot {home}
ServerName uploads
PidFile {home}/apache.pid
ErrorLog {home}/apache.log
Listen 127.0.0.1:{port}
LoadModule mpm_event_module {modules}/mod_mpm_event.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule dav_module {modules}/mod_dav.so
LoadModule dav_fs_module {modules}/mod_dav_fs.so
User nobody
Group nogroup
DocumentRoot {home}/served
DavLockDB {home}/locks
LimitRequestBody 0
<Directory {home}/served>
  Dav On
</Directory>
"
    )
}

#[test]
fn an_empty_file_arrives_at_every_server() {
    for kind in [PeerKind::Nginx, PeerKind::Apache, PeerKind::Rclone] {
        let Some(peer) = PeerServer::start(kind) else { return };
        let home = Home::new();
        let file = home.write("empty", b"");
        let report = put(&home.config(&file, &peer.url("/"))).unwrap();
        assert_eq!((report.bytes, report.verified), (0, Some("read back")), "{kind:?}");
        assert_eq!(fs::read(peer.served.join("empty")).unwrap(), b"", "{kind:?}");
    }
}

#[test]
fn a_file_arrives_at_rclone_and_replaces_an_older_one() {
    let Some(peer) = PeerServer::start(PeerKind::Rclone) else { return };
    let home = Home::new();
    for length in [3_000_000, 100] {
        let file = home.write("photo.bin", &content(length));
        let report = put(&home.config(&file, &peer.url("/"))).unwrap();
        assert_eq!((report.protocol, report.verified), (Protocol::Put, Some("read back")));
        assert_eq!(fs::read(peer.served.join("photo.bin")).unwrap(), content(length));
        assert_eq!(peer.files(), 1);
    }
}

#[test]
fn readers_of_a_replaced_file_never_see_a_part_of_it() {
    for kind in [PeerKind::Apache, PeerKind::Rclone] {
        let Some(peer) = PeerServer::start(kind) else { return };
        let (old, new) = (content(400_000), content(600_000));
        let path = peer.served.join("photo.bin");
        fs::write(&path, &old).unwrap();
        let _ = chown(&path, Some(NOBODY), Some(NOBODY));
        let home = Home::new();
        let file = home.write("photo.bin", &new);
        let ended = Arc::new(AtomicBool::new(false));
        let (until, read) = (Arc::clone(&ended), peer.url("/photo.bin"));
        let reader = std::thread::spawn(move || {
            let mut seen = Vec::new();
            while !until.load(Ordering::Relaxed) {
                let got = Command::new("curl").args(["-sf", &read]).output().unwrap();
                seen.push((got.status.success(), got.stdout));
            }
            seen
        });
        let mut config = home.config(&file, &peer.url("/"));
        config.chunks = Chunks::Count(30);
        put(&config).unwrap();
        ended.store(true, Ordering::Relaxed);
        for (is_ok, bytes) in reader.join().unwrap() {
            let is_whole = is_ok && (bytes == old || bytes == new);
            // rclone deletes a file before another one gets its name (RFC 4918, section 9.9.3).
            let is_absent = kind == PeerKind::Rclone && !is_ok && bytes.is_empty();
            assert!(is_whole || is_absent, "{kind:?}: {is_ok}, {} bytes", bytes.len());
        }
        assert_eq!(fs::read(&path).unwrap(), new);
        assert_eq!(peer.files(), 1, "the temporary file has gone");
    }
}

#[test]
fn a_missing_directory_is_said_at_once_by_every_server() {
    for kind in [PeerKind::Nginx, PeerKind::Apache, PeerKind::Rclone] {
        let Some(peer) = PeerServer::start(kind) else { return };
        let home = Home::new();
        let file = home.write("f", &content(100_000));
        let error = put(&home.config(&file, &peer.url("/no/such/directory/"))).unwrap_err();
        let says =
            if kind == PeerKind::Nginx { "no directory" } else { "directory does not exist" };
        let said = error.to_string();
        assert!(said.contains(says) && !said.contains("gave up"), "{kind:?}: {said}");
    }
}

#[test]
fn a_file_that_is_too_large_for_nginx_is_refused_each_time() {
    let Some(peer) = PeerServer::start(PeerKind::Nginx) else { return };
    let home = Home::new();
    let file = home.write("f", &content(9_000_000)); // the limit is 8 MiB
    for _ in 0..10 {
        let error = put(&home.config(&file, &peer.url("/"))).unwrap_err();
        assert!(matches!(error, PutError::Refused { status: 413, .. }), "{error}");
    }
}
