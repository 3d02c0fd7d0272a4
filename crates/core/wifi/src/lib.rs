//! The facts of 802.11, and the configuration of one access point and its stations.
//!
//! `scenario` reads the configuration from a file, `medium` emulates it, and `control` computes
//! with the same limits. So each standard, table of rates, default and limit is written here once.
//!
//! - [`Standard`], [`Width`], [`GuardInterval`]: the options, the timing and the limits of each amendment.
//! - [`Mode`]: the tables of rates (modulation and coding schemes).
//! - [`Bss`], [`StationRadio`], [`Contention`]: the configuration of an access point and of a station.
//! - [`QueueLimit`]: the most that a queue holds, in packets or in bytes.
//! - [`Wired`], [`Cell`]: the leg behind the access point, and the cellular link that may replace the BSS.

mod bss;
mod links;
mod queue;
mod rates;
mod standard;

pub use bss::{Bss, Contention, Protection, QueueDiscipline, StationRadio};
pub use links::{Cell, Scheduler, Wired};
pub use queue::QueueLimit;
pub use rates::{DSSS_RATES, LEGACY_RATES, Mode};
pub use standard::{GuardInterval, LONGEST_PPDU, Standard, Width};
