//! Connections that were put on an algorithm: what is written down of them.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::namespace::NetnsId;

/// Connections that one process put on an algorithm. They go back to what they had before, or
/// would have had; only the `kernel` crate can do that ([`crate::KernelUndo`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assigned {
    /// Their namespace; `None`: any.
    pub netns: Option<NetnsId>,
    /// The algorithm's name.
    pub algorithm: String,
    /// How they came to it.
    pub way: AssignedWay,
}

/// How connections came to an algorithm that they had not asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "way")]
pub enum AssignedWay {
    /// It was the default of their namespace, or of their route.
    Default {
        /// The network that the route leads to: address and length of the prefix.
        destination: Option<(IpAddr, u8)>,
        /// What they would have had; `None`: the default of their namespace.
        before: Option<String>,
    },
    /// Each was moved, and the kernel noted for whom and from which algorithm.
    Moved {
        /// For whom: a process id.
        owner: u32,
    },
}
