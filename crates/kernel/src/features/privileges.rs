//! The capabilities of this process.

use super::{Feature, Lack};

/// Numbers of `<linux/capability.h>`.
const NET_ADMIN: u32 = 12;
const SYS_ADMIN: u32 = 21;
const PERFMON: u32 = 38;
const BPF: u32 = 39;

/// The capabilities that loading needs; before 5.8 there is `CAP_SYS_ADMIN` alone, and it still
/// implies the other two.
pub(super) fn capabilities() -> Feature {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let missing = missing_in(effective(&status));
    let found = if missing.is_empty() {
        "CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN".to_owned()
    } else {
        missing.join(", ")
    };
    let lack = (!missing.is_empty()).then_some(Lack {
        consequence: "no BPF program of ours loads: no monitor, no bounds",
        remedy: "run as root, or grant the capabilities (setcap, AmbientCapabilities= in systemd)",
        privilege: true,
    });
    Feature { name: "capabilities", found, lack }
}

fn effective(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0)
}

fn missing_in(set: u64) -> Vec<&'static str> {
    let has = |bit: u32| set >> bit & 1 == 1;
    let mut missing = Vec::new();
    if !has(BPF) && !has(SYS_ADMIN) {
        missing.push("CAP_BPF");
    }
    if !has(PERFMON) && !has(SYS_ADMIN) {
        missing.push("CAP_PERFMON");
    }
    if !has(NET_ADMIN) {
        missing.push("CAP_NET_ADMIN");
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cap_sys_admin_stands_in_for_bpf_and_perfmon_only() {
        assert_eq!(missing_in(1 << SYS_ADMIN), ["CAP_NET_ADMIN"]);
        assert!(missing_in(1 << BPF | 1 << PERFMON | 1 << NET_ADMIN).is_empty());
        assert_eq!(missing_in(0).len(), 3);
    }

    #[test]
    fn the_effective_set_is_read_from_the_status_file() {
        assert_eq!(effective("Name:\tx\nCapEff:\t000000c000001000\n"), 0xc0_0000_1000);
        assert_eq!(effective("nothing of the kind"), 0);
    }
}
