//! The counters of the proxy.

use std::cell::Cell;

use serde::Serialize;

/// A counter. [`Count::less_one`] lowers a counter that gives the number of things that exist now.
#[derive(Debug, Default)]
pub(crate) struct Count(Cell<u64>);

impl Count {
    pub(crate) fn add(&self, more: u64) {
        self.0.set(self.0.get() + more);
    }

    pub(crate) fn one(&self) {
        self.add(1);
    }

    pub(crate) fn less_one(&self) {
        self.0.set(self.0.get() - 1);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.get()
    }
}

macro_rules! counters {
    ($($(#[doc = $doc:expr])+ $name:ident,)+) => {
        /// Counts since the start.
        #[derive(Debug, Default)]
        pub(crate) struct Counters { $(pub(crate) $name: Count,)+ }

        /// The counts at one moment.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
        pub struct Report { $($(#[doc = $doc])+ pub $name: u64,)+ }

        impl Counters {
            pub(crate) fn report(&self) -> Report {
                Report { $($name: self.$name.get(),)+ }
            }
        }

        impl Report {
            /// Every count with its name, in the order of their declaration.
            pub fn entries(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)+]
            }
        }
    };
}

counters! {
    /// Connections that were accepted from allowed sources.
    accepted,
    /// Connections that are open now.
    active,
    /// The most connections that were open at a time.
    most_active,
    /// Closed without an answer: the source is not allowed.
    denied_sources,
    /// Closed without an answer: the client holds its share of the connections.
    over_share,
    /// Times that another program had changed the rules, the route or the algorithms of the proxy.
    drifts,
    /// Times that no connection could be accepted, because file descriptors or memory were short.
    /// Clients then wait.
    accept_failures,
    /// Refused: the destination is not allowed.
    denied_destinations,
    /// Refused: the request is of another protocol or is not served.
    bad_requests,
    /// Closed: no request within the connect timeout.
    silent_clients,
    /// Refused: the destination could not be reached.
    failed_connects,
    /// Closed by the client before it was connected.
    left_clients,
    /// Connections that reached their destination.
    connected,
    /// Connections of which both ends have closed, and have acknowledged everything that was passed on.
    finished,
    /// Connections that were reset because one end was reset.
    reset,
    /// Connections that were reset because no byte was carried for the idle timeout.
    idle,
    /// Connections that were reset because one end no longer answered.
    dead,
    /// Bytes from clients that were passed on to destinations. Of a connection that was reset, the
    /// last of them may not have arrived.
    bytes_up,
    /// Bytes from destinations that were passed on to clients, in the same way.
    bytes_down,
    /// Bytes, in both directions, that were copied because no pipe was free or the kernel cannot
    /// splice.
    bytes_copied,
}
