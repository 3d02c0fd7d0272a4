//! What the running kernel offers, for `wakeai doctor` and for errors that name what lacks.

mod btf;
mod privileges;

use std::fs;
use std::path::Path;

pub use btf::CongControl;
use btf::Types;

use crate::error::Error;
use crate::place;

/// One thing that Wakeai needs or would use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    /// A short name, such as `struct_ops`.
    pub name: &'static str,
    /// What was found, in a few words.
    pub found: String,
    /// `None` where it is there.
    pub lack: Option<Lack>,
}

/// What a missing feature means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    /// What does not work without it.
    pub consequence: &'static str,
    /// What to do about it.
    pub remedy: &'static str,
    /// Whether it is the process that lacks it, not the kernel.
    pub privilege: bool,
}

/// What [`detect`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Features {
    /// As `uname -r` prints it.
    pub kernel_release: String,
    /// All that was looked at, the most basic first.
    pub features: Vec<Feature>,
    /// The signature of `cong_control`, where there is BTF to read it from.
    pub cong_control: Option<CongControl>,
    /// Whether a registration can be held by a link (6.4 and later).
    pub struct_ops_link: bool,
}

impl Features {
    /// Whether the monitor can run.
    pub fn can_monitor(&self) -> bool {
        self.first_lacking(MONITOR).is_none()
    }

    /// Whether bounds can be enforced in full: floors, ceilings and pacing.
    pub fn can_bound(&self) -> bool {
        self.first_lacking(BOUND).is_none() && self.first_lacking(ITERATE).is_none()
    }

    /// What this kernel, whatever the privileges, lacks for an agent; with `bounds` for one that
    /// rules.
    pub fn lacks_for_agent(&self, bounds: bool) -> Option<Error> {
        let needs = if bounds { &[ITERATE, BOUND][..] } else { &[ITERATE] };
        let of_kernel = Self {
            features: self.features.iter().filter(|of| !is_privilege(of)).cloned().collect(),
            ..self.clone()
        };
        needs.iter().find_map(|needs| of_kernel.why_not("run an agent here", needs))
    }

    /// Whether this feature is one of those without which the monitor or the bounds do not work.
    pub fn is_needed(name: &str) -> bool {
        [MONITOR, BOUND, ITERATE].iter().any(|needs| needs.contains(&name))
    }

    /// What keeps the monitor from running, as the error that it would end with.
    ///
    /// # Errors
    ///
    /// The first privilege or feature that is missing.
    pub fn to_monitor(&self) -> Result<(), Error> {
        self.why_not("watch TCP", MONITOR).map_or(Ok(()), Err)
    }

    /// What keeps bounds from being enforced in full.
    ///
    /// # Errors
    ///
    /// The first privilege or feature that is missing.
    pub fn to_bound(&self) -> Result<(), Error> {
        let missing = self.why_not("bound connections", BOUND);
        missing.or_else(|| self.why_not("bound connections", ITERATE)).map_or(Ok(()), Err)
    }

    fn first_lacking(&self, needs: &[&str]) -> Option<(&Feature, &Lack)> {
        self.features
            .iter()
            .filter(|feature| needs.contains(&feature.name))
            .find_map(|feature| Some((feature, feature.lack.as_ref()?)))
    }

    /// The error for an operation that failed, if something missing that it `needs` explains it.
    pub(crate) fn why_not(&self, asked: &str, needs: &[&str]) -> Option<Error> {
        let (feature, lack) = self.first_lacking(needs)?;
        let asked = asked.to_owned();
        let (lacks, remedy) = (feature.found.clone(), lack.remedy.to_owned());
        Some(if lack.privilege {
            Error::Privilege { asked, lacks, remedy }
        } else {
            Error::Feature { asked, lacks, remedy }
        })
    }
}

fn is_privilege(feature: &Feature) -> bool {
    feature.lack.as_ref().is_some_and(|lack| lack.privilege)
}

/// What the monitor needs.
pub(crate) const MONITOR: &[&str] = &["BTF", "capabilities", "lockdown", "tp_btf"];

/// What our algorithms and their bounds need.
pub(crate) const BOUND: &[&str] =
    &["BTF", "capabilities", "lockdown", "struct_ops", "pacing", "bpffs"];

/// What reading and moving connections need.
pub(crate) const ITERATE: &[&str] = &["BTF", "capabilities", "lockdown", "iter/tcp"];

/// What ruling the connections of a control group needs.
pub(crate) const CGROUP: &[&str] = &["BTF", "capabilities", "lockdown", "iter/tcp", "sockops"];

/// Looks at the running kernel and at this process's privileges; loads and changes nothing.
pub fn detect() -> Features {
    let types = Types::of_kernel();
    let types = types.as_ref();
    let has = |kind: &str| types.is_some_and(|types| types.has(kind));
    let release = read("/proc/sys/kernel/osrelease");
    let cong_control = types.and_then(Types::cong_control);
    let struct_ops_link = has("bpf_struct_ops_link");
    let features = vec![
        btf_feature(types.is_some()),
        privileges::capabilities(),
        lockdown(),
        struct_ops(has("bpf_struct_ops_tcp_congestion_ops"), cong_control),
        link(struct_ops_link),
        pacing(&release),
        traces(&has),
        iterator(has("bpf_iter__tcp")),
        sockops(has("bpf_cgroup_link")),
        bpffs(),
    ];
    Features { kernel_release: release, features, cong_control, struct_ops_link }
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
    let lack = Lack { consequence, remedy, privilege: false };
    Feature { name, found: found.into(), lack: (!is_there).then_some(lack) }
}

fn yes_no(is_there: bool, there: &str, missing: &str) -> String {
    if is_there { there } else { missing }.to_owned()
}

fn btf_feature(is_there: bool) -> Feature {
    let found = yes_no(
        is_there,
        "/sys/kernel/btf/vmlinux",
        "type information (BTF, /sys/kernel/btf/vmlinux)",
    );
    let consequence = "no BPF program of ours loads: no monitor, no bounds";
    let remedy = "use a kernel built with CONFIG_DEBUG_INFO_BTF=y (Debian's and Ubuntu's are)";
    feature("BTF", is_there, found, (consequence, remedy))
}

fn lockdown() -> Feature {
    let mode = read("/sys/kernel/security/lockdown");
    let is_open = !mode.contains("[confidentiality]");
    let found =
        yes_no(is_open, "does not forbid BPF", "leave to read the kernel's memory (lockdown)");
    let remedy = "boot without lockdown=confidentiality";
    feature("lockdown", is_open, found, ("no BPF program of ours loads", remedy))
}

/// What a kernel gets that cannot load our algorithms. Nothing weaker stands in for them:
/// `docs/decisions/007-no-bounds-without-struct-ops.md` says why.
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
    let found = yes_no(is_there, "registrations can be links", "links for struct_ops");
    let consequence =
        "a registration outlives an agent that is killed; the next command removes it";
    feature("struct_ops link", is_there, found, (consequence, "none needed; 6.4 has them"))
}

fn pacing(release: &str) -> Feature {
    let major = release.split('.').next().and_then(|major| major.parse::<u32>().ok());
    let is_there = major.is_some_and(|major| major >= 6);
    let found =
        yes_no(is_there, "a BPF algorithm may set it", "leave for BPF to set the pacing rate");
    feature("pacing", is_there, found, (NO_ALGORITHMS, "use Linux 6.0 or later"))
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
    let found = yes_no(is_there, "TCP sockets can be iterated", "the BPF iterator of TCP sockets");
    let consequence = "existing connections are neither seen nor moved";
    let remedy = "use Linux 5.16 or later with CONFIG_BPF_SYSCALL=y and CONFIG_PROC_FS=y";
    feature("iter/tcp", is_there, found, (consequence, remedy))
}

fn sockops(is_there: bool) -> Feature {
    let found = yes_no(is_there, "can be attached to a cgroup v2", "BPF for cgroups (sockops)");
    let consequence = "no algorithm can be put to work for a cgroup";
    let remedy = "use Linux 5.7 or later with CONFIG_CGROUP_BPF=y";
    feature("sockops", is_there, found, (consequence, remedy))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn with(lack: Option<Lack>) -> Features {
        let feature = Feature { name: "tp_btf", found: "the tracepoints".to_owned(), lack };
        Features {
            kernel_release: "6.1.0".to_owned(),
            features: vec![feature],
            cong_control: Some(CongControl::Short),
            struct_ops_link: false,
        }
    }

    #[test]
    fn a_lack_explains_the_failure_of_what_needs_it_alone() {
        let lack = Lack { consequence: "", remedy: "boot another", privilege: false };
        let error = with(Some(lack.clone())).why_not("watch TCP", MONITOR).unwrap();
        assert!(error.is_missing());
        assert_eq!(
            error.to_string(),
            "cannot watch TCP: this kernel lacks the tracepoints; boot another"
        );
        assert!(with(Some(lack)).why_not("move connections", ITERATE).is_none());
        assert!(with(None).why_not("watch TCP", MONITOR).is_none());
    }

    #[test]
    fn an_agent_with_a_law_lacks_what_bounds_need_and_no_privilege() {
        let lack = |privilege| Lack { consequence: "", remedy: "", privilege };
        let mut features = with(None);
        features.features[0] =
            Feature { name: "struct_ops", found: "BPF".to_owned(), lack: Some(lack(false)) };
        assert!(features.lacks_for_agent(true).is_some_and(|error| error.is_missing()));
        assert!(features.lacks_for_agent(false).is_none());
        features.features[0].lack = Some(lack(true));
        assert!(features.lacks_for_agent(true).is_none());
    }

    #[test]
    fn a_missing_tracepoint_ends_the_monitor_only() {
        let lack = Lack { consequence: "", remedy: "", privilege: false };
        assert!(!with(Some(lack.clone())).can_monitor());
        assert!(with(Some(lack)).can_bound());
    }

    #[test]
    fn a_kernel_without_our_algorithms_is_promised_no_bounds() {
        for feature in [struct_ops(false, None), pacing("5.10.0-30-amd64")] {
            let lack = feature.lack.unwrap();
            assert!(lack.consequence.contains("no bounds"), "{}", lack.consequence);
            assert!(!lack.consequence.contains("ceilings only"), "{}", lack.consequence);
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
            assert!(feature.lack.as_ref().is_none_or(|lack| !lack.remedy.is_empty()));
        }
    }
}
