//! One upload, whatever its protocol: its pieces, its waits and its progress.

use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;
use wakeai_control::{Permission, Pieces};
use wakeai_units::{Bytes, Duration};

use super::answers::Meaning;
use super::backoff::Backoff;
use super::http::{Client, HttpAnswer, Query};
use super::source::{Sent, UploadSource};
use super::state::{KeptState, UploadState};
use super::turn::AgentTurn;
use super::{Chunks, Protocol, PutConfig, PutError, target};

/// The interval at which the permission and the progress are checked.
const LOOK: std::time::Duration = std::time::Duration::from_millis(100);
/// The longest time for which a piece goes on without permission. A few lost messages can take the turn away for a
/// short time, and this limit is longer than that. The reason is that the rest of a cut piece may have to be sent
/// again.
const OUT_OF_TURN: std::time::Duration = std::time::Duration::from_secs(5);
/// The longest time in which nothing is sent and no answer comes. A server may need time to write a large file to its
/// disk.
const SILENCE: std::time::Duration = std::time::Duration::from_mins(5);
/// A server that refuses a piece of this size or less for its size takes no pieces at all.
const SMALLEST: u64 = 1024;
/// A transfer that waits at least this long after a failure gives its turn to others.
const LONG_WAIT: Duration = Duration::from_secs(2);

/// The progress of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PutProgress {
    /// The number of bytes that were handed to the network or are at the server.
    pub done: u64,
    /// The size of the upload.
    pub total: u64,
    /// Whether the transfer waits for its station's turn.
    pub waits: bool,
    /// The protocol; `None` until it is known.
    pub protocol: Option<Protocol>,
}

/// The result of an upload.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PutReport {
    /// The URL of the upload at the server.
    pub location: String,
    /// The protocol.
    pub protocol: Protocol,
    /// The size, bytes.
    pub bytes: u64,
    /// The duration.
    pub seconds: f64,
    /// The number of pieces that the server took.
    pub pieces: u64,
    /// The number of times that the upload continued after an interruption.
    pub resumes: u64,
    /// The number of times that a piece was cut because the station's turn had ended.
    pub pauses: u64,
    /// The number of bytes that were sent more than once.
    pub bytes_again: u64,
    /// The way in which the result was compared with the source: `checksums`, `digest` or `read back`; null if it was
    /// not compared.
    pub verified: Option<&'static str>,
    /// The reason why the result was not compared with the source.
    pub unverified: Option<String>,
    /// The name under which the server keeps the file, if it says so.
    pub stored_as: Option<String>,
}

/// The parts of an upload that all protocols need.
pub(super) struct PutTransfer<'a> {
    pub(super) config: &'a PutConfig,
    pub(super) client: Arc<Client>,
    pub(super) source: UploadSource,
    pub(super) state: UploadState,
    pub(super) report: PutReport,
    /// Whether the server speaks WebDAV.
    pub(super) is_dav: bool,
    /// The number of bytes that the server can have of this source. What it has behind them is of another one.
    pub(super) trusted: u64,
    turn: AgentTurn,
    pieces: Pieces,
    backoff: Backoff,
    began: Instant,
    /// The largest piece that the server takes.
    largest: u64,
    /// The highest offset that the server has acknowledged.
    acknowledged: u64,
    /// The highest offset up to which bytes were handed to the network.
    highest: u64,
    tell: &'a mut dyn FnMut(PutProgress),
}

impl<'a> PutTransfer<'a> {
    /// A transfer that has sent nothing yet.
    ///
    /// # Errors
    ///
    /// The source, the state or the certificates cannot be used.
    pub(super) fn new(
        config: &'a PutConfig,
        tell: &'a mut dyn FnMut(PutProgress),
    ) -> Result<Self, PutError> {
        let source = UploadSource::open(config)?;
        let state = UploadState::open(config.states.as_deref(), &config.url, &source)?;
        let client = Arc::new(Client::new(config)?);
        let turn = AgentTurn::new(config.agent.as_deref(), source.len);
        let pieces = if turn.answer().is_some() { Pieces::in_turns() } else { Pieces::new(None) };
        let report = PutReport {
            location: target::shown(&config.url),
            protocol: config.protocol,
            bytes: source.len,
            ..PutReport::default()
        };
        let backoff = Backoff::new(config.retry_for);
        let began = Instant::now();
        Ok(Self {
            config,
            client,
            source,
            state,
            report,
            is_dav: false,
            trusted: u64::MAX,
            turn,
            pieces,
            backoff,
            began,
            largest: u64::MAX,
            acknowledged: 0,
            highest: 0,
            tell,
        })
    }

    /// The report of a transfer that has ended. Its state is no longer needed.
    pub(super) fn finish(mut self) -> PutReport {
        self.state.remove();
        self.report.seconds = self.began.elapsed().as_secs_f64();
        self.report
    }

    /// Sends a request, again and again until the answer is not one that passes.
    ///
    /// # Errors
    ///
    /// Those of [`PutTransfer::failed`].
    pub(super) async fn ask(&mut self, query: &Query<'_>) -> Result<HttpAnswer, PutError> {
        loop {
            let failure = match self.client.ask(query).await {
                Ok(answer) if answer.meaning() == Meaning::Passes => answer.refused(),
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            self.failed(failure).await?;
        }
    }

    /// Waits after a failure that may pass, and counts one more continuation of the upload.
    ///
    /// # Errors
    ///
    /// The failure itself if it does not pass, or [`PutError::GaveUp`] after too long a time without progress.
    pub(super) async fn failed(&mut self, error: PutError) -> Result<(), PutError> {
        if !error.is_passing() {
            return Err(error);
        }
        let asked = match &error {
            PutError::Refused { retry_after, .. } => retry_after.unwrap_or_default(),
            _ => Duration::ZERO,
        };
        let elapsed = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let now = wakeai_units::Instant::ZERO + Duration::from_nanos(elapsed);
        let random = getrandom::u64().unwrap_or_default();
        let wait = self.backoff.failed(now, random, asked).map_err(|elapsed| {
            let (limit, error) = (self.config.retry_for, error.to_string());
            if asked > limit {
                PutError::AskedToWait { asked, limit, error }
            } else {
                let elapsed = Duration::from_millis(elapsed.as_millis());
                PutError::GaveUp { elapsed, limit, error }
            }
        })?;
        tracing::warn!(%error, again_in_s = wait.as_nanos() as f64 * 1e-9, "the upload is interrupted");
        if wait >= LONG_WAIT {
            self.turn.tell(None);
        }
        tokio::time::sleep(wait.into()).await;
        self.pieces.cut();
        self.report.resumes += 1;
        Ok(())
    }

    /// Records that the server has the bytes up to `offset`.
    pub(super) fn advanced(&mut self, offset: u64) {
        // What the server had before is no progress.
        if offset > self.acknowledged {
            self.acknowledged = offset;
            self.backoff.progressed();
        }
        self.turn.tell(Some(self.source.len.saturating_sub(offset)));
        self.show(offset, false);
    }

    /// Whether the upload of an earlier process can be continued: the source still begins with what was sent of it. The
    /// file may be another one of the same size and time.
    pub(super) async fn continues(&mut self) -> Result<bool, PutError> {
        let KeptState { stamp, sent, .. } = self.state.kept.clone();
        // Behind `sent` the server can have bytes of this source only if the file system says that nobody has changed it.
        self.trusted = if stamp == self.source.stamp { u64::MAX } else { sent.to };
        let continues = stamp.len == self.source.len && self.source.begins_with(&sent).await?;
        if !continues {
            self.trusted = u64::MAX;
            tracing::warn!(
                "the file is not the one of which a part was sent before: the upload begins anew"
            );
        }
        Ok(continues)
    }

    /// Waits for the station's turn.
    pub(super) async fn turn(&mut self, from: u64) {
        self.turn.tell(Some(self.source.len.saturating_sub(from)));
        while self.turn.permission() == Permission::Wait {
            self.show(from, true);
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits for the station's turn. Returns the end of the piece that begins at `from`, which is kept as sent.
    pub(super) async fn next_piece(&mut self, from: u64) -> Result<u64, PutError> {
        self.turn(from).await;
        let left = Bytes::new(self.source.len.saturating_sub(from));
        let size = match self.config.chunks {
            Chunks::Auto if self.turn.permission() == Permission::Try => Pieces::small(left),
            Chunks::Auto => self.pieces.next(left),
            Chunks::Count(count) => {
                let each = self.source.len.div_ceil(u64::from(count.max(1))).max(1);
                Bytes::new(each - from % each)
            }
            Chunks::Size(size) => size,
        };
        let to = from + size.get().max(1).min(self.largest).min(left.get());
        self.source.look().await?;
        self.source.plan(to).await?;
        self.state.sends(&self.source);
        Ok(to)
    }

    /// Makes the next pieces smaller, because the server refused one of `size` bytes for its size.
    ///
    /// # Errors
    ///
    /// The refusal, if the piece is already a small one.
    pub(super) fn smaller(&mut self, size: u64, refused: PutError) -> Result<(), PutError> {
        if size <= SMALLEST {
            return Err(refused);
        }
        self.largest = size / 2;
        tracing::info!(bytes = self.largest, "the server takes only smaller pieces");
        Ok(())
    }

    /// Sends the bytes from `from` up to `to` with `query`. Meanwhile counts the bytes and shows the progress. If the
    /// upload can continue in the middle of the file, this function ends the request after the station's turn has ended,
    /// and returns `None`. Otherwise it returns the answer, and the number of bytes that were sent before it came.
    ///
    /// # Errors
    ///
    /// The errors of the request, and an error if nothing happened for [`SILENCE`].
    pub(super) async fn send(
        &mut self,
        query: &Query<'_>,
        (from, to): (u64, u64),
    ) -> Result<Option<(HttpAnswer, u64)>, PutError> {
        let sent = Arc::new(Sent::default());
        let piece = self.source.body(from, to, Arc::clone(&sent));
        let client = Arc::clone(&self.client);
        let began = Instant::now();
        let (mut last, mut advanced_at, mut permitted_at) = (0, began, began);
        let can_pause = self.report.protocol.continues();
        let mut request = std::pin::pin!(client.give(query, piece));
        let answer = loop {
            tokio::select! {
                answer = &mut request => break answer.map(|answer| Some((answer, sent.bytes()))),
                () = tokio::time::sleep(LOOK) => {}
            }
            let now = Instant::now();
            let handed = sent.bytes();
            if handed > last {
                (last, advanced_at) = (handed, now);
            }
            if self.turn.permission() != Permission::Wait {
                permitted_at = now;
            }
            if can_pause && now - permitted_at > OUT_OF_TURN {
                self.report.pauses += 1;
                break Ok(None);
            }
            if now - advanced_at > SILENCE {
                break Err(PutError::Connection("the server was silent for 5 minutes".to_owned()));
            }
            self.turn.tell(Some(self.source.len.saturating_sub(from + handed)));
            self.show(from + handed, false);
        };
        if answer.is_err()
            && let Some(failure) = self.source.failure(&sent)
        {
            return Err(failure);
        }
        let end = from + sent.bytes();
        self.report.bytes_again += end.min(self.highest).saturating_sub(from);
        if end > self.highest {
            // This is progress, too: if a file is sent whole, the server acknowledges nothing before its end.
            self.backoff.progressed();
            self.highest = end;
        }
        // The file may have changed while it was read.
        self.source.look().await?;
        if matches!(answer, Ok(Some(_))) {
            let took = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.pieces.sent(Bytes::new(to - from), Duration::from_nanos(took));
        }
        answer
    }

    fn show(&mut self, done: u64, waits: bool) {
        let protocol = Some(self.report.protocol).filter(|found| *found != Protocol::Auto);
        (self.tell)(PutProgress { done, total: self.source.len, waits, protocol });
    }
}
