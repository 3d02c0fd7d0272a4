//! What the program costs that counts and slows datagrams: nanoseconds per packet, and percent of a core at 1 Gbit/s in
//! packets of 1500 bytes, by the kernel's own count of its run time.
//!
//! To count, the kernel reads a clock before and after each run. An empty program at the same place, measured at the
//! same time, shows how much of the count this is; the figures are without it.
//!
//! Needs root: `cargo bench -p wakeai-kernel --bench egress_cost [seconds]`.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench panics or prints")]

#[allow(dead_code, reason = "shared with the tests, which use all of it")]
#[path = "../tests/kernel/path.rs"]
mod path;
#[allow(dead_code, reason = "shared with the tests, which use all of it")]
#[path = "../tests/kernel/rig.rs"]
mod rig;

use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use libbpf_rs::libbpf_sys::{BPF_STATS_RUN_TIME, bpf_enable_stats};
use libbpf_rs::query::ProgInfoIter;
use nix::sys::socket::{setsockopt, sockopt};
use rig::Rig;
use wakeai_kernel::Egress;
use wakeai_units::Rate;

/// The payload of a packet of 1500 bytes.
const PAYLOAD: usize = 1472;
/// How often the table of flows is read.
const READINGS: u32 = 200;
const LATELY: wakeai_units::Duration = wakeai_units::Duration::from_secs(10);
/// Packets per second of 1 Gbit/s.
const PACKETS: f64 = 1e9 / (1500.0 * 8.0);

/// What is sent, and what the program has to do with it.
struct Mode {
    name: &'static str,
    /// The segments of a call (UDP GSO).
    segments: usize,
    /// Whether the flow has a rate. It is far above what is sent.
    has_rate: bool,
    /// Whether the program watches another interface.
    elsewhere: bool,
}

fn main() {
    let seconds = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(10);
    if rig::kernel().is_none() {
        return;
    }
    #[allow(unsafe_code, reason = "libbpf-rs does not wrap it")]
    // SAFETY: gives a descriptor that is ours, or -1; the count runs while it is open.
    let _count = unsafe { OwnedFd::from_raw_fd(bpf_enable_stats(BPF_STATS_RUN_TIME)) };
    let _empty = empty::attach();
    println!("mode                 runs/s  ns/run  clock ns  net ns  % of a core at 1 Gbit/s");
    let plain = Mode { name: "counted", segments: 1, has_rate: false, elsewhere: false };
    measure(&plain, Duration::from_secs(seconds));
    let modes = [
        Mode { name: "with a rate", has_rate: true, ..plain },
        Mode { name: "10 segments a call", segments: 10, has_rate: true, ..plain },
        Mode { name: "other interface", elsewhere: true, ..plain },
    ];
    for mode in modes {
        measure(&mode, Duration::from_secs(seconds));
    }
}

fn measure(mode: &Mode, span: Duration) {
    let rig = Rig::with_veth();
    let (cookie, index) = rig.interface(if mode.elsewhere { "side" } else { "wire" });
    let (egress, hook) = Egress::open(cookie).unwrap();
    egress.watch(index, false).unwrap();
    egress.heartbeat().unwrap();
    assert!(hook.look().unwrap());
    let listen = || UdpSocket::bind((Ipv4Addr::new(10, 77, 0, 2), 0)).unwrap();
    let receiver = rig.receiver.run(listen).unwrap();
    let sender = rig.sender.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap()).unwrap();
    sender.connect(receiver.local_addr().unwrap()).unwrap();
    let segment = i32::try_from(PAYLOAD).unwrap();
    if mode.segments > 1 {
        setsockopt(&sender, sockopt::UdpGsoSegment, &segment).unwrap();
    }
    let datagram = vec![0x40; PAYLOAD * mode.segments];
    let _ = sender.send(&datagram).unwrap();
    if mode.has_rate {
        let id = egress.flows(LATELY).unwrap()[0].id;
        egress.set_rate(id, Some(Rate::from_mbps(100_000)), wakeai_units::Duration::ZERO).unwrap();
    }
    let (before, empty_before) = (counted("govern_egress"), counted(empty::NAME));
    let began = Instant::now();
    while began.elapsed() < span {
        egress.heartbeat().unwrap();
        for _ in 0..1000 {
            sender.send(&datagram).unwrap();
        }
    }
    let elapsed = began.elapsed().as_secs_f64();
    let per_run = |(runs, ns): (u64, u64), (runs_before, ns_before): (u64, u64)| {
        ((runs - runs_before) as f64, (ns - ns_before) as f64 / (runs - runs_before).max(1) as f64)
    };
    let (runs, ns) = per_run(counted("govern_egress"), before);
    let (_, clock) = per_run(counted(empty::NAME), empty_before);
    let net = ns - clock;
    if !mode.has_rate && !mode.elsewhere {
        let began = Instant::now();
        for _ in 0..READINGS {
            assert!(!egress.flows(LATELY).unwrap().is_empty());
        }
        let each = began.elapsed() / READINGS;
        println!("an agent's reading of the table takes {} us, twice per second", each.as_micros());
    }
    println!(
        "{:<18} {:>8.0} {ns:>7.0} {clock:>9.0} {net:>7.0} {:>24.2}",
        mode.name,
        runs / elapsed,
        100.0 * net * PACKETS / mode.segments as f64 / 1e9
    );
}

/// The number of runs of a program of this name, and their time in nanoseconds.
fn counted(name: &str) -> (u64, u64) {
    let ours = ProgInfoIter::default().filter(|program| program.name == *name);
    ours.fold((0, 0), |(runs, ns), program| (runs + program.run_cnt, ns + program.run_time_ns))
}

/// A program that does nothing, at the same place.
mod empty {
    #![allow(unsafe_code, reason = "libbpf-rs loads programs from objects only")]

    use std::ffi::CString;
    use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

    use libbpf_rs::libbpf_sys::{
        BPF_ALU64, BPF_CGROUP_INET_EGRESS, BPF_EXIT, BPF_JMP, BPF_K, BPF_MOV,
        BPF_PROG_TYPE_CGROUP_SKB, bpf_insn, bpf_link_create, bpf_prog_load, bpf_prog_load_opts,
    };

    pub(super) const NAME: &str = "wakeai_empty";

    /// The program and its link, which runs until both are dropped.
    pub(super) fn attach() -> [OwnedFd; 2] {
        let code = |code, imm| bpf_insn { code: code as u8, imm, ..bpf_insn::default() };
        let pass = [code(BPF_ALU64 | BPF_MOV | BPF_K, 1), code(BPF_JMP | BPF_EXIT, 0)];
        let mut options = bpf_prog_load_opts {
            sz: size_of::<bpf_prog_load_opts>() as u64,
            expected_attach_type: BPF_CGROUP_INET_EGRESS,
            ..bpf_prog_load_opts::default()
        };
        let name = CString::new(NAME).unwrap();
        // SAFETY: all that is pointed to lives until it returns.
        let program = unsafe {
            bpf_prog_load(
                BPF_PROG_TYPE_CGROUP_SKB,
                name.as_ptr(),
                c"Dual MIT/GPL".as_ptr(),
                pass.as_ptr(),
                pass.len() as u64,
                &raw mut options,
            )
        };
        assert!(program >= 0, "loading: {}", std::io::Error::last_os_error());
        // SAFETY: the kernel has just given it to us.
        let program = unsafe { OwnedFd::from_raw_fd(program) };
        let root = wakeai_host::cgroup_root().unwrap();
        // SAFETY: no options, and descriptors of ours.
        let link = unsafe {
            bpf_link_create(
                program.as_raw_fd(),
                root.as_raw_fd(),
                BPF_CGROUP_INET_EGRESS,
                std::ptr::null(),
            )
        };
        assert!(link >= 0, "attaching: {}", std::io::Error::last_os_error());
        // SAFETY: the kernel has just given it to us.
        [program, unsafe { OwnedFd::from_raw_fd(link) }]
    }
}
