//! The laws. `docs/concepts/laws.md` explains each, with its formulas.
//!
//! 000 stands for Matsuno, Yamaguchi, Kamiyama and Oguchi, "A Study of Communication Control
//! Considering Wireless and WLANs on Android"; 001 for Shimada, Yamaguchi and Oguchi, "Performance
//! Evaluation of Backlog Control Middleware in WLAN and LTE networks with Multiple Android
//! Terminals".

pub mod airtime;
mod candidate;
pub mod fixed;
pub mod shimada;

pub use candidate::by_senders;
