//! The algorithms of ours that obey bounds.

/// An algorithm of ours, and what it is without bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounded {
    /// The name, as `tcp_congestion_control` and `TCP_CONGESTION` take it.
    pub name: &'static str,
    /// The kernel's own algorithm that its connections go to when it is unloaded.
    pub plain: &'static str,
}

impl Bounded {
    /// Those that an agent puts in the place of their plain ones.
    pub const STAND_INS: [Self; 2] = [Self::ALL[0], Self::ALL[1]];

    /// All of them, the stand-ins first.
    pub const ALL: [Self; 5] = [
        Self { name: "wakeai_cubic", plain: "cubic" },
        Self { name: "wakeai_reno", plain: "reno" },
        Self { name: "wakeai_rtt", plain: "cubic" },
        Self { name: "wakeai_av", plain: "reno" },
        Self { name: "wakeai_compound", plain: "reno" },
    ];

    /// What stands in for the kernel's algorithm `plain`, if anything does.
    pub fn instead_of(plain: &str) -> Option<Self> {
        Self::STAND_INS.into_iter().find(|bounded| bounded.plain == plain)
    }
}
