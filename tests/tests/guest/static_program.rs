//! The programs of `make static` in guests that have no shared library. `scripts/test-static` builds the programs and
//! passes their directory in `WAKEAI_STATIC`.

use std::path::{Path, PathBuf};
use std::process::Command;

use wakeai_guest::Program;
use wakeai_guest::testing::{KERNELS, Kernel, Rig, Task, Verdict, arm64, at_once, take, told};

const SCRIPT: &str = include_str!("static.sh");
const END: &str = "guest: all checks made";

#[test]
#[ignore = "boots kernels of the list: minutes; scripts/test-static runs it"]
fn static_program_works_on_every_kernel_that_runs_wakeai() {
    let runs = KERNELS.iter().filter(|kernel| kernel.verdict == Verdict::Runs);
    let failed = at_once(runs, |kernel| {
        let work = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let Some(machine) = take(kernel, work) else { return Ok(()) };
        works(kernel, machine, "x86_64")
    });
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
#[ignore = "scripts/arm64-guest builds the program and then runs this"]
fn static_program_works_on_arm64() {
    let kernel = KERNELS.iter().find(|kernel| kernel.arm64).unwrap();
    let worked = works(kernel, arm64(kernel), "aarch64");
    assert!(worked.is_ok(), "{}", worked.unwrap_err());
}

fn works(kernel: &Kernel, mut machine: Rig, architecture: &str) -> Result<(), String> {
    machine.patience_s = 1800;
    let directory = PathBuf::from(told("WAKEAI_STATIC"));
    let program = |name: &str| Program {
        from: directory.join(format!("{name}-{architecture}")),
        to: Path::new("/usr/bin").join(name),
    };
    let scenario = wakeai_tests::root().join("scenarios/quickstart.toml");
    let [cert, key] = certificate(&machine.work);
    let files = [
        ("/quickstart.toml", std::fs::read_to_string(&scenario).unwrap()),
        ("/expected.json", expected(&scenario)),
        ("/cert.pem", cert),
        ("/key.pem", key),
        ("/static.sh", SCRIPT.to_owned()),
        ("/lib.sh", crate::SCRIPT_LIB.to_owned()),
    ];
    let console = machine.boot(&Task {
        command: "sh /static.sh 2>&1",
        programs: vec![program("wakeai"), program("name_server")],
        files: files.map(|(path, text)| (path.to_owned(), text)).into(),
    });
    println!("{console}");
    let passed = console.contains("guest: status 0") && console.contains(END);
    let failed =
        || format!("Linux {} of {}, {architecture}:\n{console}", kernel.version, kernel.suite);
    if passed { Ok(()) } else { Err(failed()) }
}

/// What this build of the program simulates, which the guest has to simulate bit for bit.
fn expected(scenario: &Path) -> String {
    let short =
        ["--set", "duration=5s", "--set", "warmup=1s", "--conditions", "default,airtime", "--json"];
    let ran = Command::new(wakeai_tests::program())
        .arg("sim")
        .arg(scenario)
        .args(short)
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

/// The certificate and the key of the two names under which the guest's server is reached.
fn certificate(work: &Path) -> [String; 2] {
    std::fs::create_dir_all(work).unwrap();
    let files = ["cert.pem", "key.pem"].map(|name| work.join(name));
    let arguments = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=served.test \
                     -addext subjectAltName=DNS:served.test,DNS:listed.test \
                     -addext basicConstraints=critical,CA:FALSE";
    let mut openssl = Command::new("openssl");
    openssl
        .args(arguments.split_whitespace())
        .arg("-out")
        .arg(&files[0])
        .arg("-keyout")
        .arg(&files[1]);
    let made = openssl.output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    files.map(|file| std::fs::read_to_string(file).unwrap())
}
