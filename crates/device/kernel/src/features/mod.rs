//! The features of the running kernel, for `wakeai doctor` and for errors that name a missing one.

mod btf;

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use wakeai_host::Capability::{self, CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON, CAP_SYS_ADMIN};

pub use btf::CongControl;
use btf::Types;

use crate::error::Error;
use crate::place;

/// A feature of the kernel, or a privilege, that Wakeai needs or can use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    /// A short name, such as `struct_ops`.
    pub name: &'static str,
    /// The finding, in a few words.
    pub found: String,
    /// `None` where the feature is present.
    pub problem: Option<Problem>,
}

/// The consequence of a missing feature, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What does not work without the feature.
    pub consequence: &'static str,
    /// The remedy.
    pub remedy: &'static str,
    /// Whether the process lacks a privilege. Otherwise the kernel lacks a feature.
    pub privilege: bool,
}

/// The result of [`detect`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Features {
    /// The release, as `uname -r` prints it.
    pub kernel_release: String,
    /// All features, the most basic first.
    pub features: Vec<Feature>,
    /// The signature of the hook `cong_control`; `None` where the kernel has no type information
    /// (BTF).
    pub cong_control: Option<CongControl>,
    /// Whether a BPF link can hold the registration of an algorithm (Linux 6.4 and later).
    pub struct_ops_link: bool,
    /// Whether the receive window of a running connection can be bounded.
    pub receive_windows: bool,
}

impl Features {
    /// The error where this kernel lacks a feature that an agent needs. With `bounds` the agent has
    /// a law, and needs the features for bounds, too. Missing privileges do not count.
    pub fn lacks_for_agent(&self, bounds: bool) -> Option<Error> {
        let needs = if bounds { &[ITERATE, BOUND][..] } else { &[ITERATE] };
        let of_kernel = Self {
            features: self.features.iter().filter(|of| !is_privilege(of)).cloned().collect(),
            ..self.clone()
        };
        needs.iter().find_map(|needs| of_kernel.why_not("run an agent here", needs))
    }

    /// Whether the monitor or the bounds need the feature of this name.
    pub fn is_needed(name: &str) -> bool {
        [MONITOR, BOUND, ITERATE].iter().any(|needs| needs.contains(&name))
    }

    /// Checks that the monitor can run.
    ///
    /// # Errors
    ///
    /// The first privilege or feature that is missing.
    pub fn to_monitor(&self) -> Result<(), Error> {
        self.why_not("watch TCP", MONITOR).map_or(Ok(()), Err)
    }

    /// Checks that bounds can be enforced in full: floors, ceilings and pacing.
    ///
    /// # Errors
    ///
    /// The first privilege or feature that is missing.
    pub fn to_bound(&self) -> Result<(), Error> {
        let missing = self.why_not("bound connections", BOUND);
        missing.or_else(|| self.why_not("bound connections", ITERATE)).map_or(Ok(()), Err)
    }

    /// The error for the failed operation `asked`, if one of the features `needs` is missing.
    pub(crate) fn why_not<'a>(&'a self, asked: &str, needs: &[&str]) -> Option<Error> {
        let mut needed = self.features.iter().filter(|feature| needs.contains(&feature.name));
        let with_problem = |feature: &'a Feature| Some((feature, feature.problem.as_ref()?));
        let (feature, problem) = needed.find_map(with_problem)?;
        let asked = asked.to_owned();
        let (lacks, remedy) = (feature.found.clone(), problem.remedy.to_owned());
        Some(if problem.privilege {
            Error::Privilege { asked, lacks, remedy }
        } else {
            Error::Feature { asked, lacks, remedy }
        })
    }
}

fn is_privilege(feature: &Feature) -> bool {
    feature.problem.as_ref().is_some_and(|problem| problem.privilege)
}

/// The features that the monitor needs.
pub(crate) const MONITOR: &[&str] = &["BTF", "capabilities", "lockdown", "tp_btf"];

/// The features that our algorithms and their bounds need.
pub(crate) const BOUND: &[&str] =
    &["BTF", "capabilities", "lockdown", "struct_ops", "pacing", "bpffs"];

/// The features that reading and moving connections need.
pub(crate) const ITERATE: &[&str] = &["BTF", "capabilities", "lockdown", "iter/tcp"];

/// The features that applying an algorithm to a control group needs.
pub(crate) const CGROUP: &[&str] = &["BTF", "capabilities", "lockdown", "iter/tcp", "sockops"];

/// The features that counting and slowing datagrams needs.
pub(crate) const EGRESS: &[&str] = &["BTF", "capabilities", "lockdown", "egress"];

/// Examines the running kernel and this process's privileges. It loads and changes nothing.
pub fn detect() -> Features {
    let types = Types::of_kernel();
    let has = |kind: &str| types.is_some_and(|types| types.has(kind));
    let release = read("/proc/sys/kernel/osrelease");
    let cong_control = types.and_then(|types| types.cong_control);
    let struct_ops_link = has("bpf_struct_ops_link");
    let receive_windows = receive_windows();
    let features = vec![
        btf_feature(types.is_some()),
        capabilities(),
        lockdown(),
        struct_ops(has("bpf_struct_ops_tcp_congestion_ops"), cong_control),
        link(struct_ops_link),
        pacing(&release),
        windows(receive_windows),
        traces(&has),
        iterator(has("bpf_iter__tcp")),
        sockops(has("bpf_cgroup_link")),
        egress(has("bpf_cgroup_link")),
        fq(has_fq()),
        bpffs(),
    ];
    Features { kernel_release: release, features, cong_control, struct_ops_link, receive_windows }
}

/// Converts an error of libbpf for the operation `asked`, which needs the features `needs`. The
/// result names the first of these features that is missing. If none is missing, it contains the
/// error.
pub(crate) fn explain(asked: &str, needs: &[&str], error: libbpf_rs::Error) -> Error {
    detect().why_not(asked, needs).unwrap_or_else(|| Error::refused(asked, error))
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

fn feature(
    name: &'static str,
    is_there: bool,
    found: impl Into<String>,
    (consequence, remedy): (&'static str, &'static str),
) -> Feature {
    let problem = Problem { consequence, remedy, privilege: false };
    Feature { name, found: found.into(), problem: (!is_there).then_some(problem) }
}

/// A feature whose finding is one of two texts.
fn either(
    name: &'static str,
    is_there: bool,
    (there, missing): (&str, &str),
    problem: (&'static str, &'static str),
) -> Feature {
    feature(name, is_there, if is_there { there } else { missing }, problem)
}

fn btf_feature(is_there: bool) -> Feature {
    let found = ("/sys/kernel/btf/vmlinux", "type information (BTF, /sys/kernel/btf/vmlinux)");
    let consequence = "no BPF program of Wakeai loads: no monitor, no bounds";
    let remedy = "use a kernel built with CONFIG_DEBUG_INFO_BTF=y (Debian's and Ubuntu's are)";
    either("BTF", is_there, found, (consequence, remedy))
}

fn lockdown() -> Feature {
    let mode = read("/sys/kernel/security/lockdown");
    let is_open = !mode.contains("[confidentiality]");
    let found = ("does not forbid BPF", "permission to read the kernel's memory (lockdown)");
    let remedy = "boot without lockdown=confidentiality";
    either("lockdown", is_open, found, ("no BPF program of Wakeai loads", remedy))
}

/// The capabilities that loading BPF programs needs. `CAP_SYS_ADMIN` implies `CAP_BPF` and
/// `CAP_PERFMON`, which Linux has split from it in 5.8.
fn capabilities() -> Feature {
    let missing = missing_in(&wakeai_host::effective_privileges().unwrap_or_default());
    let found = if missing.is_empty() {
        "CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN".to_owned()
    } else {
        missing.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    };
    let problem = (!missing.is_empty()).then_some(Problem {
        consequence: "no BPF program of Wakeai loads: no monitor, no bounds",
        remedy: "run as root, or grant the capabilities (setcap, AmbientCapabilities= in systemd)",
        privilege: true,
    });
    Feature { name: "capabilities", found, problem }
}

fn missing_in(held: &HashSet<Capability>) -> Vec<Capability> {
    let implied: &[Capability] =
        if held.contains(&CAP_SYS_ADMIN) { &[CAP_BPF, CAP_PERFMON] } else { &[] };
    let mut needed = vec![CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN];
    needed.retain(|needed| !held.contains(needed) && !implied.contains(needed));
    needed
}

/// The consequence where the kernel cannot load our algorithms.
/// `docs/decisions/007-no-bounds-without-struct-ops.md` says why there is no weaker replacement.
const NO_ALGORITHMS: &str = "our algorithms do not load: no bounds, and an agent with a law, `wakeai \
                             use` and a proxy with one of ours end with exit status 77";

fn struct_ops(is_there: bool, signature: Option<CongControl>) -> Feature {
    let found = match (is_there, signature) {
        (true, Some(CongControl::Long)) => "cong_control(sk, ack, flag, rs), as from 6.10",
        (true, Some(CongControl::Short)) => "cong_control(sk, rs), as before 6.10",
        _ => "congestion control in BPF (struct_ops for tcp_congestion_ops)",
    };
    let remedy = "use Linux 5.13 or later with CONFIG_BPF_JIT=y";
    feature("struct_ops", is_there && signature.is_some(), found, (NO_ALGORITHMS, remedy))
}

fn link(is_there: bool) -> Feature {
    let found = ("registrations can be links", "links for struct_ops");
    let consequence =
        "a registration outlives an agent that is killed; the next command removes it";
    either("struct_ops link", is_there, found, (consequence, "none needed; 6.4 has them"))
}

fn pacing(release: &str) -> Feature {
    let major = release.split('.').next().and_then(|major| major.parse::<u32>().ok());
    let is_there = major.is_some_and(|major| major >= 6);
    let found = ("a BPF algorithm may set it", "permission for BPF to set the pacing rate");
    either("pacing", is_there, found, (NO_ALGORITHMS, "use Linux 6.0 or later"))
}

fn windows(is_there: bool) -> Feature {
    let found = (
        "those of running connections can be bounded",
        "bounds of the receive window of a running connection",
    );
    let consequence =
        "downloads are not governed, only uploads of the algorithms cubic, reno and bbr";
    let remedy = "use Linux 6.1.68, 6.6.7 or 6.7, or later";
    either("receive windows", is_there, found, (consequence, remedy))
}

/// Whether this kernel can bound the receive window of a running connection.
pub(crate) fn receive_windows() -> bool {
    has_windows(&read("/proc/sys/kernel/osrelease"), &read("/proc/sys/kernel/version"))
}

/// Whether the clamp of a receive window may be changed while that window is 0. Before "tcp: fix mid stream window
/// clamp" of Linux 6.7, which is in 6.1.68 and 6.6.7, too, such a window never opened again. Debian's `release` has
/// no third number, but its `version` has: `#1 SMP PREEMPT_DYNAMIC Debian 6.1.140-1 (2025-05-22)`.
fn has_windows(release: &str, version: &str) -> bool {
    let words = version.split(' ').chain([release]);
    words.filter_map(numbers).any(|numbers| match numbers {
        [6, 1, patch] => patch >= 68,
        [6, 6, patch] => patch >= 7,
        [major, minor, _] => (major, minor) >= (6, 7),
    })
}

/// The three numbers at the beginning of a word such as `6.1.140-1`, the third of which may be missing.
fn numbers(word: &str) -> Option<[u32; 3]> {
    let end = word.find(|byte: char| !byte.is_ascii_digit() && byte != '.').unwrap_or(word.len());
    let mut numbers = word[..end].split('.').map(|number| number.parse().ok());
    let [major, minor] = [numbers.next()??, numbers.next()??];
    Some([major, minor, numbers.next().flatten().unwrap_or(0)])
}

fn traces(has: &dyn Fn(&str) -> bool) -> Feature {
    let needed = ["tcp_probe", "tcp_cong_state_set", "tcp_retransmit_skb", "inet_sock_set_state"];
    let missing: Vec<_> =
        needed.into_iter().filter(|name| !has(&format!("btf_trace_{name}"))).collect();
    let found = if missing.is_empty() {
        "all four tracepoints".to_owned()
    } else {
        format!("the tracepoints {}", missing.join(", "))
    };
    let remedy = "use Linux 5.16 or later with CONFIG_BPF_EVENTS=y";
    feature("tp_btf", missing.is_empty(), found, ("no monitor", remedy))
}

fn iterator(is_there: bool) -> Feature {
    let found = ("TCP sockets can be iterated", "the BPF iterator of TCP sockets");
    let consequence = "existing connections are neither seen nor moved";
    let remedy = "use Linux 5.16 or later with CONFIG_BPF_SYSCALL=y and CONFIG_PROC_FS=y";
    either("iter/tcp", is_there, found, (consequence, remedy))
}

fn sockops(is_there: bool) -> Feature {
    let found = ("can be attached to a cgroup v2", "BPF for cgroups (sockops)");
    let consequence = "`wakeai use` cannot apply an algorithm to a cgroup";
    let remedy = "use Linux 5.7 or later with CONFIG_CGROUP_BPF=y";
    either("sockops", is_there, found, (consequence, remedy))
}

fn egress(has_links: bool) -> Feature {
    let found = match (has_links, place::in_machine_mounts(wakeai_host::cgroup_root)) {
        (false, _) => "BPF for cgroups (cgroup_skb)",
        (true, Err(_)) => "a mounted cgroup v2, to which BPF can be attached",
        (true, Ok(_)) => "datagrams of UDP can be counted and slowed",
    };
    let is_there = found.starts_with("datagrams");
    let consequence = "uploads by UDP, as those of QUIC, are neither counted nor governed";
    let remedy =
        "use Linux 5.11 or later with CONFIG_CGROUP_BPF=y, and mount cgroup v2 at /sys/fs/cgroup";
    feature("egress", is_there, found, (consequence, remedy))
}

fn fq(is_there: bool) -> Feature {
    let found = (
        "can take the place of the kernel's default queueing discipline, so that datagrams of UDP above their rate wait",
        "the queueing discipline fq (sch_fq)",
    );
    let consequence = "datagrams of UDP above their rate are marked and dropped instead of sent later, except behind an \
                       fq of your own";
    either("fq", is_there, found, (consequence, "use a kernel with CONFIG_NET_SCH_FQ"))
}

/// Whether the kernel has the queueing discipline `fq`: it is built in, loaded, or a module that the kernel can load.
/// Loads nothing.
pub fn has_fq() -> bool {
    let release = read("/proc/sys/kernel/osrelease");
    Types::of_kernel().is_some_and(|types| types.has("fq_sched_data"))
        || Path::new("/sys/module/sch_fq").is_dir()
        || read(&format!("/lib/modules/{release}/modules.dep")).contains("/sch_fq.ko")
}

fn bpffs() -> Feature {
    let mounted = place::in_machine_mounts(place::has_bpffs);
    let can = mounted || read("/proc/filesystems").lines().any(|line| line.ends_with("\tbpf"));
    let has_place = Path::new("/sys/fs/bpf").is_dir();
    let found = match (mounted, can && has_place) {
        (true, _) => "mounted at /sys/fs/bpf",
        (false, true) => "not mounted; the first agent mounts it at /sys/fs/bpf",
        (false, false) => "the BPF file system at /sys/fs/bpf",
    };
    let consequence = "agents cannot share a registration";
    feature("bpffs", can && has_place, found, (consequence, "use CONFIG_BPF_SYSCALL=y"))
}

/// Whether a program may read a kernel's structure of which it has the address (`bpf_rdonly_cast`, Linux 6.2).
pub(crate) fn casts() -> bool {
    Types::of_kernel().is_some_and(|types| types.has("bpf_rdonly_cast"))
}

/// The length of a jiffy, which is the resolution of the coarse clock. `CONFIG_HZ`, which sets it,
/// may not be readable.
pub(crate) fn tick_us() -> u32 {
    let tick = nix::time::clock_getres(nix::time::ClockId::CLOCK_MONOTONIC_COARSE);
    tick.map_or(4_000, |tick| (tick.tv_nsec() / 1_000) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(problem: Option<Problem>) -> Features {
        let feature = Feature { name: "tp_btf", found: "the tracepoints".to_owned(), problem };
        Features {
            kernel_release: "6.1.0".to_owned(),
            features: vec![feature],
            cong_control: Some(CongControl::Short),
            struct_ops_link: false,
            receive_windows: false,
        }
    }

    #[test]
    fn cap_sys_admin_stands_in_for_bpf_and_perfmon_only() {
        assert_eq!(missing_in(&[CAP_SYS_ADMIN].into()), [CAP_NET_ADMIN]);
        assert!(missing_in(&[CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN].into()).is_empty());
        assert_eq!(missing_in(&HashSet::new()).len(), 3);
    }

    #[test]
    fn a_lack_explains_the_failure_of_what_needs_it_alone() {
        let problem = Problem { consequence: "", remedy: "boot another", privilege: false };
        let error = with(Some(problem.clone())).why_not("watch TCP", MONITOR).unwrap();
        assert!(error.is_missing());
        assert_eq!(
            error.to_string(),
            "cannot watch TCP: this kernel lacks the tracepoints; boot another"
        );
        assert!(with(Some(problem)).why_not("move connections", ITERATE).is_none());
        assert!(with(None).why_not("watch TCP", MONITOR).is_none());
    }

    #[test]
    fn an_agent_with_a_law_lacks_what_bounds_need_and_no_privilege() {
        let problem = |privilege| Problem { consequence: "", remedy: "", privilege };
        let mut features = with(None);
        features.features[0] =
            Feature { name: "struct_ops", found: "BPF".to_owned(), problem: Some(problem(false)) };
        assert!(features.lacks_for_agent(true).is_some_and(|error| error.is_missing()));
        assert!(features.lacks_for_agent(false).is_none());
        features.features[0].problem = Some(problem(true));
        assert!(features.lacks_for_agent(true).is_none());
    }

    #[test]
    fn windows_are_bounded_where_a_closed_one_opens_again() {
        let debian = |number| format!("#1 SMP PREEMPT_DYNAMIC Debian {number}-1 (2025-05-22)");
        assert!(has_windows("6.1.0-40-amd64", &debian("6.1.153")));
        assert!(!has_windows("6.1.0-15-amd64", &debian("6.1.66")));
        assert!(has_windows("6.12.48+deb13-amd64", "#1 SMP 2025-09-20"));
        assert!(!has_windows("6.6.6", "#1 SMP") && has_windows("6.6.7", "#1 SMP"));
        assert!(
            !has_windows("6.5.13", "") && has_windows("6.7.0-rc5", "") && has_windows("7.0", "")
        );
        assert!(!has_windows("", "") && !has_windows("6", "5.10"));
    }

    #[test]
    fn a_missing_tracepoint_ends_the_monitor_only() {
        let problem = Problem { consequence: "", remedy: "", privilege: false };
        assert!(with(Some(problem.clone())).to_monitor().is_err());
        assert!(with(Some(problem)).to_bound().is_ok());
    }

    #[test]
    fn a_kernel_without_our_algorithms_is_promised_no_bounds() {
        for feature in [struct_ops(false, None), pacing("5.10.0-30-amd64")] {
            let problem = feature.problem.unwrap();
            assert!(problem.consequence.contains("no bounds"), "{}", problem.consequence);
            assert!(!problem.consequence.contains("ceilings only"), "{}", problem.consequence);
        }
    }

    #[test]
    fn every_feature_is_named_once_and_a_lack_says_what_to_do() {
        let found = detect();
        let mut names: Vec<_> = found.features.iter().map(|feature| feature.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), found.features.len());
        for feature in &found.features {
            assert!(!feature.found.is_empty());
            assert!(feature.problem.as_ref().is_none_or(|problem| !problem.remedy.is_empty()));
        }
    }
}
