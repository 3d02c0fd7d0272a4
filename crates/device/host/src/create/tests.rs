//! Tests of what is made on a host and removed with its lease.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use super::*;
use crate::process::ProcessId;
use crate::registry::{Holder, Registry, Role};
use crate::sweep::{Removed, SweepError, sweep_in};

struct Rig {
    directory: tempfile::TempDir,
}

impl Rig {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn registry(&self) -> Registry {
        Registry::at(&self.path("leases"))
    }

    fn lease(&self) -> Lease {
        Lease::take_in(self.registry(), Role::Command).unwrap()
    }

    fn on_disk(&self) -> Vec<Change> {
        let holders = self.registry().holders().unwrap();
        holders.into_iter().flat_map(|holder| holder.changes).collect()
    }

    /// Turns the leases on disk into leases of a dead process, as after `kill -9`, and sweeps:
    /// undoes the changes of dead processes.
    fn kill_and_sweep(&self, lease: Lease) -> (Vec<Removed>, Vec<SweepError>) {
        drop(lease);
        let registry = self.registry();
        for mut holder in registry.holders().unwrap() {
            registry.remove(&holder).unwrap();
            holder.process.start_time -= 1;
            registry.write(&holder).unwrap();
        }
        sweep_in(&registry, &[])
    }

    /// Writes the lease of a dead process that recorded only this change, and sweeps.
    fn sweep_of(&self, change: Change) -> (Vec<Removed>, Vec<SweepError>) {
        let me = ProcessId::current().unwrap();
        let process = ProcessId { start_time: me.start_time - 1, ..me };
        let role = Role::Command;
        let _ = self.registry().lock().unwrap();
        let holder = Holder { process, sequence: 0, role, changes: vec![change] };
        self.registry().write(&holder).unwrap();
        sweep_in(&self.registry(), &[])
    }
}

#[test]
fn release_removes_a_socket_and_a_directory_with_contents() {
    let rig = Rig::new();
    let lease = rig.lease();
    let (socket, directory) = (rig.path("a.sock"), rig.path("scratch"));
    let _listener = lease.bind_socket(&socket, 0o660).unwrap();
    lease.create_directory(&directory).unwrap();
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&socket), mode(&directory)), (0o660, 0o700));
    fs::create_dir(directory.join("below")).unwrap();
    fs::write(directory.join("below/log"), "").unwrap();
    std::os::unix::fs::symlink(rig.directory.path(), directory.join("link")).unwrap();
    assert!(lease.release(&[]).is_empty());
    assert!(!socket.exists() && !directory.exists());
    assert!(rig.path("leases").exists(), "what a link leads to stays");
}

#[test]
fn an_occupied_path_is_refused_before_it_is_recorded() {
    let rig = Rig::new();
    let lease = rig.lease();
    let paths = ["directory", "file", "link", "live"].map(|name| rig.path(name));
    fs::create_dir(&paths[0]).unwrap();
    fs::write(&paths[1], "mine").unwrap();
    std::os::unix::fs::symlink(rig.path("nowhere"), &paths[2]).unwrap();
    let _live = UnixListener::bind(&paths[3]).unwrap();
    for path in &paths {
        for error in [
            check_socket_path(path).unwrap_err(),
            lease.bind_socket(path, 0o600).unwrap_err(),
            lease.create_directory(path).unwrap_err(),
        ] {
            assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
        }
        assert!(rig.on_disk().is_empty());
    }
    assert!(lease.release(&[]).is_empty());
    assert!(paths.iter().all(|path| path.symlink_metadata().is_ok()));
    let nowhere = rig.path("none/a.sock");
    assert!(check_socket_path(&nowhere).unwrap_err().to_string().contains("No such file"));
}

#[test]
fn a_dead_socket_is_replaced() {
    let rig = Rig::new();
    let path = rig.path("a.sock");
    drop(UnixListener::bind(&path).unwrap());
    check_socket_path(&path).unwrap();
    let lease = rig.lease();
    let _listener = lease.bind_socket(&path, 0o600).unwrap();
    std::os::unix::net::UnixStream::connect(&path).unwrap();
}

#[test]
fn a_file_that_replaced_ours_stays_and_is_reported_once() {
    let rig = Rig::new();
    let lease = rig.lease();
    let (socket, directory) = (rig.path("a.sock"), rig.path("scratch"));
    drop(lease.bind_socket(&socket, 0o600).unwrap());
    lease.create_directory(&directory).unwrap();
    fs::remove_file(&socket).unwrap();
    fs::write(&socket, "mine").unwrap();
    // The directory is moved, so that its inode is not reused.
    fs::rename(&directory, rig.path("aside")).unwrap();
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("own"), "mine").unwrap();

    let (removed, errors) = rig.kill_and_sweep(lease);
    assert!(removed.is_empty(), "{removed:?}");
    let kept: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(kept.len(), 2, "{kept:?}");
    assert!(kept.iter().all(|text| text.contains("has taken its place")), "{kept:?}");
    assert!(socket.is_file() && directory.join("own").exists());
    assert!(rig.on_disk().is_empty(), "said once");
}

#[test]
fn a_record_without_identity_removes_no_file_of_the_user() {
    let rig = Rig::new();
    let path = rig.path("x");
    let intents = || {
        let path = path.clone();
        [
            Change::Socket { path: path.clone(), made: None, spare: None },
            Change::Directory { path, made: None },
        ]
    };
    for change in intents() {
        let (removed, errors) = rig.sweep_of(change);
        assert!(removed.is_empty() && errors.is_empty(), "{errors:?}");
    }
    // Another program has used the path since.
    let file = || fs::write(&path, "mine").unwrap();
    let full = || {
        fs::create_dir(&path).unwrap();
        fs::write(path.join("own"), "mine").unwrap();
    };
    let link = || std::os::unix::fs::symlink(rig.path("nowhere"), &path).unwrap();
    for (make, unmake) in [
        (&file as &dyn Fn(), &(|| fs::remove_file(&path).unwrap()) as &dyn Fn()),
        (&full, &|| fs::remove_dir_all(&path).unwrap()),
        (&link, &|| fs::remove_file(&path).unwrap()),
    ] {
        make();
        for change in intents() {
            let (removed, errors) = rig.sweep_of(change);
            assert!(removed.is_empty() && errors.len() == 1, "{removed:?} {errors:?}");
            assert!(errors[0].to_string().starts_with("left alone: "), "{}", errors[0]);
        }
        unmake();
    }
    let _live = UnixListener::bind(&path).unwrap();
    let (removed, errors) =
        rig.sweep_of(Change::Socket { path: path.clone(), made: None, spare: None });
    assert!(removed.is_empty() && path.exists());
    assert!(errors[0].to_string().contains("listens"), "{}", errors[0]);
}

#[test]
fn without_identity_a_dead_socket_and_an_empty_directory_are_removed() {
    let rig = Rig::new();
    let path = rig.path("x");
    drop(UnixListener::bind(&path).unwrap());
    let (removed, _) = rig.sweep_of(Change::Socket { path: path.clone(), made: None, spare: None });
    assert!(removed.len() == 1 && !path.exists());
    fs::create_dir(&path).unwrap();
    let (removed, _) = rig.sweep_of(Change::Directory { path: path.clone(), made: None });
    assert!(removed.len() == 1 && !path.exists());
}

/// Makes writes of leases fail, as on a full disk, until the returned path is removed.
fn stop_writing(rig: &Rig) -> PathBuf {
    let mut files = fs::read_dir(rig.path("leases")).unwrap().flatten().map(|file| file.path());
    let is_lease = |path: &PathBuf| path.extension().is_some_and(|end| end == "json");
    let obstacle = files.find(is_lease).unwrap().with_extension("new");
    fs::create_dir(&obstacle).unwrap();
    obstacle
}

#[test]
fn nothing_is_made_that_cannot_be_recorded() {
    let rig = Rig::new();
    let lease = rig.lease();
    let obstacle = stop_writing(&rig);
    let (socket, directory) = (rig.path("a.sock"), rig.path("scratch"));
    lease.bind_socket(&socket, 0o600).unwrap_err();
    lease.create_directory(&directory).unwrap_err();
    assert!(!socket.exists() && !directory.exists());
    fs::remove_dir(obstacle).unwrap();
    assert!(lease.release(&[]).is_empty());
}

#[test]
fn a_directory_whose_identity_is_not_recorded_is_removed() {
    let rig = Rig::new();
    let lease = rig.lease();
    let path = rig.path("scratch");
    let change = |made| Change::Directory { path: path.clone(), made };
    let failed = lease.make(&path, Kind::Directory, |_| {
        let made = create_directory(&path);
        stop_writing(&rig);
        made
    });
    assert!(matches!(failed, Err(MakeError::Lease(_))), "{failed:?}");
    assert!(!path.exists());
    assert_eq!(rig.on_disk(), [change(None)], "what is on disk removes nothing of anybody's");
}
