//! Compiles the algorithms for user space.

const ALGORITHMS: [&str; 5] =
    ["wakeai_cubic", "wakeai_reno", "wakeai_av", "wakeai_compound", "ns3_cubic"];

fn main() {
    let mut build = cc::Build::new();
    if std::env::var_os("CARGO_FEATURE_RECORDER").is_some() {
        build.file("c/native/recorder.c");
    }
    build
        .files(ALGORITHMS.map(|name| format!("c/native/{name}.c")))
        // As the kernel does: the private area is an array of words that is read as a struct.
        .flag("-fno-strict-aliasing")
        .warnings(true)
        .warnings_into_errors(true)
        .compile("wakeai_algorithms");
    println!("cargo::rerun-if-changed=c");
}
