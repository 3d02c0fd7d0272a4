//! Serves one client: reads its request, connects to its destination, and relays between them.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use socket2::SockRef;
use tokio::net::TcpStream;

use crate::listen::Entry;
use crate::negotiation::{Negotiation, Outcome, REQUEST_LIMIT, Rejection};
use crate::outgoing::{Source, connect};
use crate::rates;
use crate::relay::{End, failed, relay, reset, write_all};
use crate::shared::Shared;
use crate::slot::Slot;
use crate::target::{Host, Target};

/// The time for which the proxy waits until a refused client closes.
const PARTING: Duration = Duration::from_secs(1);

/// The connection to the destination, and the bytes that the client has already sent for it.
type Opened = (TcpStream, Vec<u8>);

/// Serves a client whose source is allowed.
pub(crate) async fn serve(slot: &Rc<Slot>, entry: Entry, client: TcpStream, from: SocketAddr) {
    // The future of `open` is on the heap and is freed before relaying begins. Thousands of idle
    // connections therefore keep only the state that relaying needs.
    let Some((destination, early)) = Box::pin(open(slot, entry, &client, from)).await else {
        return;
    };
    let shared = &slot.shared;
    let counters = &shared.counters;
    counters.connected.one();
    set_target_rate(shared, &client, &destination);
    match relay(slot, &client, &destination, early).await {
        End::Finished => counters.finished.one(),
        End::Reset => counters.reset.one(),
        End::Idle => counters.idle.one(),
        End::Dead => counters.dead.one(),
    }
}

/// Opens the connection to the destination.
async fn open(
    slot: &Rc<Slot>,
    entry: Entry,
    client: &TcpStream,
    from: SocketAddr,
) -> Option<Opened> {
    if let Err(error) = client.set_nodelay(true) {
        tracing::debug!(%from, %error, "the connection was lost at once");
        return None;
    }
    match entry {
        Entry::Explicit => explicit(slot, client, from).await,
        Entry::Forwarded | Entry::Own => transparent(slot, client, from).await,
    }
}

async fn transparent(slot: &Rc<Slot>, client: &TcpStream, from: SocketAddr) -> Option<Opened> {
    let to = client.local_addr().ok()?;
    let target = Target { host: Host::Address(to.ip()), port: to.port() };
    let connected = tokio::select! {
        connected = connect(slot, from, &target, Source::Client(from)) => connected,
        () = failed(client) => return None,
    };
    match connected {
        Ok(destination) => Some((destination, Vec::new())),
        Err(outcome) => {
            tracing::debug!(%from, %to, ?outcome, "the client was reset");
            reset(client); // a destination that refuses sends a reset, too
            None
        }
    }
}

async fn explicit(slot: &Rc<Slot>, client: &TcpStream, from: SocketAddr) -> Option<Opened> {
    let shared = &slot.shared;
    let mut negotiation = Negotiation::new();
    let asked = tokio::time::timeout(shared.connect_timeout, ask(shared, client, &mut negotiation));
    let target = match asked.await {
        Ok(Ok(Ok(Some(target)))) => target,
        Ok(Ok(Ok(None))) => return None, // the client left without a request
        Ok(Ok(Err(rejection))) => {
            tracing::debug!(%from, %rejection, "the request was refused");
            shared.counters.bad_requests.one();
            part(shared, client).await;
            return None;
        }
        Ok(Err(error)) => {
            tracing::debug!(%from, %error, "the connection was lost before the request");
            return None;
        }
        Err(_elapsed) => {
            shared.counters.silent_clients.one();
            return None;
        }
    };
    let connected = tokio::select! {
        connected = connect(slot, from, &target, Source::Proxy) => connected,
        () = failed(client) => return None,
    };
    let outcome = match &connected {
        Ok(destination) => destination.local_addr().map_or(Outcome::Failed, Outcome::Connected),
        Err(outcome) => *outcome,
    };
    negotiation.answer(outcome);
    tracing::debug!(%from, %target, ?outcome, "the request was answered");
    let answered = tokio::time::timeout(shared.connect_timeout, send(client, &mut negotiation));
    match (connected, answered.await) {
        (Ok(destination), Ok(Ok(()))) => Some((destination, negotiation.into_early_data())),
        (Err(_), Ok(Ok(()))) => {
            part(shared, client).await;
            None
        }
        _ => None,
    }
}

/// Closes a connection after its answer, once the bytes that the client still sends have been read.
/// Closing with unread bytes would send a reset, which can overtake the answer (RFC 9112 section
/// 9.6).
async fn part(shared: &Shared, client: &TcpStream) {
    let drained = async {
        SockRef::from(client).shutdown(Shutdown::Write)?;
        let mut rest = REQUEST_LIMIT;
        while rest > 0 {
            client.readable().await?;
            match client.try_read(&mut shared.buffer.borrow_mut()[..rest]) {
                Ok(0) => break,
                Ok(bytes) => rest -= bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    };
    if let Ok(Err(error)) = tokio::time::timeout(PARTING, drained).await {
        tracing::debug!(%error, "the client left before it read the answer");
    }
}

/// Reads until the client has named its destination. Sends the answers that the protocol needs
/// before that.
async fn ask(
    shared: &Shared,
    client: &TcpStream,
    negotiation: &mut Negotiation,
) -> io::Result<Result<Option<Target>, Rejection>> {
    loop {
        client.readable().await?;
        let progress = {
            let mut buffer = shared.buffer.borrow_mut();
            match client.try_read(&mut buffer[..1024]) {
                Ok(0) => return Ok(Ok(None)),
                Ok(bytes) => negotiation.handle_input(&buffer[..bytes]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error),
            }
        };
        send(client, negotiation).await?;
        match progress {
            Ok(None) => {}
            asked => return Ok(asked),
        }
    }
}

async fn send(client: &TcpStream, negotiation: &mut Negotiation) -> io::Result<()> {
    while let Some(output) = negotiation.poll_transmit() {
        write_all(client, output, |_| ()).await?;
    }
    Ok(())
}

/// Sets the target rate of the connection over the wireless hop. The kernel deletes the rate when
/// the socket is closed.
fn set_target_rate(shared: &Shared, client: &TcpStream, destination: &TcpStream) {
    let (Some(control), Ok(to)) = (&shared.targets, destination.peer_addr()) else { return };
    let Some(rate) = rates::target(&shared.config.rates, to.ip()) else { return };
    let legs = [(shared.destination_algorithm(), destination), (shared.client_algorithm(), client)];
    for (_, leg) in legs.into_iter().filter(|(algorithm, _)| algorithm.is_some()) {
        if let Err(error) = rates::set(control, leg, rate) {
            tracing::warn!(%to, %error, "this connection has no target rate");
        }
    }
}
