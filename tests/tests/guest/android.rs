//! The Android module in an arm64 guest whose userland is toybox and mksh, as Android's: without /run, /tmp and /etc/passwd,
//! on a root file system that cannot be written. `scripts/arm64-guest` builds the module.

use std::path::{Path, PathBuf};

use wakeai_guest::Program;
use wakeai_guest::testing::{KERNELS, Task, arm64, told};

const SCRIPT: &str = include_str!("android.sh");
const END: &str = "guest: all checks made";

#[test]
#[ignore = "scripts/arm64-guest builds the module and then runs this"]
fn android_module_works_on_arm64() {
    let kernel = KERNELS.iter().find(|kernel| kernel.arm64).unwrap();
    let machine = arm64(kernel);
    let root = PathBuf::from(told("WAKEAI_ARM64_ROOT"));
    let program = |from: PathBuf, to: &str| Program { from, to: to.into() };
    let module = PathBuf::from(told("WAKEAI_ANDROID_MODULE"));
    assert!(Path::new(&module).exists(), "{} is missing", module.display());
    let console = machine.boot(&Task {
        command: "sh /android.sh 2>&1",
        programs: vec![
            program(root.join("bin/toybox"), "/from-debian/toybox"),
            program(root.join("bin/mksh"), "/from-debian/mksh"),
            program(module, "/module.zip"),
        ],
        files: [("/android.sh", SCRIPT), ("/lib.sh", crate::SCRIPT_LIB)]
            .map(|(path, text)| (path.to_owned(), text.to_owned()))
            .into(),
    });
    println!("{console}");
    assert!(console.contains("guest: status 0") && console.contains(END), "{console}");
}
