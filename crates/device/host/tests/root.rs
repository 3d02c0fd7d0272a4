//! Tests that need root: namespaces and the sysctls in them.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::mount::{MsFlags, mount};
use wakeai_host::{Change, Lease, Namespace, NetnsId, ProcessId, Role, read_sysctl, set_sysctl};

const FIN_TIMEOUT: &str = "net.ipv4.tcp_fin_timeout"; // 60 in a new namespace

/// Whether this process runs as root. If it does not, this prints that the test is skipped, or
/// fails under `WAKEAI_REQUIRE_KERNEL=1`.
fn is_root() -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        let required = std::env::var_os("WAKEAI_REQUIRE_KERNEL").is_some_and(|value| value == "1");
        assert!(!required, "WAKEAI_REQUIRE_KERNEL=1, but this is not root");
        let _ = writeln!(std::io::stdout(), "SKIPPED: needs root");
    }
    root
}

fn name(test: &str) -> String {
    format!("wkt-host-{test}-{}", std::process::id())
}

#[test]
fn a_namespace_is_made_entered_and_removed_without_moving_the_caller() {
    if !is_root() {
        return;
    }
    let (name, here) = (name("made"), NetnsId::current().unwrap());
    let namespace = Namespace::create(&name).unwrap();
    let inside = namespace.run(|| NetnsId::current().unwrap()).unwrap();
    assert_eq!(inside, namespace.id());
    assert_ne!(inside, here);
    assert_eq!(NetnsId::current().unwrap(), here);
    assert!(Namespace::create(&name).is_err(), "the name is taken");
    assert!(Namespace::remove(&name).unwrap());
    assert!(!Path::new("/run/netns").join(&name).exists());
    assert!(!Namespace::remove(&name).unwrap());
}

/// Runs `work` in a mount namespace copied from the caller's; with `apart` changes are not passed on to the caller's.
fn with_own_mounts<T: Send>(apart: bool, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let inside = scope.spawn(move || {
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNS).expect("this is root");
            if apart {
                let flags = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
                mount(None::<&str>, "/", None::<&str>, flags, None::<&str>).expect("this is root");
            }
            work()
        });
        inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[test]
fn names_are_seen_in_mount_namespaces_where_ip_netns_never_ran() {
    if !is_root() {
        return;
    }
    with_own_mounts(true, || {
        let none = None::<&str>;
        mount(none, "/run", Some("tmpfs"), MsFlags::empty(), none).unwrap();
        let first = Namespace::create("first").unwrap();
        let (ready, second_is_made) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                with_own_mounts(false, || {
                    ready.wait();
                    second_is_made.wait();
                    assert_eq!(Namespace::open("first").unwrap().id(), first.id());
                    assert!(Namespace::open("second").is_ok(), "made after the mounts were copied");
                });
            });
            ready.wait();
            // Nothing panics before the other thread has been let go.
            let second = Namespace::create("second");
            second_is_made.wait();
            second.unwrap();
        });
        let mounts = std::fs::read_to_string("/proc/thread-self/mountinfo").unwrap();
        // Below the new /run there may be a mount of the machine's own names.
        let is_new = |line: &&str| line.contains(" /run/netns ") && line.contains(" - tmpfs ");
        let of_names: Vec<&str> = mounts.lines().filter(is_new).collect();
        assert_eq!(of_names.len(), 1, "one mount, however many names: {of_names:?}");
        assert!(of_names[0].contains(" shared:"), "{of_names:?}");
    });
}

#[test]
fn a_directory_that_was_made_for_a_process_is_removed_with_its_lease() {
    if !is_root() {
        return;
    }
    let outside = tempfile::tempdir().unwrap();
    let own = outside.path().join("own");
    std::fs::create_dir(&own).unwrap();
    std::fs::write(own.join("program"), "x").unwrap();
    let lease = Lease::take(Role::Command).unwrap();
    assert!(lease.adopt_directory(&own.join("program")).is_err(), "a file is no directory");
    lease.adopt_directory(&own).unwrap();
    assert!(lease.release(&[]).is_empty());
    assert!(!own.exists() && outside.path().exists());
}

#[test]
fn a_sysctl_is_restored_unless_it_was_changed_since() {
    if !is_root() {
        return;
    }
    let name = name("sysctl");
    let namespace = Namespace::create(&name).unwrap();
    let lease = Lease::take(Role::Command).unwrap();
    let (restored, chosen) = namespace
        .run(|| {
            let guard = set_sysctl(&lease, FIN_TIMEOUT, "30").unwrap();
            assert_eq!(read_sysctl(FIN_TIMEOUT).unwrap(), "30");
            guard.restore(&lease).unwrap();
            let restored = read_sysctl(FIN_TIMEOUT).unwrap();

            let guard = set_sysctl(&lease, FIN_TIMEOUT, "30").unwrap();
            std::fs::write("/proc/sys/net/ipv4/tcp_fin_timeout", "45").unwrap();
            guard.restore(&lease).unwrap();
            (restored, read_sysctl(FIN_TIMEOUT).unwrap())
        })
        .unwrap();
    assert!(lease.release(&[]).is_empty());
    Namespace::remove(&name).unwrap();
    assert_eq!((restored.as_str(), chosen.as_str()), ("60", "45"));
}

#[test]
fn releasing_a_lease_undoes_everything_in_it() {
    if !is_root() {
        return;
    }
    let name = name("release");
    let lease = Lease::take(Role::Command).unwrap();
    let namespace = lease.create_namespace(&name).unwrap();
    let mut child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
    let process = ProcessId::of(child.id()).unwrap();
    lease.record(Change::Process(process)).unwrap();
    let guard = namespace.run(|| set_sysctl(&lease, FIN_TIMEOUT, "30")).unwrap().unwrap();
    drop(guard);

    assert!(lease.release(&[]).is_empty());
    assert!(!child.wait().unwrap().success(), "the child was killed");
    assert!(!process.is_alive());
    assert!(!Path::new("/run/netns").join(&name).exists());
}

#[test]
fn an_earlier_or_later_namespace_of_the_name_is_kept() {
    if !is_root() {
        return;
    }
    let name = name("theirs");
    let _theirs = Namespace::create(&name).unwrap();
    let lease = Lease::take(Role::Command).unwrap();
    lease.create_namespace(&name).unwrap_err();
    assert!(lease.release(&[]).is_empty());
    assert!(Namespace::remove(&name).unwrap(), "it was there before");

    let lease = Lease::take(Role::Command).unwrap();
    let _ours = lease.create_namespace(&name).unwrap();
    assert!(Namespace::remove(&name).unwrap());
    let _theirs = Namespace::create(&name).unwrap();
    assert!(lease.release(&[]).is_empty());
    assert!(Namespace::remove(&name).unwrap(), "it is another one");
}
