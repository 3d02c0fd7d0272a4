//! The course of an upload, whatever its protocol.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use http::Method;
use http::header::SERVER;
use serde::Serialize;
use wakeai_control::{Permission, Pieces};
use wakeai_units::{Bytes, Duration};

use super::backoff::Backoff;
use super::http::Client;
use super::source::Source;
use super::state::State;
use super::turn::Turn;
use super::{Chunks, Config, Protocol, PutError, target, tus, webdav};
use crate::tus::TUS_VERSION;

/// The time between two looks at the permission and at the progress.
const LOOK: std::time::Duration = std::time::Duration::from_millis(100);

/// The progress of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The bytes that were handed to the network or are at the server.
    pub done: u64,
    /// The size of the upload.
    pub total: u64,
    /// Whether the transfer waits for its station's turn.
    pub waits: bool,
}

/// The result of an upload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The URL of the upload at the server.
    pub location: String,
    /// `tus`, `put` or `put-ranges`.
    pub protocol: String,
    /// The size, bytes.
    pub bytes: u64,
    /// The duration.
    pub seconds: f64,
    /// The pieces that the server took.
    pub pieces: u64,
    /// The number of times that the upload continued after an interruption.
    pub resumes: u64,
    /// The bytes that were sent more than once.
    pub bytes_again: u64,
    /// How the result was compared with the source: `checksums`, `digest`, `read back` or `length`; null where it was not.
    pub verified: Option<String>,
}

/// What all protocols need.
pub(super) struct Transfer<'a> {
    pub(super) config: &'a Config,
    pub(super) client: Arc<Client>,
    pub(super) source: Source,
    pub(super) state: State,
    pub(super) turn: Turn,
    pieces: Pieces,
    backoff: Backoff,
    began: Instant,
    highest: u64,
    pub(super) report: Report,
    tell: &'a mut dyn FnMut(Progress),
}

/// Uploads a file. `tell` is called several times per second.
///
/// # Errors
///
/// [`PutError`].
pub async fn run(
    config: &Config,
    mut shutdown: impl Future<Output = ()> + Unpin,
    tell: &mut dyn FnMut(Progress),
) -> Result<Report, PutError> {
    target::check(&config.url)?;
    let source = Source::open(config)?;
    let state = State::open(config.states.as_deref(), &config.url, &source);
    let turn = Turn::new(config.agent.clone(), source.len);
    let total = config.timeout.map_or(std::time::Duration::MAX, std::time::Duration::from);
    let mut transfer = Transfer {
        client: Arc::new(Client::new(config)?),
        pieces: match turn.peers() {
            Some(_) => Pieces::in_turns(),
            None => Pieces::new(None),
        },
        backoff: Backoff::new(config.retry_for),
        began: Instant::now(),
        highest: 0,
        report: Report {
            location: target::shown(&config.url),
            protocol: String::new(),
            bytes: source.len,
            seconds: 0.0,
            pieces: 0,
            resumes: 0,
            bytes_again: 0,
            verified: None,
        },
        config,
        source,
        state,
        turn,
        tell,
    };
    tokio::select! {
        done = transfer.upload() => done?,
        () = &mut shutdown => return Err(PutError::Interrupted),
        () = tokio::time::sleep(total) => return Err(PutError::TimedOut(config.timeout.unwrap_or(Duration::ZERO))),
    }
    transfer.state.remove();
    transfer.report.seconds = transfer.began.elapsed().as_secs_f64();
    Ok(transfer.report)
}

impl Transfer<'_> {
    async fn upload(&mut self) -> Result<(), PutError> {
        let protocol = match self.config.protocol {
            Protocol::Auto => self.find_protocol().await?,
            named => named,
        };
        protocol_name(protocol).clone_into(&mut self.report.protocol);
        match protocol {
            Protocol::Put => webdav::whole(self).await,
            Protocol::PutRanges => webdav::in_ranges(self).await,
            Protocol::Tus | Protocol::Auto => tus::upload(self).await,
        }
    }

    /// Finds the protocol by the server's answer to OPTIONS.
    async fn find_protocol(&mut self) -> Result<Protocol, PutError> {
        loop {
            match self.client.ask(Method::OPTIONS, &self.config.url, &[]).await {
                Ok(answer) if answer.headers.contains_key(TUS_VERSION) => return Ok(Protocol::Tus),
                Ok(answer) => {
                    let dav = answer.headers.contains_key("dav");
                    let apache = answer.get(&SERVER).is_some_and(|name| name.starts_with("Apache"));
                    return Ok(if dav && apache { Protocol::PutRanges } else { Protocol::Put });
                }
                Err(error) => self.failed(error).await?,
            }
        }
    }

    /// Waits after a failure that may pass.
    ///
    /// # Errors
    ///
    /// The failure itself where it does not pass, or where nothing advanced for too long.
    pub(super) async fn failed(&mut self, error: PutError) -> Result<(), PutError> {
        if !error.is_passing() {
            return Err(error);
        }
        tracing::debug!(%error, "the upload is interrupted");
        let elapsed = Duration::from_nanos(
            u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX),
        );
        let now = wakeai_units::Instant::ZERO + elapsed;
        let random = getrandom::u64().unwrap_or_default();
        match self.backoff.failed(now, random, Duration::ZERO) {
            Ok(wait) => tokio::time::sleep(wait.into()).await,
            Err(too_long) => {
                return Err(PutError::GaveUp(too_long.without_progress, error.to_string()));
            }
        }
        self.pieces.cut();
        Ok(())
    }

    /// Says that the server has the bytes up to `offset`.
    pub(super) fn advanced(&mut self, offset: u64) {
        self.backoff.progressed();
        self.turn.tell(self.source.len.saturating_sub(offset));
        self.show(offset, false);
    }

    /// Waits for the station's turn. Returns the end of the piece that begins at `from`.
    pub(super) async fn next_piece(&mut self, from: u64) -> Result<u64, PutError> {
        self.source.check()?;
        while self.turn.permission() == Permission::Wait {
            self.show(from, true);
            tokio::time::sleep(LOOK).await;
        }
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
        Ok(from + size.get().min(left.get()))
    }

    /// Waits for `request`, which sends the bytes from `from` up to `to`, and counts and shows them.
    pub(super) async fn sending<T>(
        &mut self,
        (from, to): (u64, u64),
        sent: &AtomicU64,
        request: impl Future<Output = Result<T, PutError>>,
    ) -> Result<T, PutError> {
        let began = Instant::now();
        let mut request = std::pin::pin!(request);
        let answered = loop {
            tokio::select! {
                answered = &mut request => break answered,
                () = tokio::time::sleep(LOOK) => {
                    let at = from + sent.load(Ordering::Relaxed);
                    self.turn.tell(self.source.len.saturating_sub(at));
                    self.show(at, false);
                }
            }
        };
        let end = from + sent.load(Ordering::Relaxed);
        self.report.bytes_again += end.min(self.highest).saturating_sub(from);
        self.highest = self.highest.max(end);
        if answered.is_ok() {
            let took = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.pieces.sent(Bytes::new(to - from), Duration::from_nanos(took));
        }
        answered
    }

    fn show(&mut self, done: u64, waits: bool) {
        (self.tell)(Progress { done, total: self.source.len, waits });
    }
}

fn protocol_name(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Auto | Protocol::Tus => "tus",
        Protocol::Put => "put",
        Protocol::PutRanges => "put-ranges",
    }
}

/// A counter of the bytes of a request.
pub(super) fn counter() -> Arc<AtomicU64> {
    Arc::default()
}
