//! Tests what is left by a process that is killed while it registers or unregisters the algorithms.
//! The next process has to remove all of it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use wakeai_kernel::Control;

use crate::rig::{kernel, struct_ops};

/// The process that the next test starts and kills. It is no test by itself.
#[test]
#[ignore = "runs until it is killed"]
fn opens_and_unloads_for_ever() {
    while std::env::var_os("WAKEAI_TO_BE_KILLED").is_some() {
        Control::open().unwrap();
        Control::unload().unwrap();
    }
}

#[test]
fn after_a_kill_at_any_point_the_next_unload_leaves_nothing() {
    let Some(_kernel) = kernel() else { return };
    let had_bpffs = std::fs::read_to_string("/proc/mounts").unwrap().contains("/sys/fs/bpf ");
    for round in 0..12 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--ignored", "killed::opens_and_unloads_for_ever"])
            .env("WAKEAI_TO_BE_KILLED", "1")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Each round kills the process at another point of its second or third loop.
        std::thread::sleep(Duration::from_millis(250 + 37 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        Control::unload().unwrap();
        assert!(!struct_ops().contains("wakeai_cubic"));
        assert!(!Path::new("/sys/fs/bpf/wakeai").exists());
        assert!(!Path::new("/run/wakeai/bpffs-mounted").exists());
        let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
        assert_eq!(mounts.contains("/sys/fs/bpf "), had_bpffs);
    }
    // The algorithms can still be registered.
    Control::open().unwrap();
    assert!(Control::unload().unwrap());
}

#[test]
fn a_process_that_died_before_it_wrote_its_note_of_a_mount_leaves_no_note() {
    let Some(_kernel) = kernel() else { return };
    let mounts = || std::fs::read_to_string("/proc/mounts").unwrap();
    Control::unload().unwrap(); // it makes the directory
    let before = mounts();
    let note = Path::new("/run/wakeai/bpffs-mounted");
    std::fs::write(note, "").unwrap();
    Control::unload().unwrap();
    assert!(!note.exists());
    assert_eq!(mounts(), before, "it had mounted nothing");
}
