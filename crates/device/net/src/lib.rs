//! How every part of Wakeai reads an IP address, and how it connects to a name that has several.
//!
//! - [`socket_address`] and [`socket_address_or_port`] read the addresses of the command line, with
//!   the zone of a link-local address (RFC 4007 section 11); [`take_zone`] takes the zone out of a
//!   URL (RFC 6874).
//! - [`Local`] is an address of the loopback interface, the only kind at which metrics are served.
//! - [`lookup`] asks the resolver for the addresses of a name.
//! - [`connect`] tries the addresses of a name as RFC 8305 (happy eyeballs) says. [`Race`] decides
//!   which address is tried when, without a clock or a socket, for callers without an event loop.

mod address;
mod connect;
mod local;
mod lookup;
mod race;
mod zone;

pub use address::{AddressError, socket_address, socket_address_or_port};
pub use connect::connect;
pub use local::{Local, LocalError, is_this_machine};
pub use lookup::{LookupError, lookup, lookup_blocking};
pub use race::{Attempt, Failure, Race, Unreached};
pub use zone::{Zone, ZoneError, take_zone, with_zone};
