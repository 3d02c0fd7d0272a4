//! Compiles the algorithms for user space.

fn main() {
    cc::Build::new()
        .file("c/native/wakeai_cubic.c")
        // As the kernel does: the private area is an array of words that is read as a struct.
        .flag("-fno-strict-aliasing")
        .warnings(true)
        .warnings_into_errors(true)
        .compile("wakeai_algorithms");
    println!("cargo::rerun-if-changed=c");
}
