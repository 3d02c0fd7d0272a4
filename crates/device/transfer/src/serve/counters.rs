//! The counters of the server.

use std::cell::Cell;

use serde::Serialize;

/// A counter.
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
    /// Connections that were accepted.
    accepted,
    /// Connections that are open now.
    active,
    /// The most connections that were open at a time.
    most_active,
    /// Connections that were closed at once, because their client had its share of connections and none of these was
    /// idle.
    over_share,
    /// Idle connections that were closed, because another one needed their place.
    evicted,
    /// Connections whose TLS handshake failed.
    failed_handshakes,
    /// Connections that ended with an error, such as a request that is not HTTP or that came too slowly.
    broken,
    /// Requests that were answered.
    requests,
    /// Requests that were refused.
    refused,
    /// Requests without a valid token.
    denied,
    /// Uploads that were created.
    created,
    /// Uploads that became complete.
    completed,
    /// Uploads that a client ended.
    ended,
    /// Uploads that expired before they were complete.
    expired,
    /// Bodies that ended early: the connection was lost, or no byte came for too long.
    cut,
    /// Bodies that ended because a newer request took the upload over.
    taken_over,
    /// Bodies whose checksum did not match.
    mismatched,
    /// Requests that failed because the disk was full.
    disk_full,
    /// Bytes that arrived in bodies.
    bytes_received,
    /// Bytes that were acknowledged.
    bytes_acknowledged,
}
