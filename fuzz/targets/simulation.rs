#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| wakeai_fuzz_targets::run("simulation", bytes));
