//! Pages of figures, as they are served.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use wakeai_api::Request;

use wakeai_tests::agent::Fleet;
use wakeai_tests::bss::Bss;
use wakeai_tests::metrics::ask;
use wakeai_tests::{Machine, program, wait_for};

/// A file of the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    wakeai_tests::root().join(path)
}

/// Whether this machine has a program. Prints the reason where it has not.
pub(crate) fn has(program: &str) -> bool {
    if Command::new(program).arg("--version").output().is_ok() {
        return true;
    }
    assert!(
        std::env::var_os("WAKEAI_REQUIRE_KERNEL").is_none_or(|value| value != "1"),
        "WAKEAI_REQUIRE_KERNEL=1, but {program} is missing (Debian: prometheus)"
    );
    println!("SKIPPED: {program} is missing (Debian: prometheus)");
    false
}

/// A port of the loopback interface that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The name, type and meaning of each family on a page.
pub(crate) fn families(page: &str) -> BTreeMap<String, (String, String)> {
    let mut families = BTreeMap::<String, (String, String)>::new();
    for line in page.lines() {
        if let Some((name, help)) =
            line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' '))
        {
            help.clone_into(&mut families.entry(name.to_owned()).or_default().1);
        }
        if let Some((name, kind)) =
            line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            kind.clone_into(&mut families.entry(name.to_owned()).or_default().0);
        }
    }
    families
}

/// A program that serves figures; ended when dropped.
pub(crate) struct Serving {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Serving {
    /// Runs the program under test with these arguments and `--metrics`.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let mut command = Command::new(program());
        command.args(arguments).args(["--metrics", &address.to_string()]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let serving = Self { child, address };
        wait_for("figures are served", || ask(address, "").ok());
        serving
    }

    pub(crate) fn page(&self) -> String {
        ask(self.address, "text/plain").unwrap().1
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A proxy, and a port for its clients.
pub(crate) fn proxy() -> (Serving, u16) {
    let port = free_port();
    (Serving::start(&["proxy", "--listen", &format!("127.0.0.1:{port}")]), port)
}

/// A server of uploads with quotas, and a port for its clients.
pub(crate) fn server(directory: &std::path::Path) -> (Serving, u16) {
    let (directory, port) = (directory.to_str().unwrap(), free_port());
    let serving = Serving::start(&[
        "serve",
        directory,
        "--listen",
        &format!("127.0.0.1:{port}"),
        "--quota",
        "1GB",
        "--client-quota",
        "1GB",
    ]);
    (serving, port)
}

/// The pages of the three programs. Without root the agent's is missing.
pub(crate) fn all() -> Vec<(&'static str, String)> {
    let directory = tempfile::tempdir().unwrap();
    let mut pages = vec![("proxy", proxy().0.page()), ("serve", server(directory.path()).0.page())];
    pages.extend(agent("").map(|page| ("agent", page)));
    pages
}

/// The page of an agent that has a peer; `None` where no agent can run.
pub(crate) fn agent(more: &str) -> Option<String> {
    let _machine = Machine::take()?;
    let (bss, fleet) = (Bss::new(&["a", "b"]), Fleet::new());
    let metrics = format!("metrics = \"127.0.0.1:9719\"\n{more}");
    let agent = fleet.start(&bss, "a", 1, &metrics);
    let _peer = fleet.start(&bss, "b", 2, &metrics);
    wait_for("the peer is heard", || (agent.peers() == [2]).then_some(()));
    let ticks = agent.metric("ticks");
    wait_for("a tick has passed", || (agent.metric("ticks") > ticks).then_some(()));
    let address = "127.0.0.1:9719".parse().unwrap();
    let page = bss.namespace("a").run(|| ask(address, "text/plain")).unwrap().unwrap().1;
    assert_eq!(agent.ask(Request::Status)["peers"], 1);
    Some(page)
}
