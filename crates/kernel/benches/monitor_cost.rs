//! What the monitor costs at about 1 Gbit/s over veth, in percent of a core: its programs (the
//! kernel's own count of their run time) and the process that reads the records.
//!
//! Needs root: `cargo bench -p wakeai-kernel --bench monitor_cost [seconds]`. The link has no
//! segmentation offload, so that there are as many ACKs as on a real one.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench panics or prints")]

#[allow(dead_code, reason = "shared with the tests, which use all of it")]
#[path = "../tests/kernel/path.rs"]
mod path;
#[allow(dead_code, reason = "shared with the tests, which use all of it")]
#[path = "../tests/kernel/rig.rs"]
mod rig;

use std::os::fd::{FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use libbpf_rs::libbpf_sys::{BPF_STATS_RUN_TIME, bpf_enable_stats};
use libbpf_rs::query::ProgInfoIter;
use nix::time::{ClockId, clock_gettime};
use rig::Rig;
use wakeai_kernel::{Filter, Monitor, MonitorConfig, Record};

fn main() {
    let seconds = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(60);
    if rig::kernel().is_none() {
        return;
    }
    #[allow(unsafe_code, reason = "libbpf-rs does not wrap it")]
    // SAFETY: gives a descriptor that is ours, or -1; the count runs while it is open.
    let _count = unsafe { OwnedFd::from_raw_fd(bpf_enable_stats(BPF_STATS_RUN_TIME)) };
    println!("mode       Mbit/s    runs/s  records/s  lost  programs %  reader %  total %");
    // The last shows what the programs' being run and counted costs by itself.
    for (name, every_ack, port) in
        [("every ACK", true, None), ("1 ms", false, None), ("nothing", false, Some(9))]
    {
        let filter = Filter { port, ..Filter::default() };
        let config = MonitorConfig { every_ack, filter, ..MonitorConfig::default() };
        measure(name, &config, Duration::from_secs(seconds));
    }
}

fn measure(name: &str, config: &MonitorConfig, span: Duration) {
    let rig = Rig::with_veth();
    for namespace in [&rig.sender, &rig.receiver] {
        rig::ip(namespace, "link set wire gso_max_segs 1");
    }
    let flow = rig.paced_flow(77, "cubic", 1_000_000_000 / 8);
    // Both ends are on this machine: the programs also run for each segment that the receiver
    // gets, two thirds of all runs.
    let mut monitor = Monitor::open(config).unwrap();
    let reader = std::thread::spawn(move || {
        let cpu = || clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
        let (began, cpu_before, programs_before) = (Instant::now(), cpu(), programs());
        let (mut records, mut sum) = (0_u64, 0_u64);
        while began.elapsed() < span {
            let mut read = |record| {
                records += 1;
                if let Record::Sample(sample) = record {
                    sum += u64::from(sample.figures.cwnd.get());
                }
            };
            monitor.poll(Duration::from_millis(10), &mut read).unwrap();
        }
        std::hint::black_box(sum);
        let cpu_ns = Duration::from(cpu() - cpu_before).as_nanos() as f64;
        let (runs, run_ns) = programs();
        let wall = began.elapsed();
        let programs = ((runs - programs_before.0), (run_ns - programs_before.1) as f64);
        (records, monitor.lost(), cpu_ns, programs, wall)
    });
    let goodput = flow.goodput(span) as f64 * 8e-6;
    let (records, lost, cpu_ns, (runs, run_ns), wall) = reader.join().unwrap();
    let wall_ns = wall.as_nanos() as f64;
    let percent = |ns: f64| 100.0 * ns / wall_ns;
    println!(
        "{name:<9} {goodput:>7.0} {:>7.0} {:>10.0} {lost:>5} {:>11.2} {:>9.2} {:>8.2}",
        runs as f64 / wall.as_secs_f64(),
        records as f64 / wall.as_secs_f64(),
        percent(run_ns),
        percent(cpu_ns),
        percent(run_ns + cpu_ns),
    );
}

/// How often the monitor's programs ran, and for how long.
fn programs() -> (u64, u64) {
    let ours = ProgInfoIter::default().filter(|program| {
        let name = program.name.to_string_lossy().into_owned();
        ["on_segment", "on_congestion_s", "on_retransmit", "on_socket_state"]
            .contains(&name.as_str())
    });
    ours.fold((0, 0), |(runs, ns), program| (runs + program.run_cnt, ns + program.run_time_ns))
}
