//! The cost of the monitor at about 1 Gbit/s over veth, in percent of a core: that of its programs, by the kernel's
//! own count of their run time, and that of the process that reads the records.
//!
//! To count, the kernel reads a clock before and after each run, and most of one reading is part of
//! the count. An empty program on the same tracepoint, measured in the same minute, shows how much.
//! The column `clock` is the count of the empty program, scaled to the number of runs of the
//! monitor's programs. The column `net` is the total less `clock`: the cost while nothing is
//! counted.
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
    let _empty = empty::attach();
    println!(
        "mode       Mbit/s    runs/s  records/s  lost  programs %  reader %  total %  clock %  net %"
    );
    // The last configuration shows the cost of connections that are not watched.
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
    // Both ends are on this machine, so the programs also run for each segment that the receiver gets, which is two
    // thirds of all runs.
    let mut monitor = Monitor::open(config).unwrap();
    let reader = std::thread::spawn(move || {
        let cpu = || clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
        let (began, cpu_before, programs_before) = (Instant::now(), cpu(), programs());
        let (mut records, mut sum) = (0_u64, 0_u64);
        while began.elapsed() < span {
            let mut read = |record: Record| {
                records += 1;
                if record.event.is_none() {
                    sum += u64::from(record.figures.cwnd.get());
                }
            };
            monitor.poll(Monitor::INTERVAL, &mut read).unwrap();
        }
        std::hint::black_box(sum);
        let cpu_ns = Duration::from(cpu() - cpu_before).as_nanos() as f64;
        let (runs, run_ns) = programs();
        let wall = began.elapsed();
        let programs = ((runs - programs_before.0), (run_ns - programs_before.1) as f64);
        (records, monitor.lost(), cpu_ns, programs, wall)
    });
    let empty_before = counted(&[empty::NAME]);
    let goodput = flow.goodput(span) as f64 * 8e-6;
    let empty_after = counted(&[empty::NAME]);
    let (records, lost, cpu_ns, (runs, run_ns), wall) = reader.join().unwrap();
    let wall_ns = wall.as_nanos() as f64;
    let percent = |ns: f64| 100.0 * ns / wall_ns;
    let empty_runs = (empty_after.0 - empty_before.0).max(1) as f64;
    let clock_ns = runs as f64 * (empty_after.1 - empty_before.1) as f64 / empty_runs;
    println!(
        "{name:<9} {goodput:>7.0} {:>7.0} {:>10.0} {lost:>5} {:>11.2} {:>9.2} {:>8.2} {:>8.2} {:>6.2}",
        runs as f64 / wall.as_secs_f64(),
        records as f64 / wall.as_secs_f64(),
        percent(run_ns),
        percent(cpu_ns),
        percent(run_ns + cpu_ns),
        percent(clock_ns),
        percent(run_ns + cpu_ns - clock_ns),
    );
}

/// The number of runs of the monitor's programs, and their time in nanoseconds.
fn programs() -> (u64, u64) {
    counted(&["on_segment", "on_congestion_s", "on_retransmit", "on_socket_state"])
}

fn counted(names: &[&str]) -> (u64, u64) {
    let ours =
        ProgInfoIter::default().filter(|program| names.iter().any(|name| program.name == **name));
    ours.fold((0, 0), |(runs, ns), program| (runs + program.run_cnt, ns + program.run_time_ns))
}

/// A program that does nothing, on the tracepoint of the monitor's busiest program.
mod empty {
    #![allow(unsafe_code, reason = "libbpf-rs loads programs from objects only")]

    use std::ffi::CString;
    use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

    use libbpf_rs::libbpf_sys::{
        BPF_ALU64, BPF_EXIT, BPF_JMP, BPF_K, BPF_MOV, BPF_PROG_TYPE_TRACING, BPF_TRACE_RAW_TP,
        bpf_insn, bpf_prog_load, bpf_prog_load_opts, bpf_raw_tracepoint_open,
        libbpf_find_vmlinux_btf_id,
    };

    pub(super) const NAME: &str = "wakeai_empty";

    /// The program and its link, which runs until both are dropped.
    pub(super) fn attach() -> [OwnedFd; 2] {
        let code = |code| bpf_insn { code: code as u8, ..bpf_insn::default() };
        let do_nothing = [code(BPF_ALU64 | BPF_MOV | BPF_K), code(BPF_JMP | BPF_EXIT)];
        // SAFETY: a name that ends in zero.
        let tracepoint =
            unsafe { libbpf_find_vmlinux_btf_id(c"tcp_probe".as_ptr(), BPF_TRACE_RAW_TP) };
        let mut options = bpf_prog_load_opts {
            sz: size_of::<bpf_prog_load_opts>() as u64,
            expected_attach_type: BPF_TRACE_RAW_TP,
            ..bpf_prog_load_opts::default()
        };
        options.attach_btf_id = u32::try_from(tracepoint).unwrap();
        let name = CString::new(NAME).unwrap();
        // SAFETY: all that is pointed to lives until it returns.
        let program = unsafe {
            bpf_prog_load(
                BPF_PROG_TYPE_TRACING,
                name.as_ptr(),
                c"Dual MIT/GPL".as_ptr(),
                do_nothing.as_ptr(),
                do_nothing.len() as u64,
                &raw mut options,
            )
        };
        assert!(program >= 0, "loading: {}", std::io::Error::last_os_error());
        // SAFETY: the kernel has just given it to us.
        let program = unsafe { OwnedFd::from_raw_fd(program) };
        // SAFETY: no name, as for every program of this type, and a descriptor of ours.
        let link = unsafe { bpf_raw_tracepoint_open(std::ptr::null(), program.as_raw_fd()) };
        assert!(link >= 0, "attaching: {}", std::io::Error::last_os_error());
        // SAFETY: the kernel has just given it to us.
        [program, unsafe { OwnedFd::from_raw_fd(link) }]
    }
}
