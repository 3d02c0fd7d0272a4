//! Finds out features of the kernel from its type information (BTF).

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

/// The types of the running kernel.
pub(super) struct Types(Btf<'static>);

impl Types {
    pub(super) fn of_kernel() -> Option<Self> {
        crate::skeleton::quiet();
        Btf::from_vmlinux().ok().map(Self)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.type_by_name::<BtfType<'_>>(name).is_some()
    }

    pub(super) fn cong_control(&self) -> Option<CongControl> {
        let operations = self.0.type_by_name::<Composite<'_>>("tcp_congestion_ops")?;
        let member = operations
            .iter()
            .find(|member| member.name.is_some_and(|name| name == "cong_control"))?;
        let pointer = self.0.type_by_id::<Ptr<'_>>(member.ty)?;
        let function = FuncProto::try_from(pointer.referenced_type()).ok()?;
        Some(if function.len() == 2 { CongControl::Short } else { CongControl::Long })
    }
}
