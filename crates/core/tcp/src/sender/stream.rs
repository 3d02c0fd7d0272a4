//! The bytes to send, cut into segments.

use crate::config::TcpConfig;

/// The bytes of memory that Linux grants in its send buffer for each segment of the window. They
/// are twice the memory that a segment takes where it shares no memory block with another segment.
const GRANTED: u64 = 2 * 4_352;
/// The bytes of memory that a segment takes beside its payload where two segments share a header,
/// as most do.
const OVERHEAD: u64 = 416;
/// The memory that a segment takes in Linux 3.4 on a device that gathers no fragments, as the Wi-Fi devices of that time: a
/// block of 2,048 bytes for headers and payload, and 192 for its description.
const BLOCK_34: u64 = 2_240;

/// The application's data, and the position at which each of its segments begins.
///
/// All segments are full except the last one before the FIN, so a segment's position follows from
/// its number. Where the stream is closed before the last segment leaves, the FIN travels with that
/// segment. Otherwise the FIN is a segment by itself.
#[derive(Clone, Debug)]
pub(super) struct SendStream {
    mss: u64,
    /// The position at which the data ends; `u64::MAX` where it has no end.
    pub(super) data_end: u64,
    closing: bool,
    /// The segment with which the FIN left; `None` before that.
    pub(super) fin: Option<u64>,
    /// The most bytes that may be unacknowledged or unsent.
    pub(super) buffer: u64,
    buffer_limit: u64,
    /// The memory that is granted for each segment of the window, and the memory that a segment takes.
    granted: u64,
    takes: u64,
}

/// A segment that may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) seq: u64,
    pub(super) len: u32,
    pub(super) fin: bool,
}

impl Piece {
    pub(super) fn end(self) -> u64 {
        self.seq + u64::from(self.len) + u64::from(self.fin)
    }
}

impl SendStream {
    pub(super) fn new(config: &TcpConfig) -> Self {
        let mss = u64::from(config.mss);
        let limit = config.send_buffer_limit;
        let mut stream = Self {
            mss,
            data_end: 1,
            closing: false,
            fin: None,
            buffer: if config.is_linux() { 0 } else { limit },
            buffer_limit: limit,
            granted: if config.is_linux34() { 2 * BLOCK_34 } else { GRANTED },
            takes: if config.is_linux34() { BLOCK_34 } else { mss + OVERHEAD },
        };
        stream.grow_buffer(config.initial_window);
        stream
    }

    pub(super) fn supply(&mut self, bytes: Option<u64>, nxt: u64) {
        let end = bytes.map_or(u64::MAX, |bytes| bytes + 1);
        assert!(
            end >= self.data_end
                && (nxt < self.data_end || (nxt.max(1) - 1).is_multiple_of(self.mss)),
            "the stream was cut at {} already and cannot end at {end}",
            self.data_end
        );
        self.data_end = end;
    }

    pub(super) fn close(&mut self, nxt: u64) {
        self.closing = true;
        if self.data_end == u64::MAX {
            self.data_end = nxt.max(1);
        }
    }

    /// Enlarges the buffer for a window of `window_segments`. The buffer has room for the
    /// unacknowledged data and for the data to send meanwhile, even during a recovery. Linux
    /// computes its size in bytes of memory. It never shrinks.
    pub(super) fn grow_buffer(&mut self, window_segments: u32) {
        let wanted = self.granted * u64::from(window_segments);
        let payload = wanted.min(self.buffer_limit) * self.mss / self.takes;
        self.buffer = self.buffer.max(payload);
    }

    /// Whether the application will write no more.
    pub(super) fn is_closing(&self) -> bool {
        self.closing
    }

    /// The next segment, if there is one.
    pub(super) fn next_piece(&self, nxt: u64) -> Option<Piece> {
        let len = self.mss.min(self.data_end.saturating_sub(nxt)) as u32;
        let fin = self.closing && self.fin.is_none() && nxt + u64::from(len) == self.data_end;
        (len > 0 || fin).then_some(Piece { seq: nxt, len, fin })
    }

    /// Whether a piece is smaller than a full segment and has no FIN, so that the application may
    /// still write more.
    pub(super) fn is_partial(&self, piece: Piece) -> bool {
        u64::from(piece.len) < self.mss && !piece.fin
    }

    /// Whether no data follows that the application has written. Such a segment has PSH (RFC 9293
    /// section 3.9.1.2). In a stream without end no segment has it: its application fills the send
    /// buffer, and where its writes end is not modelled.
    pub(super) fn is_last_written(&self, piece: Piece) -> bool {
        piece.len > 0 && piece.seq + u64::from(piece.len) == self.data_end
    }

    /// Notes that the FIN leaves with this segment for the first time.
    pub(super) fn mark_fin(&mut self, segment: u64) {
        debug_assert!(self.closing && self.fin.is_none(), "one FIN, at the end");
        self.fin = Some(segment);
    }

    /// The segment of this number, which was sent.
    pub(super) fn piece(&self, segment: u64) -> Piece {
        debug_assert!(self.fin.is_none_or(|fin| segment <= fin), "nothing follows the FIN");
        let seq = (1 + segment * self.mss).min(self.data_end);
        let len = self.mss.min(self.data_end - seq) as u32;
        Piece { seq, len, fin: self.fin == Some(segment) }
    }

    /// The first segment that begins at the position or after it.
    pub(super) fn segment_from(&self, position: u64) -> u64 {
        match self.fin {
            Some(fin) if position > self.data_end => fin + 1,
            _ => position.saturating_sub(1).div_ceil(self.mss),
        }
    }

    /// The segment after the last segment that ends at the position or before it.
    pub(super) fn segment_until(&self, position: u64) -> u64 {
        if position > self.data_end {
            return self.fin.map_or(u64::MAX, |fin| fin + 1);
        }
        let whole = position.saturating_sub(1) / self.mss;
        if position < self.data_end {
            return whole;
        }
        // The position is the end of the data. Where the FIN travels with the last segment, this
        // segment is not acknowledged yet.
        let last = position.saturating_sub(1).div_ceil(self.mss);
        if self.fin.is_some_and(|fin| fin < last) { last - 1 } else { last }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Profile;

    fn stream(bytes: u64) -> SendStream {
        let mut stream = SendStream::new(&TcpConfig::new(Profile::Linux));
        stream.supply(Some(bytes), 0);
        stream
    }

    #[test]
    fn a_mebibyte_of_linux_3_4_holds_468_segments() {
        let config = TcpConfig { send_buffer_limit: 1 << 20, ..TcpConfig::new(Profile::Linux34) };
        let mut stream = SendStream::new(&config);
        stream.grow_buffer(100);
        assert_eq!(stream.buffer / 1_448, 200);
        stream.grow_buffer(10_000);
        assert_eq!(stream.buffer / 1_448, 468);
    }

    #[test]
    fn the_last_segment_is_what_is_left_and_carries_the_fin() {
        let mut stream = stream(1448 + 100);
        stream.close(1);
        assert_eq!(stream.next_piece(1), Some(Piece { seq: 1, len: 1448, fin: false }));
        let last = Piece { seq: 1449, len: 100, fin: true };
        assert_eq!(stream.next_piece(1449), Some(last));
        stream.mark_fin(1);
        assert_eq!(stream.piece(1), last);
        assert_eq!(stream.next_piece(1549), None);
        // The position after all data, without the FIN, acknowledges only the first segment.
        assert_eq!(stream.segment_until(1549), 1);
        assert_eq!(stream.segment_until(1550), 2);
    }

    #[test]
    fn a_fin_that_is_known_too_late_is_a_segment_by_itself() {
        for bytes in [1448, 100] {
            let mut stream = stream(bytes);
            let data = stream.next_piece(1).unwrap();
            assert_eq!((data.len, data.fin), (bytes as u32, false));
            assert_eq!(stream.next_piece(data.end()), None);
            stream.close(data.end());
            let fin = stream.next_piece(data.end()).unwrap();
            assert_eq!(fin, Piece { seq: bytes + 1, len: 0, fin: true });
            stream.mark_fin(1);
            assert_eq!(stream.piece(1), fin);
            assert_eq!(stream.piece(0), data);
            assert_eq!(stream.segment_until(bytes + 1), 1);
            assert_eq!(stream.segment_until(bytes + 2), 2);
            assert_eq!(stream.segment_from(bytes + 1), 1);
        }
    }

    #[test]
    fn an_endless_stream_ends_with_what_was_sent() {
        let mut stream = stream(0);
        stream.supply(None, 1);
        assert_eq!(stream.next_piece(1 + 1448 * 7).unwrap().len, 1448);
        stream.close(1 + 1448 * 7);
        assert_eq!(
            stream.next_piece(1 + 1448 * 7),
            Some(Piece { seq: 1 + 1448 * 7, len: 0, fin: true })
        );
    }
}
