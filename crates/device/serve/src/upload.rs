//! The state of one upload, without input or output.

use super::refusal::Refusal;
use super::request::Append;

/// How the body of a PATCH ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All bytes arrived. `matches` is `false` if they do not have the checksum of the request.
    Complete {
        /// Whether the bytes have the checksum of the request. It is `true` if the request has none.
        matches: bool,
    },
    /// The body ended early: the connection was lost, the client stalled, or a newer request took over.
    Cut,
    /// The body cannot be accepted; none of its bytes counts.
    Refused,
}

/// One upload: its length and its offsets.
///
/// Order of calls: [`Upload::handle_append`]; then any number of [`Upload::handle_written`], each after bytes were
/// written, and [`Upload::handle_synced`] after a sync; then [`Upload::handle_end`]. The caller then truncates the file
/// to [`Upload::offset`], syncs it and records the offset. The client gets its answer after that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    length: Option<u64>,
    offset: u64,
    appending: Option<Appending>,
}

/// A PATCH whose body is arriving.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Appending {
    /// The offset up to which bytes are written.
    written: u64,
    /// The offset at which the body has to end, if it is known.
    end: Option<u64>,
    /// Whether the body has a checksum. Its bytes then count only once the whole body is verified.
    has_checksum: bool,
}

impl Upload {
    /// An upload of which `offset` bytes are acknowledged. Returns `None` if that is more than the length.
    pub fn new(length: Option<u64>, offset: u64) -> Option<Self> {
        let fits = length.is_none_or(|length| offset <= length);
        fits.then_some(Self { length, offset, appending: None })
    }

    /// The length, once it is known.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// The number of bytes that are acknowledged, or will be with the next answer.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether all bytes have arrived.
    pub fn is_complete(&self) -> bool {
        self.length == Some(self.offset) && self.appending.is_none()
    }

    /// Handles the start of a PATCH. `max_size` limits uploads whose length is unknown.
    ///
    /// # Errors
    ///
    /// The reason why the PATCH is refused. The state is then unchanged.
    pub fn handle_append(&mut self, append: &Append, max_size: u64) -> Result<(), Refusal> {
        if self.appending.is_some() {
            return Err(Refusal::Locked);
        }
        if append.offset != self.offset {
            return Err(Refusal::Offset);
        }
        let length = match (self.length, append.length) {
            (Some(known), Some(told)) if known != told => return Err(Refusal::Length),
            (None, Some(told)) if told > max_size => return Err(Refusal::TooLarge),
            (None, Some(told)) if told < self.offset => return Err(Refusal::Length),
            (known, told) => known.or(told),
        };
        let end = append.size.map(|size| self.offset.saturating_add(size));
        if let Some(end) = end {
            match length {
                Some(length) if end > length => return Err(Refusal::BeyondLength),
                None if end > max_size => return Err(Refusal::TooLarge),
                _ => {}
            }
        }
        self.length = length;
        let has_checksum = append.checksum.is_some();
        self.appending = Some(Appending { written: self.offset, end, has_checksum });
        Ok(())
    }

    /// The number of bytes that may still be written. More bytes would exceed the length, the announced size of the
    /// body or `max_size`.
    pub fn room(&self, max_size: u64) -> u64 {
        let Some(appending) = &self.appending else { return 0 };
        let end = appending.end.or(self.length).unwrap_or(max_size);
        end.min(self.length.unwrap_or(u64::MAX)).saturating_sub(appending.written)
    }

    /// Handles the write of the next `count` bytes. `count` is at most [`Upload::room`].
    pub fn handle_written(&mut self, count: u64) {
        if let Some(appending) = &mut self.appending {
            appending.written = appending.written.saturating_add(count);
        }
    }

    /// Handles a sync: the bytes before `synced` are on disk. Returns the new offset, which has to be recorded, if it
    /// has grown.
    pub fn handle_synced(&mut self, synced: u64) -> Option<u64> {
        let appending = self.appending.as_ref()?;
        let synced = synced.min(appending.written);
        let moved = !appending.has_checksum && synced > self.offset;
        if moved {
            self.offset = synced;
        }
        moved.then_some(self.offset)
    }

    /// Handles the end of the body. Returns whether the offset has grown, so that it has to be recorded.
    pub fn handle_end(&mut self, end: End) -> bool {
        let Some(appending) = self.appending.take() else { return false };
        let counts = match end {
            End::Complete { matches } => matches,
            End::Cut => !appending.has_checksum,
            End::Refused => false,
        };
        let moved = counts && appending.written > self.offset;
        if moved {
            self.offset = appending.written;
        }
        moved
    }
}
