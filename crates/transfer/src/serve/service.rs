//! Answers one request.

use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;

use http::header::{EXPECT, HOST};
use http::{HeaderMap, Request};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use tokio::task::spawn_local;
use wakeai_metrics::is_this_machine;

use super::answer::{self, Answer, Told};
use super::append::{Appended, append};
use super::finish::finish;
use super::journal::Info;
use super::refusal::Refusal;
use super::request::{Append, Create, Id, Operation};
use super::server::Server;
use super::store::{Entry, Held, now};

/// The name that every client has on a server without tokens.
const NOBODY: &str = "local";
/// The most bytes that are read of the body of a refused request. The client can then read the answer before its
/// connection is reset.
const DRAIN_BYTES: usize = 1 << 20;
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// Answers a request.
pub(crate) async fn handle(
    server: Rc<Server>,
    request: Request<Incoming>,
) -> Result<Answer, Infallible> {
    server.counters.requests.one();
    let (head, body) = request.into_parts();
    let mut body = Some(body);
    let read = Operation::read(&head.method, head.uri.path(), &head.headers);
    let client = client(&server, &head.headers, head.uri.host());
    let answered = match client {
        Ok(client) => match read {
            Ok(operation) => answer(&server, &client, operation, &mut body).await,
            Err(refused) => Err(refused),
        },
        Err(refused) => Err(refused),
    };
    let answer = answered.unwrap_or_else(|refused| {
        tracing::debug!(%refused, method = %head.method, path = head.uri.path(), "refused");
        match refused {
            Refusal::Token => server.counters.denied.one(),
            Refusal::DiskFull => server.counters.disk_full.one(),
            _ => {}
        }
        answer::refused(refused)
    });
    if answer.status().is_client_error() || answer.status().is_server_error() {
        server.counters.refused.one();
        if let Some(&refusal) = answer.extensions().get::<Refusal>() {
            server.refused(refusal);
        }
    }
    // A client that waits for "100 Continue" sends nothing after a refusal.
    if let Some(body) =
        body.filter(|body| !body.is_end_stream() && !head.headers.contains_key(EXPECT))
    {
        spawn_local(drain(body));
    }
    Ok(answer)
}

async fn drain(mut body: Incoming) {
    let _ = tokio::time::timeout(DRAIN_TIME, async {
        let mut drained = 0;
        while drained < DRAIN_BYTES
            && let Some(Ok(frame)) = body.frame().await
        {
            drained += frame.data_ref().map_or(0, hyper::body::Bytes::len);
        }
    })
    .await;
}

/// The client that sends the request.
fn client(server: &Server, headers: &HeaderMap, host: Option<&str>) -> Result<Rc<str>, Refusal> {
    if let Some(tokens) = &server.tokens {
        return tokens.client(headers).ok_or(Refusal::Token);
    }
    // Without tokens the server serves only programs on this machine. A web page could let its own host name resolve to
    // this machine's address, so that the browser sends requests to this server. The browser then sends that host name,
    // and the server refuses the request.
    let named = headers.get(HOST).and_then(|host| host.to_str().ok()).or(host);
    match named {
        Some(named) if !is_this_machine(named) => Err(Refusal::Host),
        _ => Ok(Rc::from(NOBODY)),
    }
}

async fn answer(
    server: &Rc<Server>,
    client: &Rc<str>,
    operation: Operation,
    body: &mut Option<Incoming>,
) -> Result<Answer, Refusal> {
    match operation {
        Operation::Options => Ok(answer::options(server.store.max_size)),
        Operation::Create(create) => self::create(server, client, create, body).await,
        Operation::Head { id, wants_digest } => head(server, client, id, wants_digest).await,
        Operation::Append(id, append) => {
            server.store.find(id, client)?;
            let appended = receive(server, client, id, append, body).await;
            Ok(answer::appended(&appended))
        }
        Operation::Delete(id) => {
            let entry = server.store.find(id, client)?;
            let mut held = entry.hold().await?;
            if held.state.is_removed {
                return Err(Refusal::NotFound);
            }
            server.store.remove(&entry, &mut held.state).await?;
            server.counters.ended.one();
            Ok(answer::deleted())
        }
    }
}

async fn create(
    server: &Rc<Server>,
    client: &Rc<str>,
    create: Create,
    body: &mut Option<Incoming>,
) -> Result<Answer, Refusal> {
    let entry = server.store.create(client, &create).await?;
    server.counters.created.one();
    let has_body = create.first.is_some();
    if !has_body && create.length != Some(0) {
        let expires = now().saturating_add(server.store.expire_after_s);
        let nothing = Appended { offset: None, expires, name: None, refused: None };
        return Ok(answer::created(entry.id, &nothing, false));
    }
    // An upload of length zero is complete at once.
    let none = Append { offset: 0, size: Some(0), checksum: None, length: None };
    let appended = receive(server, client, entry.id, create.first.unwrap_or(none), body).await;
    let refused = appended.refused.filter(|&refused| match refused {
        // The client does not know the upload's address, and cannot continue.
        Refusal::Cut => true,
        // The received bytes are kept. The client learns the upload's address and continues.
        Refusal::Stalled | Refusal::Stopping | Refusal::TakenOver => false,
        _ => appended.offset.is_none_or(|offset| offset == 0),
    });
    if let Some(refused) = refused {
        if let Ok(mut held) = entry.hold().await {
            let _ = server.store.remove(&entry, &mut held.state).await;
        }
        return Err(refused);
    }
    Ok(answer::created(entry.id, &appended, has_body))
}

/// Receives a body in a task of its own. If the connection is lost, the request's future is dropped, but the bytes that
/// arrived still have to be kept.
async fn receive(
    server: &Rc<Server>,
    client: &Rc<str>,
    id: Id,
    request: Append,
    body: &mut Option<Incoming>,
) -> Appended {
    let (server, client) = (Rc::clone(server), Rc::clone(client));
    let Some(mut body) = body.take() else { return Refusal::Storage.into() };
    server.bodies.send_modify(|bodies| *bodies += 1);
    let task = spawn_local(async move {
        let appended = match server.store.find(id, &client) {
            Ok(entry) => append(&server, &entry, &request, &mut body).await,
            Err(refused) => refused.into(),
        };
        match appended.refused {
            Some(Refusal::Cut | Refusal::Stalled) => server.counters.cut.one(),
            Some(Refusal::TakenOver) => server.counters.taken_over.one(),
            Some(Refusal::Checksum) => server.counters.mismatched.one(),
            Some(Refusal::DiskFull) => server.counters.disk_full.one(),
            _ => {}
        }
        if appended.refused.is_some() && !body.is_end_stream() {
            spawn_local(drain(body));
        }
        server.bodies.send_modify(|bodies| *bodies -= 1);
        appended
    });
    task.await.unwrap_or_else(|_| Refusal::Storage.into())
}

async fn head(
    server: &Rc<Server>,
    client: &Rc<str>,
    id: Id,
    wants_digest: bool,
) -> Result<Answer, Refusal> {
    let entry = server.store.find(id, client)?;
    let Held { mut state, .. } = entry.hold().await?;
    server.store.check_alive(&state)?;
    if state.upload.is_complete() && !state.is_finished {
        finish(server, &entry, &mut state).await?; // an earlier attempt to finish it has failed
    }
    let info = server.store.blocking(move |files| files.journal.info(id)).await?;
    let mut told = Told {
        offset: state.upload.offset(),
        length: state.upload.length(),
        expires: server.store.expires(&state),
        metadata: info.metadata.clone(),
        sha256: None,
        name: state.is_finished.then(|| info.name.clone()),
    };
    let is_finished = state.is_finished;
    drop(state); // a digest takes long, and other requests must not wait for it
    if wants_digest && is_finished {
        told.sha256 = digest(server, &entry, info).await;
    }
    Ok(answer::head(&told))
}

/// The digest of a finished upload. It is kept, so that the file is read only once.
async fn digest(server: &Server, entry: &Entry, info: Info) -> Option<String> {
    let _permit = server.digests.acquire().await.ok()?;
    if let Some(known) = entry.try_hold().and_then(|state| state.sha256.clone()) {
        return Some(known);
    }
    let found = server.store.blocking(move |files| Ok(files.digest(&info))).await.ok()?;
    if let Some(mut state) = entry.try_hold() {
        state.sha256.clone_from(&found);
    }
    found
}
