//! The capabilities of this process.

use std::collections::HashSet;

use wakeai_host::Capability::{self, CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON, CAP_SYS_ADMIN};

use super::{Feature, Problem};

/// The capabilities that loading BPF programs needs. `CAP_SYS_ADMIN` implies `CAP_BPF` and
/// `CAP_PERFMON`, which Linux has split from it in 5.8.
pub(super) fn capabilities() -> Feature {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cap_sys_admin_stands_in_for_bpf_and_perfmon_only() {
        assert_eq!(missing_in(&[CAP_SYS_ADMIN].into()), [CAP_NET_ADMIN]);
        assert!(missing_in(&[CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN].into()).is_empty());
        assert_eq!(missing_in(&HashSet::new()).len(), 3);
    }
}
