//! What the receiver has room for.

/// The last window that the peer announced.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PeerWindow {
    bytes: u64,
    largest: u64,
}

impl PeerWindow {
    /// The position up to which may be sent.
    pub(super) fn end(self, una: u64) -> u64 {
        una + self.bytes
    }

    /// The largest that was ever announced.
    pub(super) fn largest(self) -> u64 {
        self.largest
    }

    /// Takes the window of an acknowledgement that is not older than `una`, and says whether it is
    /// another than before. A repeated acknowledgement may have been overtaken by a later one, so
    /// its window counts only where it is larger, or zero (RFC 9293 section 3.10.7.4 orders them
    /// by the peer's sequence number, which stands still here).
    pub(super) fn update(&mut self, advances: bool, bytes: u64) -> bool {
        let changed = self.bytes != bytes;
        if !advances && bytes < self.bytes && bytes != 0 {
            return false;
        }
        self.bytes = bytes;
        self.largest = self.largest.max(bytes);
        changed
    }
}
