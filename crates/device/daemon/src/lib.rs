//! What the daemons of Wakeai (agent, proxy and server of uploads) have in common.
//!
//! - [`listen()`] opens a listening socket, [`accept_each`] accepts its connections, and
//!   [`raise_open_files`] makes room for them.
//! - [`Shares`] decides which client may have one more connection.
//! - [`counters!`] makes counters, their report and their metrics of one list; [`metrics`] is the
//!   endpoint at which Prometheus reads them.
//! - [`event_loop`], [`terminated`] and [`notify`] are a daemon's life: its loop, its end, and what
//!   systemd learns of it.

mod counters;
mod life;
mod listen;
pub mod metrics;
mod shares;

pub use counters::Count;
pub use life::{event_loop, is_over, notify, terminated};
pub use listen::{BACKLOG, METHODS, accept_each, listen, part, raise_open_files};
pub use sd_notify::{NotifyState, watchdog_enabled};
pub use shares::{Busy, Client, SHORTEST, Share, Shares};
