//! Servers that receive uploads, each a real program in the namespace of the station `server`.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use wakeai_tests::bss::Bss;
use wakeai_tests::wait_for;

/// The server's address.
const ADDRESS: &str = "10.77.0.2";
/// The user and group `nobody`, because Apache does not serve as root.
pub(crate) const NOBODY: u32 = 65534;

/// The server programs that are tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Our own server, with TLS and a token.
    Serve,
    /// The reference server of tus; the environment variable TUSD names it.
    Tusd,
    /// nginx with `dav_methods PUT`, which takes whole files.
    Nginx,
    /// Apache with `mod_dav`, which takes parts of files.
    Apache,
    /// `rclone serve webdav`, which takes whole files.
    Rclone,
}

impl Kind {
    /// Whether an upload continues after an interruption.
    pub(crate) fn continues(self) -> bool {
        !matches!(self, Self::Nginx | Self::Rclone)
    }
}

/// A server that is killed and started again at the same address and with the same directory.
pub(crate) struct Receiver<'a> {
    kind: Kind,
    bss: &'a Bss,
    home: PathBuf,
    child: Child,
}

impl<'a> Receiver<'a> {
    /// Starts the server with its files in `home`, and waits until it listens.
    pub(crate) fn start(kind: Kind, bss: &'a Bss, home: &Path) -> Self {
        let served = home.join("served");
        fs::create_dir_all(&served).unwrap();
        fs::set_permissions(home, Permissions::from_mode(0o755)).unwrap();
        match kind {
            Kind::Serve => prepare_serve(bss, home),
            Kind::Nginx => fs::write(home.join("nginx.conf"), nginx(home)).unwrap(),
            Kind::Apache => {
                chown(&served, Some(NOBODY), Some(NOBODY)).unwrap();
                chown(home, Some(NOBODY), Some(NOBODY)).unwrap();
                fs::write(home.join("apache.conf"), apache(home)).unwrap();
            }
            Kind::Tusd | Kind::Rclone => {}
        }
        let child = spawn(kind, bss, home);
        Self { kind, bss, home: home.to_owned(), child }
    }

    /// The arguments by which `wakeai put` reaches the server.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let home = self.home.display();
        match self.kind {
            Kind::Serve => vec![
                format!("https://{ADDRESS}:8080/files/"),
                format!("--ca={home}/cert.pem"),
                format!("--token-file={home}/token"),
            ],
            Kind::Tusd => vec![format!("http://{ADDRESS}:8080/files/")],
            Kind::Nginx | Kind::Apache | Kind::Rclone => vec![format!("http://{ADDRESS}:8080/")],
        }
    }

    /// The received file of the upload `name`. tusd gives files random names.
    pub(crate) fn received(&self, name: &str) -> PathBuf {
        let served = self.home.join("served");
        if self.kind != Kind::Tusd {
            return served.join(name);
        }
        let files = fs::read_dir(served).unwrap().flatten().map(|entry| entry.path());
        let mut files = files.filter(|path| path.extension().is_none());
        let found = files.next().unwrap();
        assert_eq!(files.next(), None, "the upload was begun anew");
        found
    }

    /// Ends all of the server's processes with SIGKILL, and starts it again.
    pub(crate) fn kill_and_restart(&mut self) {
        self.kill();
        self.child = spawn(self.kind, self.bss, &self.home);
    }

    fn kill(&mut self) {
        let group = Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        let _ = killpg(group, Signal::SIGKILL); // it may have ended by itself
        let _ = self.child.wait();
        // Workers of the group end a moment after their master.
        wait_for("the group is gone", || killpg(group, None).is_err().then_some(()));
    }
}

impl Drop for Receiver<'_> {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(kind: Kind, bss: &Bss, home: &Path) -> Child {
    let at = |file: &str| home.join(file);
    let mut command = match kind {
        Kind::Serve => {
            let mut command = Command::new(wakeai_tests::program());
            command.args(["serve", "--listen", &format!("{ADDRESS}:8080")]);
            command.arg("--cert").arg(at("cert.pem")).arg("--key").arg(at("key.pem"));
            command.arg("--token-file").arg(at("tokens")).arg(at("served"));
            command
        }
        Kind::Tusd => {
            let mut command = Command::new(std::env::var_os("TUSD").unwrap());
            command.args(["-host", ADDRESS, "-port", "8080", "-upload-dir"]).arg(at("served"));
            command
        }
        Kind::Nginx => {
            let mut command = Command::new("nginx");
            command.arg("-c").arg(at("nginx.conf")).arg("-p").arg(home);
            command
        }
        Kind::Apache => {
            let _ = fs::remove_file(at("apache.pid")); // of the one that was killed
            let mut command = Command::new("apache2");
            command.arg("-DFOREGROUND").arg("-f").arg(at("apache.conf"));
            command
        }
        Kind::Rclone => {
            let mut command = Command::new("rclone");
            // Without a cache of writes: rclone 1.60 that was killed with a write in its cache never listens again.
            command.args(["serve", "webdav", "--addr", &format!("{ADDRESS}:8080")]);
            command.arg("--cache-dir").arg(at("cache"));
            command.args(["--dir-cache-time", "0s", "--config", ""]);
            command.arg(at("served")).env("HOME", home);
            command
        }
    };
    let log = fs::File::create(at("server.log")).unwrap();
    command.stdout(Stdio::null()).stderr(log).process_group(0);
    let namespace = bss.namespace("server");
    let mut child = namespace.run(|| command.spawn().unwrap()).unwrap();
    wait_for("the server listens", || {
        if let Some(status) = child.try_wait().unwrap() {
            panic!("{kind:?}: {status}: {}", fs::read_to_string(at("server.log")).unwrap());
        }
        let listening = bss.inside("server", "ss -Hltn sport = :8080");
        (!listening.is_empty()).then_some(())
    });
    child
}

/// A certificate, tokens for the server, and the client's token.
fn prepare_serve(bss: &Bss, home: &Path) {
    let home = home.display();
    bss.inside(
        "server",
        &format!(
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=uploads \
             -addext subjectAltName=IP:{ADDRESS} -addext basicConstraints=critical,CA:FALSE \
             -keyout {home}/key.pem -out {home}/cert.pem"
        ),
    );
    let secret = "0123456789abcdef0123456789abcdef";
    for (file, text) in [("tokens", format!("tablet {secret}\n")), ("token", secret.to_owned())] {
        let path = format!("{home}/{file}");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    }
    fs::set_permissions(format!("{home}/key.pem"), Permissions::from_mode(0o600)).unwrap();
}

fn nginx(home: &Path) -> String {
    let home = home.display();
    format!(
        "daemon off;
user root;
pid {home}/nginx.pid;
error_log stderr;
events {{}}
http {{
  access_log off;
  client_body_temp_path {home}/body;
  server {{
    listen {ADDRESS}:8080;
    root {home}/served;
    client_max_body_size 0;
    dav_methods PUT;
  }}
}}
"
    )
}

fn apache(home: &Path) -> String {
    let home = home.display();
    let modules = "/usr/lib/apache2/modules";
    format!(
        "ServerRoot {home}
ServerName uploads
PidFile {home}/apache.pid
ErrorLog {home}/apache.log
Listen {ADDRESS}:8080
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
