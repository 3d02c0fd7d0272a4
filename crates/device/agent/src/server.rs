//! The server of the local API, which never blocks the agent's event loop.
//!
//! The event loop publishes a report after each tick. Each client has a task, which answers the
//! client's requests from this report. The number of clients, the length of a request and the time of
//! every step are limited.

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use wakeai_api::{Answer, Body, Request, Reserve, VERSION, json_line};
use wakeai_host::{Lease, MakeError};
use wakeai_units::Rate;

use crate::access::Access;
use crate::fleet::FleetClients;
use crate::report::Report;
use crate::transfers::{ClientTransfer, Transfers};

/// The largest number of clients at once.
const MOST_CLIENTS: usize = 16;
/// The longest request, in bytes. The newline counts.
const LONGEST_REQUEST: u64 = 4096;
/// The longest time for a request to arrive, and also for the client to read the answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Counts of refused clients and requests.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    /// Clients that are not root, not the agent's user and not members of `api.group`.
    pub(crate) strangers: Cell<u64>,
    /// Requests for a change from clients without the right to it.
    pub(crate) forbidden: Cell<u64>,
    /// Clients over the limit [`MOST_CLIENTS`].
    pub(crate) crowded: Cell<u64>,
    /// Requests that were too long, were not JSON, had another version or were unknown.
    pub(crate) bad_requests: Cell<u64>,
    /// Clients that were too slow to send a request or to read an answer.
    pub(crate) slow: Cell<u64>,
}

fn count(counter: &Cell<u64>) {
    counter.set(counter.get().saturating_add(1));
}

/// The listening socket, and the state that its tasks share.
#[derive(Debug)]
pub(crate) struct Server {
    listener: UnixListener,
    group: Option<u32>,
    refusals: Rc<Refusals>,
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
        let registered =
            listener.set_nonblocking(true).and_then(|()| UnixListener::from_std(listener));
        let failed = |source| MakeError::Io { path: path.to_owned(), source };
        let listener = registered.map_err(failed)?;
        Ok(Self {
            listener,
            group,
            refusals: Rc::default(),
            report,
            reserve,
            transfers: Rc::new(transfers),
            fleet,
        })
    }

    /// The counts so far.
    pub(crate) fn refusals(&self) -> Rc<Refusals> {
        Rc::clone(&self.refusals)
    }

    /// Serves forever, on the `LocalSet` of the calling task.
    pub(crate) async fn serve(self: Rc<Self>) {
        let places = || Arc::new(Semaphore::new(MOST_CLIENTS));
        // Clients that may only ask and clients that may also request changes have separate limits.
        let (places_to_ask, places_to_change) = (places(), places());
        let mut clients = 0;
        loop {
            let stream = match self.listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // The cause may be temporary. For example, the process may have no free file
                    // descriptor now, and have one at the next attempt.
                    tracing::warn!(%error, "cannot accept a client");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            let access = Access::of(&stream, self.group).unwrap_or(Access::None);
            if access == Access::None {
                count(&self.refusals.strangers);
                turn_away(&stream, "only root, the agent's user and members of api.group may ask");
                continue;
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
                count(&self.refusals.crowded);
                turn_away(&stream, "too many clients at once: try again later");
            }
        }
    }

    async fn serve_client(&self, mut stream: UnixStream, access: Access, transfer: ClientTransfer) {
        let (reader, mut writer) = stream.split();
        let mut reader = BufReader::new(reader);
        loop {
            let mut request = Vec::new();
            let mut limited = (&mut reader).take(LONGEST_REQUEST);
            let read = limited.read_until(b'\n', &mut request);
            match timeout(PATIENCE, read).await {
                Err(_) => return count(&self.refusals.slow),
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
                count(&self.refusals.bad_requests);
                Body::Error(reason)
            }));
            match timeout(PATIENCE, writer.write_all(&answer)).await {
                Err(_) => return count(&self.refusals.slow),
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
            Request::Metrics => Ok(Body::Metrics(self.report.borrow().metrics.clone())),
            Request::Reserve(rate) => Ok(self.reserve(rate, access, change)),
            Request::Transfer(left) => transfer.update(left).await.map(Body::Transfer),
            Request::Fleet(query) => self.fleet.ask(query.is_none()).await.map(Body::Fleet),
        }
    }

    fn apply(&self, Change { user, rate }: Change) {
        let text = rate.map_or("none".to_owned(), |rate| rate.to_string());
        tracing::info!(user, rate = text, "reservation requested");
        let _ = self.reserve.send_replace(rate); // returns the previous rate
    }

    fn reserve(&self, rate: Option<Rate>, access: Access, change: &mut Option<Change>) -> Body {
        let Access::Change(user) = access else {
            count(&self.refusals.forbidden);
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
