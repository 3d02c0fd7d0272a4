//! Answers one request: checks the host and the token, and makes the answer by the kind of the request.

use std::convert::Infallible;
use std::rc::Rc;

use http::header::{CONNECTION, HOST, TRANSFER_ENCODING};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Request, Version};
use hyper::body::{Body as _, Incoming};
use tokio::task::spawn_local;
use wakeai_net::is_this_machine;
use wakeai_tus as tus;

use super::answer::{self, ServeAnswer};
use super::append::{Appended, append, finish};
use super::base::{local_path, location};
use super::connections::Open;
use super::cors;
use super::journal::Info;
use super::refusal::Refusal;
use super::request::{Append, Create, Id, Operation};
use super::server::UploadServer;
use super::store::{Held, StoreEntry};
use super::unsupported::check_preconditions;

/// The name that every client has on a server without tokens.
const NOBODY: &str = "local";

/// Answers a request of a connection.
pub(crate) async fn handle(
    server: Rc<UploadServer>,
    open: Rc<Open>,
    request: Request<Incoming>,
) -> Result<ServeAnswer, Infallible> {
    server.counters.requests.one();
    let (head, body) = request.into_parts();
    let mut body = Some(body);
    let is_preflight = cors::is_preflight(&head.method, &head.headers);
    let answered = match check_host(&server, &head) {
        Ok(()) if is_preflight => Ok(answer::done()),
        Ok(()) => answer(&server, &head, &mut body).await,
        Err(refused) => Err(refused),
    };
    let mut answer = answered.unwrap_or_else(|refused| {
        tracing::debug!(%refused, method = %head.method, path = head.uri.path(), "refused");
        match refused {
            Refusal::Token => server.counters.denied.one(),
            Refusal::DiskFull => server.counters.disk_full.one(),
            _ => {}
        }
        answer::refused(refused)
    });
    let (origins, has_tokens) = (&server.config.origins, server.tokens.is_some());
    cors::allow(&head.headers, is_preflight, origins, has_tokens, answer.headers_mut());
    if answer.status().is_client_error() || answer.status().is_server_error() {
        server.counters.refused.one();
        if let Some(refusal) = answer.extensions().get::<Refusal>() {
            *server.refusals.borrow_mut().entry(refusal.into()).or_default() += 1;
        }
    }
    // What is left of the body is not read as a further request. A request whose length may be stated twice, of which the
    // parser leaves one statement, ends its connection in any case (RFC 9112, section 6.1).
    let has_unread = body.is_some_and(|body| !body.is_end_stream());
    if has_unread || head.headers.contains_key(TRANSFER_ENCODING) {
        open.has_unread.set(has_unread);
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(answer)
}

/// Checks the host that a request names (RFC 9112, section 3.2).
fn check_host(server: &UploadServer, head: &Parts) -> Result<(), Refusal> {
    let mut hosts = head.headers.get_all(HOST).iter();
    let (first, second) = (hosts.next(), hosts.next());
    let first = first.map(|host| host.to_str().map_err(|_| Refusal::NoHost)).transpose()?;
    // An authority may also have a user.
    let is_valid =
        |host: &str| host.is_empty() || (!host.contains('@') && host.parse::<Authority>().is_ok());
    if second.is_some()
        || !first.is_none_or(is_valid)
        || (first.is_none() && head.version == Version::HTTP_11)
    {
        return Err(Refusal::NoHost);
    }
    // Without tokens the server serves only programs on this machine, also behind a proxy whose host it knows. A web page
    // could let its own host name resolve to this machine's address, so that the browser sends requests to this server. The
    // browser then sends that host name, and the server refuses the request. A host in the request line goes before the
    // field (RFC 9112, section 3.2.2).
    let is_known = |named: &str| {
        is_this_machine(named)
            || server.config.base.as_ref().is_some_and(|base| base.is_host(named))
    };
    let named = head.uri.authority().map(Authority::as_str).or(first);
    match named {
        Some(named) if server.tokens.is_none() && !is_known(named) => Err(Refusal::Host),
        _ => Ok(()),
    }
}

/// The client that sends the request.
fn client(server: &UploadServer, headers: &HeaderMap) -> Result<Rc<str>, Refusal> {
    match &server.tokens {
        Some(tokens) => tokens.client(headers).ok_or(Refusal::Token),
        None => Ok(Rc::from(NOBODY)),
    }
}

async fn answer(
    server: &Rc<UploadServer>,
    head: &Parts,
    body: &mut Option<Incoming>,
) -> Result<ServeAnswer, Refusal> {
    let client = &client(server, &head.headers)?;
    let base = server.config.base.as_ref();
    let path = local_path(base, head.uri.path());
    let preconditions = |exists, is_head| check_preconditions(&head.headers, exists, is_head);
    match Operation::read(&head.method, &path, &head.headers)? {
        Operation::Options(target) => Ok(answer::options(server.store.max_size, target)),
        Operation::Create(create) => {
            preconditions(false, false)?;
            let at = |id| location(base, &path, head.version, &head.headers, id);
            self::create(server, client, create, body, at).await
        }
        Operation::Head { id, wants_digest } => {
            let answered = self::head(server, client, id, wants_digest).await?;
            preconditions(true, true)?;
            Ok(answered)
        }
        Operation::Append(id, append) => {
            server.store.find(id, client)?;
            preconditions(true, false)?;
            let appended = receive(server, client, id, append, body).await?;
            Ok(answer::appended(&appended))
        }
        Operation::Delete(id) => {
            let entry = server.store.find(id, client)?;
            preconditions(true, false)?;
            let mut held = entry.hold().await?;
            if held.state.is_removed {
                return Err(Refusal::NotFound);
            }
            server.store.remove(&entry, &mut held.state).await?;
            server.counters.ended.one();
            Ok(answer::done())
        }
    }
}

async fn create(
    server: &Rc<UploadServer>,
    client: &Rc<str>,
    create: Create,
    body: &mut Option<Incoming>,
    location: impl Fn(Id) -> String,
) -> Result<ServeAnswer, Refusal> {
    let entry = server.store.create(client, &create).await?;
    server.counters.created.one();
    let has_body = create.first.is_some();
    if !has_body && create.length != Some(0) {
        let expires = server.store.expires_if_active_now();
        let nothing = Appended { offset: 0, expires, name: None, refused: None };
        return Ok(answer::created(&location(entry.id), &nothing, false));
    }
    // An upload of length zero is complete at once.
    let none = Append { offset: 0, size: Some(0), checksum: None, length: None };
    let appended = receive(server, client, entry.id, create.first.unwrap_or(none), body).await;
    // Whether the upload is of no use.
    let is_lost = |refused, offset| match refused {
        // The client does not know the upload's address, and cannot continue.
        Refusal::Cut => true,
        // The received bytes are kept. The client learns the upload's address and continues.
        Refusal::Stalled | Refusal::Stopping | Refusal::TakenOver => false,
        _ => offset == 0,
    };
    let refused = match appended {
        Err(refused) => refused,
        Ok(Appended { refused: Some(refused), offset, .. }) if is_lost(refused, offset) => refused,
        Ok(appended) => return Ok(answer::created(&location(entry.id), &appended, has_body)),
    };
    if let Ok(mut held) = entry.hold().await {
        let _ = server.store.remove(&entry, &mut held.state).await;
    }
    Ok(answer::refused(refused)) // it was counted when it was received
}

/// Receives a body in a task of its own, and leaves what was not read of it in `body`. If the connection is lost, the request's future is dropped, but the bytes that
/// arrived still have to be kept.
async fn receive(
    server: &Rc<UploadServer>,
    client: &Rc<str>,
    id: Id,
    request: Append,
    body: &mut Option<Incoming>,
) -> Result<Appended, Refusal> {
    let (server, client) = (Rc::clone(server), Rc::clone(client));
    let mut arriving = body.take().ok_or(Refusal::Storage)?;
    server.bodies.send_modify(|bodies| *bodies += 1);
    let task = spawn_local(async move {
        let appended = match server.store.find(id, &client) {
            Ok(entry) => append(&server, &entry, &request, &mut arriving).await,
            Err(refused) => Err(refused),
        };
        match appended.as_ref().map(|appended| appended.refused) {
            Ok(Some(Refusal::Cut | Refusal::Stalled)) => server.counters.cut.one(),
            Ok(Some(Refusal::TakenOver)) => server.counters.taken_over.one(),
            Ok(Some(Refusal::Checksum)) => server.counters.mismatched.one(),
            Ok(Some(Refusal::DiskFull)) => server.counters.disk_full.one(),
            _ => {}
        }
        server.bodies.send_modify(|bodies| *bodies -= 1);
        (appended, arriving)
    });
    let (appended, left) = task.await.map_err(|_| Refusal::Storage)?;
    *body = Some(left);
    appended
}

async fn head(
    server: &Rc<UploadServer>,
    client: &Rc<str>,
    id: Id,
    wants_digest: bool,
) -> Result<ServeAnswer, Refusal> {
    let entry = server.store.find(id, client)?;
    let Held { mut state, .. } = entry.hold().await?;
    server.store.check_alive(&state)?;
    if state.upload.is_complete() && !state.is_finished {
        finish(server, &entry, &mut state).await?; // an earlier attempt to finish it has failed
    }
    let unfinished = (!state.is_finished).then(|| state.upload.offset());
    let read = server.store.blocking(move |files| {
        unfinished.map_or(Ok(()), |offset| files.check_data(id, offset))?;
        files.journal.info(id)
    });
    let info = read.await?;
    let (is_finished, expires) = (state.is_finished, server.store.expires(&state));
    let mut answer = answer::head(&state.upload, expires, &info, is_finished);
    drop(state); // a digest takes long, and other requests must not wait for it
    if wants_digest
        && is_finished
        && let Some(digest) = digest(server, &entry, info).await
    {
        answer::put(answer.headers_mut(), tus::REPR_DIGEST, &format!("sha-256=:{digest}:"));
    }
    Ok(answer)
}

/// The digest of a finished upload. It is kept, so that the file is read again only after it has changed.
async fn digest(server: &UploadServer, entry: &StoreEntry, info: Info) -> Option<String> {
    let _permit = server.digests.acquire().await.ok()?;
    let known = entry.try_hold().and_then(|state| state.sha256.clone());
    let found = server.store.blocking(move |files| Ok(files.digest(&info, known))).await.ok()?;
    if let Some(mut state) = entry.try_hold() {
        state.sha256.clone_from(&found);
    }
    found.map(|(_, digest)| digest)
}
