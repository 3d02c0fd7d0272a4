//! The bytes to send, cut into parts of a full packet each, and those of them that have to be sent again.

use std::collections::VecDeque;

use crate::STREAM_WINDOW;
use crate::packet::PAYLOAD;

/// The stream. A part is named by its number from 0.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    /// The bytes that the application has written; `None` where they never end.
    supplied: Option<u64>,
    /// Whether nothing follows what is supplied.
    closed: bool,
    /// The position up to which the receiver allows data.
    limit: u64,
    /// The next part that was never sent.
    next: u64,
    /// The first part that is not acknowledged, and whether it and those after it are.
    first: u64,
    acknowledged: VecDeque<bool>,
    /// Parts whose packets were lost.
    lost: VecDeque<u64>,
}

impl Stream {
    pub(super) fn new() -> Self {
        Self {
            supplied: Some(0),
            closed: false,
            limit: STREAM_WINDOW,
            next: 0,
            first: 0,
            acknowledged: VecDeque::new(),
            lost: VecDeque::new(),
        }
    }

    pub(super) fn supply(&mut self, bytes: Option<u64>) {
        self.supplied = bytes;
    }

    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    pub(super) fn raise_limit(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
    }

    /// The position of a part in the stream.
    pub(super) fn offset(part: u64) -> u64 {
        part * PAYLOAD.get()
    }

    /// The bytes of a part.
    pub(super) fn len(&self, part: u64) -> u16 {
        let rest = self.supplied.map_or(u64::MAX, |end| end.saturating_sub(Self::offset(part)));
        rest.min(PAYLOAD.get()) as u16
    }

    /// The next part to send, and whether it was sent before: one that was lost, or a new one for which flow control has
    /// room.
    pub(super) fn choose(&mut self) -> Option<(u64, bool)> {
        while let Some(part) = self.lost.front() {
            if !self.is_acknowledged(*part) {
                return Some((*part, true));
            }
            self.lost.pop_front();
        }
        let len = self.len(self.next);
        let fits = Self::offset(self.next) + u64::from(len) <= self.limit;
        (len > 0 && fits).then_some((self.next, false))
    }

    /// Notes that the part that [`Self::choose`] gave is sent.
    pub(super) fn send(&mut self, part: u64, again: bool) {
        if again {
            self.lost.pop_front();
        } else {
            debug_assert_eq!(part, self.next);
            self.next += 1;
            self.acknowledged.push_back(false);
        }
    }

    /// The oldest part that is sent and not acknowledged.
    pub(super) fn oldest(&self) -> Option<u64> {
        (self.first < self.next).then_some(self.first)
    }

    fn is_acknowledged(&self, part: u64) -> bool {
        part < self.first || self.acknowledged[(part - self.first) as usize]
    }

    pub(super) fn lose(&mut self, part: u64) {
        if !self.is_acknowledged(part) {
            self.lost.push_back(part);
        }
    }

    pub(super) fn acknowledge(&mut self, part: u64) {
        if part < self.first {
            return;
        }
        self.acknowledged[(part - self.first) as usize] = true;
        while self.acknowledged.front() == Some(&true) {
            self.acknowledged.pop_front();
            self.first += 1;
        }
    }

    /// Whether the receiver has everything and nothing follows.
    pub(super) fn is_over(&self) -> bool {
        let sent = self.supplied.is_some_and(|end| Self::offset(self.next) >= end);
        self.closed && sent && self.first == self.next
    }

    /// The bytes that are written and not acknowledged in order.
    pub(super) fn unacknowledged(&self) -> u64 {
        let end = self.supplied.unwrap_or_else(|| Self::offset(self.next));
        end.saturating_sub(Self::offset(self.first))
    }
}
