//! The window that is offered, and how it grows (`tcp_select_window` and `tcp_grow_window` of
//! Linux).

/// The largest value of the header's 16 bits.
const MAX_UNSCALED: u64 = 65_535;
/// Linux's first buffer size in bytes (`tcp_rmem`), including headers and bookkeeping. Before
/// anything has arrived, half of it counts as payload. Once a full segment has arrived, five
/// eighths count (as in Linux 6.18 with packets of 1500 bytes from a TUN device).
const INITIAL_BUFFER: u64 = 131_072;

/// The window of one receiver, in payload bytes.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// The payload bytes that the buffer may hold now; it grows up to `limit`.
    pub(super) space: u64,
    limit: u64,
    /// Whether it is still unknown how much of the buffer a full segment takes beside its payload.
    is_guess: bool,
    /// The limit of the window. It rises with the data that arrives. So a sender that begins with
    /// small segments does not fill the memory with headers.
    threshold: u64,
    /// The last window, and the acknowledgement number with it.
    pub(super) offered: u64,
    /// The acknowledgement number that was sent last.
    pub(super) acknowledged: u64,
    /// The largest window that was asked for (`TCP_WINDOW_CLAMP`); `u64::MAX` where none was.
    clamp: u64,
    /// The window scale that the SYN-ACK proposes (RFC 7323 section 2.2).
    pub(super) scale: u8,
    mss: u64,
}

impl Window {
    /// The window at the start of a connection. With an autotuned buffer and the usual segments the
    /// first window is 65,160 bytes. Otherwise it is the largest that the header of a SYN-ACK can
    /// state.
    pub(super) fn new(mss: u64, limit: u64, autotuned: bool) -> Self {
        let space = if autotuned { limit.min(INITIAL_BUFFER) / 2 } else { limit };
        let threshold = if autotuned { whole_segments(space, mss) } else { limit };
        let scale = limit.max(1).ilog2().saturating_sub(15).min(14) as u8;
        Self {
            space,
            limit: if autotuned { limit / 2 } else { limit },
            is_guess: autotuned,
            threshold,
            offered: threshold.min(MAX_UNSCALED),
            acknowledged: 1, // where data begins
            clamp: u64::MAX,
            scale,
            mss,
        }
    }

    /// Limits windows to 64 KB, because the sender's SYN proposed no scale (RFC 7323 section 2.2).
    pub(super) fn disable_scale(&mut self) {
        self.limit = self.limit.min(MAX_UNSCALED);
        self.space = self.space.min(self.limit);
        self.threshold = self.threshold.min(self.limit);
        self.scale = 0;
    }

    /// The position after the last position that the sender may send.
    pub(super) fn edge(&self) -> u64 {
        self.acknowledged + self.offered
    }

    /// The part of the window that is left once everything before `next` has arrived.
    pub(super) fn left(&self, next: u64) -> u64 {
        self.edge().saturating_sub(next)
    }

    /// The room in the buffer where `held` bytes are in it.
    pub(super) fn free(&self, held: u64) -> u64 {
        self.space.saturating_sub(held)
    }

    /// Whether less than half of the largest window is free.
    pub(super) fn is_crowded(&self, held: u64) -> bool {
        self.free(held) < self.full() / 2
    }

    /// The largest window of an empty buffer.
    fn full(&self) -> u64 {
        self.space.min(self.clamp)
    }

    /// Sets the largest window (`TCP_WINDOW_CLAMP`, as Linux does it in mid-stream). A smaller one takes
    /// effect while data arrives, because the edge never moves back. A larger one is offered step by
    /// step, from the present window on.
    pub(super) fn set_clamp(&mut self, bytes: u64) {
        let before = std::mem::replace(&mut self.clamp, bytes);
        if bytes < before {
            self.threshold = self.threshold.min(bytes);
        } else if bytes > before {
            self.threshold = self.threshold.max(self.offered.min(bytes));
        }
    }

    /// Records that a full segment arrived. From now on five eighths of the buffer count as payload
    /// instead of half.
    pub(super) fn note_full_segment(&mut self) {
        if std::mem::take(&mut self.is_guess) {
            self.space += self.space / 4;
            self.limit += self.limit / 4;
        }
    }

    /// Enlarges the buffer; it never shrinks. As in Linux the limit of the window follows a buffer that
    /// grows, so that whoever has set a limit has to set it again.
    pub(super) fn set_space(&mut self, space: u64) {
        let space = space.min(self.limit);
        if space > self.space {
            (self.space, self.clamp) = (space, u64::MAX);
        }
    }

    /// Handles a segment of `len` bytes that arrived in order. The window may then grow by two
    /// segments. Returns whether it grows; an ACK should then follow soon.
    pub(super) fn grow(&mut self, len: u64, held: u64) -> bool {
        let room = self.free(held).min(self.clamp).saturating_sub(self.threshold);
        self.threshold += room.min(2 * self.mss.max(len));
        room > 0
    }

    /// The window where `held` bytes are in the buffer. It is zero where less than a segment or
    /// less than a sixteenth of the buffer is free, to avoid small segments (silly window syndrome,
    /// RFC 9293 section 3.8.6.2.2).
    pub(super) fn available(&self, held: u64, segment_size: u64) -> u64 {
        let mut free = self.free(held);
        let unit = 1_u64 << self.scale;
        if self.is_crowded(held) {
            free -= free % unit;
            if free < self.full() / 16 || free < segment_size.min(self.full()) {
                return 0;
            }
        }
        let window = free.min(self.threshold);
        if self.scale == 0 { self.in_segments(window, segment_size) } else { up_to(window, unit) }
    }

    /// The window without a scale, in whole segments. Changes of less than one segment are left
    /// out.
    fn in_segments(&self, free: u64, segment_size: u64) -> u64 {
        let keep = self.offered <= free && self.offered + segment_size > free;
        if keep || segment_size == 0 { self.offered.min(free) } else { free - free % segment_size }
    }

    /// Offers a window together with the acknowledgement of everything before `next`. Returns the
    /// window as the header states it. The edge of the window never moves back (RFC 9293 section
    /// 3.8.6.2.1).
    pub(super) fn offer(&mut self, next: u64, held: u64, segment_size: u64) -> u64 {
        let unit = 1_u64 << self.scale;
        debug_assert!(next >= self.acknowledged, "an acknowledgement is not taken back");
        let edge = self.edge();
        let least = up_to(self.left(next), unit);
        self.offered = self.available(held, segment_size).max(least);
        self.acknowledged = next;
        debug_assert!(self.edge() >= edge.min(next + least), "the edge moved back from {edge}");
        debug_assert!(self.space <= self.limit, "{} of {} bytes", self.space, self.limit);
        self.offered.min(MAX_UNSCALED << self.scale)
    }
}

/// Rounds `bytes` down to whole segments; less than one segment stays as it is.
fn whole_segments(bytes: u64, mss: u64) -> u64 {
    if bytes > mss { bytes - bytes % mss } else { bytes }
}

/// The next multiple of `unit`.
fn up_to(bytes: u64, unit: u64) -> u64 {
    bytes.div_ceil(unit) * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1448;

    #[test]
    fn an_autotuned_window_begins_with_45_segments() {
        let tuned = Window::new(MSS, 64 << 20, true);
        assert_eq!((tuned.offered, tuned.scale), (65_160, 11));
        let mut fixed = Window::new(MSS, 4 << 20, false);
        assert_eq!((fixed.offered, fixed.scale), (65_535, 7));
        assert_eq!(fixed.offer(1, 0, MSS), 4 << 20);
    }

    #[test]
    fn the_window_opens_by_two_segments_per_arrival() {
        let mut window = Window::new(MSS, 64 << 20, true);
        window.set_space(70_000);
        assert!(window.grow(MSS, 0));
        assert_eq!(window.offer(1, 0, MSS), up_to(65_160 + 2 * MSS, 2048));
        assert!(window.grow(MSS, 0));
        assert!(!window.grow(MSS, 0));
        assert_eq!(window.offer(1, 0, MSS), up_to(70_000, 2048));
    }

    #[test]
    fn the_buffer_never_grows_above_its_limit() {
        let mut window = Window::new(MSS, 100_000, true);
        window.set_space(u64::MAX);
        assert_eq!(window.space, 50_000);
        window.note_full_segment();
        window.set_space(u64::MAX);
        assert_eq!(window.space, 62_500);
    }

    #[test]
    fn a_clamp_shrinks_the_window_as_data_arrives_and_opens_it_step_by_step() {
        let mut window = Window::new(MSS, 1 << 20, false);
        // The edge never moves back, so a window may have one more unit of the scale.
        let offers = |window: &mut Window, at, segments| {
            let offered = window.offer(at, 0, MSS);
            let exact = segments * MSS;
            assert!((exact..exact + 64).contains(&offered), "{offered} of {exact}");
        };
        assert_eq!(window.offer(1, 0, MSS), 1 << 20);
        window.set_clamp(10 * MSS);
        assert_eq!(window.offer(1, 0, MSS), 1 << 20, "the edge stays");
        let end = window.edge() - 20 * MSS;
        offers(&mut window, end, 20);
        let end = end + 15 * MSS;
        offers(&mut window, end, 10);
        window.set_clamp(40 * MSS);
        offers(&mut window, end, 10);
        assert!(window.grow(MSS, 0));
        offers(&mut window, end, 12);
        for _ in 0..100 {
            window.grow(MSS, 0);
        }
        offers(&mut window, end, 40);
    }

    #[test]
    fn a_growing_buffer_lifts_the_clamp() {
        let mut window = Window::new(MSS, 64 << 20, true);
        window.set_clamp(10 * MSS);
        window.set_space(60_000);
        assert!(!window.grow(MSS, 0), "the buffer is larger already");
        window.set_space(200_000);
        assert!(window.grow(MSS, 0));
    }

    #[test]
    fn the_edge_never_moves_back() {
        let mut window = Window::new(MSS, 1 << 20, false);
        window.offer(1, 0, MSS);
        let edge = window.edge();
        assert_eq!(window.offer(100_000, 900_000, MSS), up_to(edge - 100_000, 32));
        assert!(window.edge() >= edge);
    }

    #[test]
    fn less_than_a_segment_or_a_sixteenth_is_offered_as_nothing() {
        let mut window = Window::new(MSS, 1 << 20, false);
        window.offer(1, 0, MSS);
        let edge = window.edge();
        let nearly_full = (1 << 20) - (1 << 16) + 1;
        assert_eq!(window.offer(edge, nearly_full, MSS), 0);
        assert_eq!(window.offer(edge, (1 << 20) - (1 << 16), MSS), 1 << 16);
    }

    #[test]
    fn without_a_scale_whole_segments_are_offered_below_64_kb() {
        let mut window = Window::new(MSS, 1 << 20, false);
        window.disable_scale();
        assert_eq!(window.offer(1, 0, MSS), 65_535);
    }
}
