//! The algorithms that obey bounds.

/// The name of the algorithm that holds a target rate.
pub const HOLDS_A_RATE: &str = "wakeai_av";

/// An algorithm that obeys bounds, and the kernel's algorithm that it replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounded {
    /// The name, as `tcp_congestion_control` and `TCP_CONGESTION` take it, and as scenarios name it.
    pub name: &'static str,
    /// The kernel's own algorithm, to which its connections are moved when it is unloaded.
    pub plain: &'static str,
}

impl Bounded {
    /// The algorithms that an agent uses in place of the kernel's.
    pub const STAND_INS: [Self; 3] = [Self::ALL[0], Self::ALL[1], Self::ALL[2]];

    /// All algorithms, those that an agent uses first.
    pub const ALL: [Self; 6] = [
        Self { name: "wakeai_cubic", plain: "cubic" },
        Self { name: "wakeai_reno", plain: "reno" },
        Self { name: "wakeai_bbr", plain: "bbr" },
        Self { name: "wakeai_rtt", plain: "cubic" },
        Self { name: HOLDS_A_RATE, plain: "reno" },
        Self { name: "wakeai_compound", plain: "reno" },
    ];

    /// The algorithm with this name; `None` for one that does not obey bounds.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|bounded| bounded.name == name)
    }

    /// The algorithm that an agent uses in place of the kernel's `plain`.
    pub fn instead_of(plain: &str) -> Option<Self> {
        Self::STAND_INS.into_iter().find(|bounded| bounded.plain == plain)
    }
}
