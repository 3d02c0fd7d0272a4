//! Compiles the algorithms for user space.

fn main() {
    let mut build = cc::Build::new();
    if std::env::var_os("CARGO_FEATURE_RECORDER").is_some() {
        build.file("c/native/recorder.c");
    }
    build
        .files(["c/native/algorithms.c", "c/native/ns3_cubic.c"])
        // As in the kernel, an algorithm's private area is an array of words that is accessed as a
        // struct.
        .flag("-fno-strict-aliasing")
        .warnings(true)
        .warnings_into_errors(true)
        .compile("wakeai_algorithms");
    println!("cargo::rerun-if-changed=c");
}
