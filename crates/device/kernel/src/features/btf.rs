//! Finds out features of the kernel from its type information (BTF).

use std::sync::OnceLock;

use libbpf_rs::btf::types::{Composite, FuncProto, Ptr};
use libbpf_rs::btf::{Btf, BtfType, ReferencesType as _};

/// The signature of `cong_control` of `tcp_congestion_ops`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongControl {
    /// `(sk, rs)`, before Linux 6.10.
    Short,
    /// `(sk, ack, flag, rs)`, from Linux 6.10 on.
    Long,
}

/// The types of the kernel that show a feature.
const ASKED: [&str; 10] = [
    "bpf_struct_ops_tcp_congestion_ops",
    "bpf_struct_ops_link",
    "btf_trace_tcp_probe",
    "btf_trace_tcp_cong_state_set",
    "btf_trace_tcp_retransmit_skb",
    "btf_trace_inet_sock_set_state",
    "bpf_iter__tcp",
    "bpf_cgroup_link",
    "bpf_rdonly_cast",
    "fq_sched_data",
];

/// What the types of the running kernel show.
pub(super) struct Types {
    found: Vec<&'static str>,
    pub(super) cong_control: Option<CongControl>,
}

impl Types {
    /// Reads the types once per process, because reading them takes tens of milliseconds on a slow processor. `None`
    /// where the kernel has no type information.
    pub(super) fn of_kernel() -> Option<&'static Self> {
        static READ: OnceLock<Option<Types>> = OnceLock::new();
        READ.get_or_init(Self::read).as_ref()
    }

    fn read() -> Option<Self> {
        crate::skeleton::quiet();
        let btf = Btf::from_vmlinux().ok()?;
        let has = |name: &&str| btf.type_by_name::<BtfType<'_>>(name).is_some();
        let found = ASKED.into_iter().filter(has).collect();
        Some(Self { found, cong_control: cong_control(&btf) })
    }

    /// Whether the kernel has the type `name`, which is one of those asked for above.
    pub(super) fn has(&self, name: &str) -> bool {
        debug_assert!(ASKED.contains(&name), "{name} was not looked for");
        self.found.contains(&name)
    }
}

fn cong_control(btf: &Btf<'_>) -> Option<CongControl> {
    let operations = btf.type_by_name::<Composite<'_>>("tcp_congestion_ops")?;
    let member =
        operations.iter().find(|member| member.name.is_some_and(|name| name == "cong_control"))?;
    let pointer = btf.type_by_id::<Ptr<'_>>(member.ty)?;
    let function = FuncProto::try_from(pointer.referenced_type()).ok()?;
    Some(if function.len() == 2 { CongControl::Short } else { CongControl::Long })
}
