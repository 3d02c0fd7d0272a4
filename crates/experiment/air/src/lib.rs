//! The medium on the wall clock. [`Drive`] runs it between ends that really send and receive: the TUN devices of the
//! lab's hosts, or radios of the kernel's driver `mac80211_hwsim` ([`hwsim`]).

mod drive;
pub mod hwsim;
mod lateness;
mod poller;
mod realtime;

pub use drive::{Clock, Drive, Ends, now};
pub use lateness::{Host, Lateness};
pub use poller::Poller;
pub use realtime::{Realtime, enter as enter_realtime};
