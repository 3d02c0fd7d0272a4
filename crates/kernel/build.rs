//! Compiles each BPF source with clang and generates its Rust skeleton.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use libbpf_cargo::SkeletonBuilder;

const PROGRAMS: [&str; 9] = [
    "wakeai_cubic",
    "wakeai_reno",
    "wakeai_rtt",
    "wakeai_av",
    "wakeai_compound",
    "connections",
    "snapshot",
    "monitor",
    "assign",
];

fn main() {
    // An object's BTF names its source files. Without the directory of the build in the names, the same source
    // gives the same bytes everywhere.
    let here = env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let directory = format!("-fdebug-prefix-map={here}=.");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let clang = env::var_os("CLANG").unwrap_or_else(|| "clang".into());
    assert!(
        Command::new(&clang).arg("--version").output().is_ok(),
        "clang compiles the BPF programs and was not found: install it (Debian: apt install \
         clang) or name it in the variable CLANG"
    );
    for program in PROGRAMS {
        SkeletonBuilder::new()
            .source(Path::new("bpf").join(program).with_extension("bpf.c"))
            .clang(&clang)
            .clang_args([
                "-mcpu=v3",
                "-Wall",
                "-Wextra",
                "-Wno-unused-parameter",
                "-Werror",
                &directory,
            ])
            .build_and_generate(out.join(program).with_extension("skel.rs"))
            .unwrap_or_else(|error| panic!("{program}.bpf.c: {error:?}"));
    }
    println!("cargo::rerun-if-env-changed=CLANG");
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-changed=../algorithms/c");
}
