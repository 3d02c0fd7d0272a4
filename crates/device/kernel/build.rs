//! Compiles each BPF source with clang, links the algorithms into one object, and generates the Rust skeletons.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use libbpf_cargo::SkeletonBuilder;
use libbpf_rs::Linker;
use wakeai_connection::Bounded;

/// The sources whose objects become one, `algorithms`, together with [`WINDOWS`]. For each object that is loaded,
/// libbpf reads the types of the kernel, which are megabytes.
const ALGORITHMS: [Bounded; 6] = Bounded::ALL;

/// The source of the program that bounds receive windows.
const WINDOWS: &str = "windows";

const PROGRAMS: [&str; 5] = ["connections", "snapshot", "monitor", "assign", "egress"];

/// What of `bpf/intf.h` is read and written as bytes.
const AS_BYTES: [&str; 16] = [
    "interface_key {",
    "bounds_value {",
    "socket_value {",
    "figures_value {",
    "receiving_value {",
    "record_kind(",
    "record_value {",
    "snapshot_value {",
    "snapshot_request {",
    "move_request {",
    "assignment {",
    "assign_outcome {",
    "flow_key {",
    "flow_value {",
    "flow_rate {",
    "egress_config {",
];

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let clang = env::var_os("CLANG").unwrap_or_else(|| "clang".into());
    assert!(
        Command::new(&clang).arg("--version").output().is_ok(),
        "clang compiles the BPF programs and was not found: install it (Debian: apt install \
         clang) or name it in the variable CLANG"
    );
    let object = |name: &str| out.join(name).with_extension("o");
    let algorithms = ALGORITHMS.map(|algorithm| algorithm.name);
    let linked: Vec<_> = algorithms.into_iter().chain([WINDOWS]).collect();
    for program in linked.iter().copied().chain(PROGRAMS) {
        compile(&clang, program, &object(program));
    }
    link(&linked.into_iter().map(object).collect::<Vec<_>>(), &object("algorithms"));
    for name in PROGRAMS.into_iter().chain(["algorithms"]) {
        let skeleton = out.join(name).with_extension("skel.rs");
        SkeletonBuilder::new()
            .obj(object(name))
            .generate(&skeleton)
            .unwrap_or_else(|error| panic!("{name}: {error:?}"));
        derive_bytes(&skeleton);
    }
    println!("cargo::rerun-if-env-changed=CLANG");
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-changed=../../core/algorithms/c");
}

/// Derives the conversion from and into bytes. The derivation refuses a struct with padding.
fn derive_bytes(skeleton: &Path) {
    const DERIVED: &str =
        "#[derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes)]";
    let text = fs::read_to_string(skeleton).expect("it was just generated");
    let text = AS_BYTES.iter().fold(text, |text, of| {
        text.replace(&format!("pub struct {of}"), &format!("{DERIVED}\npub struct {of}"))
    });
    fs::write(skeleton, text).expect("it was just written");
}

fn compile(clang: &OsString, program: &str, object: &Path) {
    // An object's BTF names its source files. Without the directory of the build in the names, the same source
    // gives the same bytes everywhere.
    let here = env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let directory = format!("-fdebug-prefix-map={here}=.");
    SkeletonBuilder::new()
        .source(Path::new("bpf").join(program).with_extension("bpf.c"))
        .obj(object)
        .clang(clang)
        .clang_args([
            "-mcpu=v3",
            "-Wall",
            "-Wextra",
            "-Wno-unused-parameter",
            "-Werror",
            &directory,
        ])
        .build()
        .unwrap_or_else(|error| panic!("{program}.bpf.c: {error:?}"));
}

fn link(objects: &[PathBuf], to: &Path) {
    let linked = || {
        let mut linker = Linker::new(to)?;
        objects.iter().try_for_each(|object| linker.add_file(object))?;
        linker.link()
    };
    linked().unwrap_or_else(|error| panic!("{}: {error:?}", to.display()));
}
