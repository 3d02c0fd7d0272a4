//! The server of the local API, which never blocks the agent's event loop.
//!
//! The event loop publishes a report after each tick. Each client has a task, which answers the
//! client's requests from this report. The number of clients, the length of a request and the time of
//! every step are limited.

use std::os::unix::net;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::socket::Backlog;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use wakeai_api::{Answer, Body, Request, Reserve, VERSION, json_line};
use wakeai_daemon::accept_each;
use wakeai_host::{Lease, MakeError};
use wakeai_units::Rate;

use crate::access::Access;
use crate::counters::Counters;
use crate::fleet::{self, FleetClients};
use crate::report::Report;
use crate::transfers::{ClientTransfer, Transfers};

/// The largest number of clients at once.
const MOST_CLIENTS: usize = 16;
/// The longest request, in bytes. The newline counts.
const LONGEST_REQUEST: u64 = 4096;
/// The longest time for a request to arrive, and also for the client to read the answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The listening socket, and the state that its tasks share.
#[derive(Debug)]
pub(crate) struct Server {
    listener: net::UnixListener,
    group: Option<u32>,
    counters: Rc<Counters>,
    report: watch::Receiver<Report>,
    reserve: watch::Sender<Option<Rate>>,
    transfers: Rc<Transfers>,
    fleet: FleetClients,
}

impl Server {
    /// Listens at `path`. The lease (the record of changes) removes the socket at the end. Any user
    /// may connect, so that the agent can send and count a refusal. The access of a client depends
    /// on its credentials.
    pub(crate) fn bind(
        lease: &Lease,
        path: &Path,
        group: Option<u32>,
        report: watch::Receiver<Report>,
        reserve: watch::Sender<Option<Rate>>,
        transfers: Transfers,
        fleet: FleetClients,
    ) -> Result<Self, MakeError> {
        let listener = lease.bind_socket(path, 0o666)?;
        Ok(Self {
            listener,
            group,
            counters: Rc::default(),
            report,
            reserve,
            transfers: Rc::new(transfers),
            fleet,
        })
    }

    /// The counts so far.
    pub(crate) fn counters(&self) -> Rc<Counters> {
        Rc::clone(&self.counters)
    }

    /// Serves forever, on the `LocalSet` of the calling task.
    pub(crate) async fn serve(self: Rc<Self>) {
        let listener = match self.listen().and_then(UnixListener::from_std) {
            Ok(listener) => listener,
            Err(error) => return tracing::error!(%error, "the local API cannot be served"),
        };
        let places = || Arc::new(Semaphore::new(MOST_CLIENTS));
        // Clients that may only ask and clients that may also request changes have separate limits.
        let (places_to_ask, places_to_change) = (places(), places());
        let mut clients = 0;
        let serve = async |(stream, _)| {
            let access = Access::of(&stream, self.group).unwrap_or(Access::None);
            if access == Access::None {
                self.counters.api_strangers.one();
                turn_away(&stream, "only root, the agent's user and members of api.group may ask");
                return;
            }
            let places = match access {
                Access::Change(_) => &places_to_change,
                Access::Ask | Access::None => &places_to_ask,
            };
            if let Ok(place) = Arc::clone(places).try_acquire_owned() {
                let server = Rc::clone(&self);
                clients += 1;
                let transfer = self.transfers.client(clients);
                tokio::task::spawn_local(async move {
                    server.serve_client(stream, access, transfer).await;
                    drop(place);
                });
            } else {
                self.counters.api_crowded.one();
                turn_away(&stream, "too many clients at once: try again later");
            }
        };
        accept_each(|| listener.accept(), || (), serve).await;
    }

    /// Listens again in the process that serves. A client sees the process that listened last as its peer
    /// (`SO_PEERCRED` of unix(7)), and names it to its user if it is stopped.
    fn listen(&self) -> std::io::Result<net::UnixListener> {
        nix::sys::socket::listen(&self.listener, Backlog::MAXCONN)?;
        self.listener.try_clone()
    }

    async fn serve_client(&self, mut stream: UnixStream, access: Access, transfer: ClientTransfer) {
        let (reader, mut writer) = stream.split();
        let mut reader = BufReader::new(reader);
        loop {
            let mut request = Vec::new();
            let mut limited = (&mut reader).take(LONGEST_REQUEST);
            let read = limited.read_until(b'\n', &mut request);
            match timeout(PATIENCE, read).await {
                Err(_) => return self.counters.api_slow.one(),
                Ok(Err(_) | Ok(0)) => return,
                Ok(Ok(_)) => {}
            }
            let whole = request.ends_with(b"\n");
            let mut change = None;
            let answer = if whole {
                self.answer(&request, access, &transfer, &mut change).await
            } else {
                let found = request.len();
                Err(format!(
                    "found {found} bytes without a newline, expected a line of at most {LONGEST_REQUEST} bytes"
                ))
            };
            let answer = line(answer.unwrap_or_else(|reason| {
                self.counters.api_bad_requests.one();
                Body::Error(reason)
            }));
            match timeout(PATIENCE, writer.write_all(&answer)).await {
                Err(_) => return self.counters.api_slow.one(),
                Ok(Err(_)) => return,
                Ok(Ok(())) if !whole => return,
                // A client that was not answered in time has gone, and has said that nothing changes.
                Ok(Ok(())) => change.into_iter().for_each(|change| self.apply(change)),
            }
        }
    }

    async fn answer(
        &self,
        request: &[u8],
        access: Access,
        transfer: &ClientTransfer,
        change: &mut Option<Change>,
    ) -> Result<Body, String> {
        match Request::parse(request)? {
            Request::Status => self.report.borrow().status(),
            Request::Peers => Ok(Body::Peers(self.report.borrow().peers.clone())),
            Request::Bounds => Ok(Body::Bounds(self.report.borrow().bounds.clone())),
            Request::Targets => Ok(Body::Targets(self.report.borrow().targets.clone())),
            Request::Metrics => Ok(Body::Metrics(self.report.borrow().counts.named())),
            Request::Reserve { rate } => Ok(self.reserve(rate, access, change)),
            Request::Transfer { left } => transfer.update(left).await.map(Body::Transfer),
            Request::Fleet { query } => {
                fleet::ask(&self.fleet, query.is_none()).await.map(Body::Fleet)
            }
        }
    }

    fn apply(&self, Change { user, rate }: Change) {
        let text = rate.map_or("none".to_owned(), |rate| rate.to_string());
        tracing::info!(user, rate = text, "reservation requested");
        let _ = self.reserve.send_replace(rate); // returns the previous rate
    }

    fn reserve(&self, rate: Option<Rate>, access: Access, change: &mut Option<Change>) -> Body {
        let Access::Change(user) = access else {
            self.counters.api_forbidden.one();
            return Body::Error("only root and the agent's user may reserve".to_owned());
        };
        *change = Some(Change { user, rate });
        Body::Reserve(Reserve { rate_mbps: rate.map(Rate::as_mbps_f64) })
    }
}

/// A change that a client has asked for.
struct Change {
    user: u32,
    rate: Option<Rate>,
}

/// Tries once to send the reason, without waiting.
fn turn_away(stream: &UnixStream, reason: &str) {
    let _ = stream.try_write(&line(Body::Error(reason.to_owned())));
}

fn line(body: Body) -> Vec<u8> {
    json_line::encode(&Answer { version: VERSION, body })
        .expect("an answer has string keys and finite numbers alone")
}
