//! The sizes of the pieces into which a transfer is split, each over a connection of its own.

use wakeai_units::{Bytes, Duration};

/// The time that a piece without turns should take. It is much longer than the handshake and the
/// slow start of a connection.
const SPAN: Duration = Duration::from_secs(2);
/// The time that a piece in a turn should take.
const SPAN_IN_TURN: Duration = Duration::from_secs(10);
/// The size of the smallest piece. It is also the first size where others send, and where nothing
/// is known of others.
const SMALLEST: Bytes = Bytes::new(256 * 1024);
/// The size of the first piece where the station knows that no other station sends.
const FIRST_ALONE: Bytes = Bytes::new(1024 * 1024);
/// The size of the first piece in a turn.
const FIRST_IN_TURN: Bytes = Bytes::new(16 * 1024 * 1024);
/// The size of the largest piece.
const LARGEST: Bytes = Bytes::new(256 * 1024 * 1024);
/// A piece is at most this many times as large as the one before.
const GROWTH: u64 = 4;

/// Decides on the sizes of a transfer's pieces.
///
/// Yamaguchi et al. (section 4) split the uploads of many stations over several connections, and
/// found that the uploads then end at more nearly the same time. A piece without turns takes about
/// two seconds. The more stations send, the lower is the rate of each, and the smaller is such a
/// piece. Where the connection of a piece fails, the next piece has half the size, so that little
/// is sent again on a path that often breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pieces {
    next: Bytes,
    span: Duration,
}

impl Pieces {
    /// The pieces of a transfer without turns. `peers` is the number of other stations that send;
    /// `None` where it is unknown.
    pub fn new(peers: Option<u32>) -> Self {
        let next = if peers == Some(0) { FIRST_ALONE } else { SMALLEST };
        Self { next, span: SPAN }
    }

    /// The pieces of a transfer that sends in turns. They are large, because transfers that send
    /// one after another need not be split. They are not larger, because the transfer checks before
    /// each piece whether its turn has ended.
    pub fn in_turns() -> Self {
        Self { next: FIRST_IN_TURN, span: SPAN_IN_TURN }
    }

    /// The size of the next piece of a transfer that has `left` bytes left. The last piece may be
    /// larger by half, so that no small rest is left over.
    pub fn next(&self, left: Bytes) -> Bytes {
        let most = Bytes::new(self.next.get() + self.next.get() / 2);
        debug_assert!((SMALLEST..=LARGEST).contains(&self.next), "a piece of {}", self.next);
        if left <= most { left } else { self.next }
    }

    /// The size of the next piece where the permission to send may end within seconds.
    pub fn small(left: Bytes) -> Bytes {
        left.min(SMALLEST)
    }

    /// Takes the time `took` in which a piece of `size` bytes was sent, and sets the size of the
    /// next piece.
    pub fn sent(&mut self, size: Bytes, took: Duration) {
        let took = took.as_nanos().max(1);
        let wanted = u128::from(size.get()) * u128::from(self.span.as_nanos()) / u128::from(took);
        let wanted = Bytes::new(u64::try_from(wanted).unwrap_or(u64::MAX));
        let most = Bytes::new(self.next.get() * GROWTH).min(LARGEST);
        self.next = wanted.clamp(SMALLEST, most);
    }

    /// Handles the failure of a piece's connection: halves the size of the next piece.
    pub fn cut(&mut self) {
        self.next = Bytes::new(self.next.get() / 2).max(SMALLEST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_grows_to_what_takes_two_seconds() {
        let mut pieces = Pieces::new(Some(0));
        let mut left = Bytes::new(100_000_000);
        let mut sizes = Vec::new();
        while left > Bytes::ZERO {
            let size = pieces.next(left);
            left = left.saturating_sub(size);
            sizes.push(size.get());
            // 40 Mbit/s are 5 MB/s.
            pieces.sent(size, Duration::from_nanos(size.get() * 200));
        }
        assert_eq!(sizes[..4], [1 << 20, 1 << 22, 10_000_000, 10_000_000]);
        assert_eq!(sizes.iter().sum::<u64>(), 100_000_000);
        assert!(sizes.last() > Some(&5_000_000), "no small rest: {sizes:?}");
    }

    #[test]
    fn slow_and_cut_pieces_get_smaller_down_to_the_smallest() {
        let mut pieces = Pieces::new(Some(0));
        pieces.cut();
        assert_eq!(pieces.next(LARGEST), Bytes::new(512 * 1024));
        pieces.sent(Bytes::new(512 * 1024), Duration::from_secs(60));
        pieces.cut();
        assert_eq!(pieces.next(LARGEST), SMALLEST);
        assert_eq!(Pieces::new(None).next(LARGEST), SMALLEST);
        assert_eq!(Pieces::new(Some(3)).next(Bytes::new(7)), Bytes::new(7));
    }

    #[test]
    fn no_duration_and_no_size_break_the_rule() {
        let mut pieces = Pieces::new(None);
        for _ in 0..20 {
            pieces.sent(Bytes::new(u64::MAX), Duration::ZERO);
        }
        assert_eq!(pieces.next(Bytes::new(u64::MAX)), LARGEST);
    }
}
