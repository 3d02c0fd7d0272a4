//! Serves one client: reads its request, connects to its destination, and relays between them.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;
use wakeai_daemon::part;

use crate::config::Intercepted;
use crate::negotiation::{Negotiation, Outcome, Rejection};
use crate::outgoing::connect;
use crate::rates;
use crate::relay::{End, failed, relay, set_reset, write_all};
use crate::shared::{Shared, Slot};
use crate::target::{Host, Target};

/// The time for which the proxy waits until a refused client closes, and the most that it reads
/// meanwhile.
const PARTING: Duration = Duration::from_secs(2);
const PARTING_BYTES: usize = 1 << 20;

/// The connection to the destination, and the bytes that the client has already sent for it.
type Opened = (TcpStream, Vec<u8>);

/// Why a client was not connected.
enum Unopened {
    /// The client's connection ended first.
    Left,
    /// A counter has the reason already.
    Counted,
}

/// Serves a client whose source is allowed.
pub(crate) async fn serve(
    slot: &Rc<Slot>,
    intercepted: Option<Intercepted>,
    client: TcpStream,
    from: SocketAddr,
) {
    // The future of `open` is on the heap and is freed before relaying begins. Thousands of idle
    // connections therefore keep only the state that relaying needs.
    let shared = &slot.shared;
    let counters = &shared.counters;
    let (destination, early) = match Box::pin(open(slot, intercepted, &client, from)).await {
        Ok(opened) => opened,
        Err(Unopened::Left) => return counters.left_clients.one(),
        Err(Unopened::Counted) => return,
    };
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
    intercepted: Option<Intercepted>,
    client: &TcpStream,
    from: SocketAddr,
) -> Result<Opened, Unopened> {
    if let Err(error) = client.set_nodelay(true) {
        tracing::debug!(%from, %error, "the connection was lost at once");
        return Err(Unopened::Left);
    }
    match intercepted {
        None => explicit(slot, client, from).await,
        Some(_) => transparent(slot, client, from).await,
    }
}

async fn transparent(
    slot: &Rc<Slot>,
    client: &TcpStream,
    from: SocketAddr,
) -> Result<Opened, Unopened> {
    let to = client.local_addr().map_err(|_| Unopened::Left)?;
    let target = Target { host: Host::Address(to.ip()), port: to.port() };
    let connected = tokio::select! {
        connected = connect(slot, from, &target, Some(from)) => connected,
        () = failed(client) => return Err(Unopened::Left),
    };
    match connected {
        Ok(destination) => Ok((destination, Vec::new())),
        Err(outcome) => {
            tracing::debug!(%from, %to, %outcome, "the client was reset");
            set_reset(client, true); // a destination that refuses sends a reset, too
            Err(Unopened::Counted)
        }
    }
}

async fn explicit(
    slot: &Rc<Slot>,
    client: &TcpStream,
    from: SocketAddr,
) -> Result<Opened, Unopened> {
    let shared = &slot.shared;
    let mut negotiation = Negotiation::default();
    let target = request(shared, client, from, &mut negotiation).await?;
    let connected = tokio::select! {
        connected = connect(slot, from, &target, None) => connected,
        () = failed(client) => return Err(Unopened::Left),
    };
    let outcome = match &connected {
        Ok(destination) => destination.local_addr().map_or(Outcome::Failed, Outcome::Connected),
        Err(outcome) => *outcome,
    };
    negotiation.answer(outcome);
    tracing::debug!(%from, %target, %outcome, "the request was answered");
    let answered =
        timeout(shared.config.connect_timeout.into(), send(client, &mut negotiation)).await;
    let is_answered = matches!(answered, Ok(Ok(())));
    match connected {
        Ok(destination) if is_answered => Ok((destination, negotiation.into_early_data())),
        Ok(_) => Err(Unopened::Left),
        Err(_) => {
            if is_answered {
                part(client, PARTING, PARTING_BYTES).await;
            }
            Err(Unopened::Counted)
        }
    }
}

/// Waits for the client's request.
async fn request(
    shared: &Shared,
    client: &TcpStream,
    from: SocketAddr,
    negotiation: &mut Negotiation,
) -> Result<Target, Unopened> {
    match timeout(shared.config.connect_timeout.into(), ask(shared, client, negotiation)).await {
        Ok(Ok(Ok(target))) => Ok(target),
        Ok(Ok(Err(rejection))) => {
            tracing::debug!(%from, %rejection, "the request was refused");
            shared.counters.bad_requests.one();
            part(client, PARTING, PARTING_BYTES).await;
            Err(Unopened::Counted)
        }
        Ok(Err(error)) => {
            tracing::debug!(%from, %error, "the connection was lost before the request");
            Err(Unopened::Left)
        }
        Err(_elapsed) => {
            shared.counters.silent_clients.one();
            Err(Unopened::Counted)
        }
    }
}

/// Reads until the client has named its destination. Sends the answers that the protocol needs
/// before that.
async fn ask(
    shared: &Shared,
    client: &TcpStream,
    negotiation: &mut Negotiation,
) -> io::Result<Result<Target, Rejection>> {
    loop {
        client.readable().await?;
        let progress = {
            let mut buffer = shared.buffer.borrow_mut();
            match client.try_read(&mut buffer[..1024]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => negotiation.handle_input(&buffer[..bytes]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error),
            }
        };
        send(client, negotiation).await?;
        if let Some(asked) = progress.transpose() {
            return Ok(asked);
        }
    }
}

async fn send(client: &TcpStream, negotiation: &mut Negotiation) -> io::Result<()> {
    while let Some(output) = negotiation.poll_transmit() {
        write_all(client, output, |_| {}).await?;
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
