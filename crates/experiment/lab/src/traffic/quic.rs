//! QUIC flows, which quinn carries: a client at the sender and a server at the receiver, with a stream.
//!
//! Each end is a thread with an event loop of its own in its host's namespace. The server's certificate is made for the
//! flow, and the client accepts no other. Congestion control, pacing and loss detection are quinn's, with its defaults.

use std::io;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use quinn::congestion::{ControllerFactory, CubicConfig, NewRenoConfig};
use quinn::{ClientConfig, Endpoint, EndpointConfig, ServerConfig, TokioRuntime, TransportConfig};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use tokio::sync::watch;
use wakeai_connection::{EventKind, Figures};
use wakeai_units::{Bytes, Duration, Instant, Segments};
use wakeai_world::flows::{Share, Writing};
use wakeai_world::{ReceiverMeter, SenderMeter};

use super::transfer::{BLOCK_BYTES, ENDLESS, broke_off};
use super::{FlowPlan, TrafficKind};
use crate::clock;
use crate::error::LabError;
use crate::host::Host;

/// The name in the certificate.
const NAME: &str = "wakeai";
/// The bytes of a stream in a full packet: quinn's datagram of 1452 bytes less the headers of a packet and of a frame,
/// and the tag of the encryption.
const SEGMENT: Bytes = Bytes::new(1_419);
/// The time between two looks at the sender's figures.
const SAMPLE_INTERVAL: std::time::Duration = std::time::Duration::from_millis(2);
/// The stack of a thread. The handshake needs more than the threads of TCP flows have.
const STACK_BYTES: usize = 1 << 20;

/// One flow, with a thread at each end.
#[derive(Debug)]
pub(crate) struct QuicTransfer {
    station: String,
    flow: u32,
    stop: watch::Sender<bool>,
    /// When the sender began.
    begun: Arc<OnceLock<Instant>>,
    sender: JoinHandle<(Vec<Sample>, io::Result<()>)>,
    receiver: JoinHandle<(ReceiverMeter, io::Result<()>)>,
}

/// What quinn knew of a connection at one moment.
#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Instant,
    figures: Figures,
    /// Packets that were lost, and reductions of the window, since the last sample.
    lost: u64,
    reductions: u64,
}

impl QuicTransfer {
    /// Prepares both ends. The connection is opened at the flow's start. `meter` counts the received bytes.
    pub(crate) fn start(
        plan: &FlowPlan,
        mut meter: ReceiverMeter,
        from: &Host,
        to: &Host,
    ) -> Result<Self, LabError> {
        let TrafficKind::Quic(size) = plan.kind else { unreachable!("the others are not QUIC's") };
        let failed = |action: &str| LabError::system(format!("{action} for {}", from.name));
        let ends = ends(plan.algorithm.as_deref()).map_err(failed("prepare QUIC"))?;
        let (start, address) = (meter.start(), SocketAddrV4::new(plan.to, plan.port));
        let (stop, stopped) = watch::channel(false);
        let listener = to.namespace.run(|| UdpSocket::bind(address))?.map_err(failed("listen"))?;
        let (server, mut stops) = (ends.server, stopped.clone());
        let receive = move || {
            let result = run(receive(listener, server, &mut stops, &mut meter));
            (meter, result)
        };
        let receiver = thread().spawn(receive).map_err(failed("start a thread"))?;
        // A socket belongs to the namespace of the thread that creates it.
        let own = SocketAddrV4::new(plan.from, 0);
        let socket =
            from.namespace.run(|| UdpSocket::bind(own))?.map_err(failed("open a socket"))?;
        let begun = Arc::new(OnceLock::new());
        let (begins, client, mut stops) = (Arc::clone(&begun), ends.client, stopped);
        let writing = plan.limit.map(|limit| Writing::new(limit, SEGMENT));
        let send_all = move || {
            clock::sleep_until(start);
            let _ = begins.set(clock::now()); // it is set only here
            let mut samples = Vec::new();
            let data = Data { start, size, writing };
            let result = run(send(socket, client, address.into(), &data, &mut stops, &mut samples));
            (samples, result)
        };
        let sender = thread().spawn(send_all).map_err(failed("start a thread"))?;
        let (station, flow) = (from.name.clone(), plan.index as u32);
        Ok(Self { station, flow, stop, begun, sender, receiver })
    }

    /// When the sender began.
    pub(crate) fn begun(&self) -> Option<Instant> {
        self.begun.get().copied()
    }

    /// Whether the receiver has received everything, or has failed.
    pub(crate) fn is_finished(&self) -> bool {
        self.receiver.is_finished()
    }

    /// Ends the flow if it still runs.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Ends the flow if it still runs, and returns the meter and the figures of the sender.
    pub(crate) fn collect(self) -> Result<(ReceiverMeter, Sampled), LabError> {
        self.stop();
        let failed = |reason: &str| LabError::child("the QUIC flow", &self.station, reason);
        let (meter, arrived) = self.receiver.join().map_err(|_| failed("its receiver panicked"))?;
        let (samples, sent) = self.sender.join().map_err(|_| failed("its sender panicked"))?;
        for error in [sent.err(), arrived.err()].into_iter().flatten() {
            if !broke_off(&error) {
                return Err(failed(&error.to_string()));
            }
            tracing::warn!(station = self.station, %error, "a flow broke off");
        }
        Ok((meter, Sampled { flow: self.flow, samples }))
    }
}

/// The samples of a flow's sender.
#[derive(Debug)]
pub(crate) struct Sampled {
    flow: u32,
    samples: Vec<Sample>,
}

impl Sampled {
    /// Hands the samples to the meter of all senders.
    pub(crate) fn count(&self, meter: &mut SenderMeter) {
        let place = (self.flow, 0);
        for Sample { at, figures, lost, reductions } in &self.samples {
            meter.sample(*at, place, *figures);
            for _ in 0..*lost {
                meter.event(*at, place, EventKind::Retransmit, figures.cwnd);
            }
            for _ in 0..*reductions {
                let error = EventKind::Error(wakeai_connection::ErrorCode::DuplicateAck);
                meter.event(*at, place, error, figures.cwnd);
            }
        }
    }
}

fn thread() -> std::thread::Builder {
    std::thread::Builder::new().name("quic".to_owned()).stack_size(STACK_BYTES)
}

/// The configurations of the two ends.
struct Ends {
    server: ServerConfig,
    client: ClientConfig,
}

/// The ends of a flow with this congestion control.
fn ends(algorithm: Option<&str>) -> io::Result<Ends> {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).map_err(io::Error::other)?;
    let certificate: CertificateDer<'static> = made.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let server = ServerConfig::with_single_cert(vec![certificate.clone()], key.into());
    let mut roots = RootCertStore::empty();
    roots.add(certificate).map_err(io::Error::other)?;
    let client = ClientConfig::with_root_certificates(Arc::new(roots));
    let mut client = client.map_err(io::Error::other)?;
    let control: Arc<dyn ControllerFactory + Send + Sync> = match algorithm {
        Some("reno") => Arc::new(NewRenoConfig::default()),
        _ => Arc::new(CubicConfig::default()),
    };
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(control);
    client.transport_config(Arc::new(transport));
    Ok(Ends { server: server.map_err(io::Error::other)?, client })
}

/// Runs one end in an event loop of its own.
fn run(end: impl Future<Output = io::Result<()>>) -> io::Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(end)
}

/// Waits for `event`; `None` where the run is over before.
async fn until<T>(stop: &mut watch::Receiver<bool>, event: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        _ = stop.wait_for(|stop| *stop) => None,
        happened = event => Some(happened),
    }
}

/// Receives the stream of one connection to its end.
async fn receive(
    socket: UdpSocket,
    server: ServerConfig,
    stop: &mut watch::Receiver<bool>,
    meter: &mut ReceiverMeter,
) -> io::Result<()> {
    let runtime = Arc::new(TokioRuntime);
    let endpoint = Endpoint::new(EndpointConfig::default(), Some(server), socket, runtime)?;
    let Some(Some(incoming)) = until(stop, endpoint.accept()).await else { return Ok(()) };
    let Some(connection) = until(stop, incoming.into_future()).await else { return Ok(()) };
    let connection = connection?;
    let Some(stream) = until(stop, connection.accept_uni()).await else { return Ok(()) };
    let (mut stream, mut buffer) = (stream?, vec![0; BLOCK_BYTES]);
    loop {
        match until(stop, stream.read(&mut buffer)).await {
            None => return Ok(()),
            Some(Ok(Some(count))) => {
                meter.on_received(clock::now(), count as u64);
            }
            Some(Ok(None)) => break,
            Some(Err(error)) => return Err(error.into()),
        }
    }
    // The sender closes the connection once the last acknowledgement has arrived.
    until(stop, connection.closed()).await;
    Ok(())
}

/// What the sending application has.
struct Data {
    start: Instant,
    size: Option<Bytes>,
    /// The times at which it writes; `None` where it writes everything at once.
    writing: Option<Writing>,
}

/// Opens a connection and sends the stream.
async fn send(
    socket: UdpSocket,
    client: ClientConfig,
    to: SocketAddr,
    data: &Data,
    stop: &mut watch::Receiver<bool>,
    samples: &mut Vec<Sample>,
) -> io::Result<()> {
    let endpoint = Endpoint::new(EndpointConfig::default(), None, socket, Arc::new(TokioRuntime))?;
    let connecting = endpoint.connect_with(client, to, NAME).map_err(io::Error::other)?;
    let Some(connection) = until(stop, connecting).await else { return Ok(()) };
    let connection = connection?;
    let sent = tokio::select! {
        sent = until(stop, write_all(&connection, data)) => sent,
        () = sample(&connection, samples) => None,
    };
    connection.close(0_u32.into(), b"");
    // The message of the close leaves before the event loop ends.
    let closing = tokio::time::timeout(SAMPLE_INTERVAL, endpoint.wait_idle());
    let _ = closing.await;
    sent.unwrap_or(Ok(()))
}

/// Writes the data, and waits until the receiver has acknowledged it.
async fn write_all(connection: &quinn::Connection, data: &Data) -> io::Result<()> {
    let mut stream = connection.open_uni().await?;
    let block = vec![0; BLOCK_BYTES];
    let size = data.size.unwrap_or(ENDLESS);
    let share = Share { before: Bytes::ZERO, size: data.size };
    let mut written = Bytes::ZERO;
    while written < size {
        let offered = match &data.writing {
            None => size,
            Some(writing) => writing.written(share, clock::now().saturating_since(data.start)),
        };
        while written < offered {
            let length = offered.saturating_sub(written).get().min(block.len() as u64) as usize;
            written += Bytes::new(stream.write(&block[..length]).await? as u64);
        }
        let next = data.writing.and_then(|writing| writing.next_write(share, written));
        if let Some(next) = next {
            let wait = (data.start + next).saturating_since(clock::now());
            tokio::time::sleep(wait.into()).await;
        }
    }
    stream.finish().map_err(io::Error::other)?;
    stream.stopped().await.map_err(io::Error::other)?;
    Ok(())
}

/// Takes a sample whenever acknowledgements have arrived, at most one per [`SAMPLE_INTERVAL`].
async fn sample(connection: &quinn::Connection, samples: &mut Vec<Sample>) {
    let mut every = tokio::time::interval(SAMPLE_INTERVAL);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let (mut acks, mut lost, mut reductions) = (0, 0, 0);
    loop {
        every.tick().await;
        let stats = connection.stats();
        if std::mem::replace(&mut acks, stats.frame_rx.acks) == stats.frame_rx.acks {
            continue;
        }
        let path = stats.path;
        let rtt = u64::try_from(path.rtt.as_nanos()).map_or(Duration::ZERO, Duration::from_nanos);
        let mtu = u64::from(path.current_mtu.max(1));
        let window = u32::try_from(path.cwnd / mtu).unwrap_or(u32::MAX);
        samples.push(Sample {
            at: clock::now(),
            figures: Figures {
                cwnd: Segments::new(window),
                latest_rtt: Some(rtt),
                smoothed_rtt: Some(rtt),
                mss: SEGMENT,
                ..Figures::default()
            },
            lost: path.lost_packets - std::mem::replace(&mut lost, path.lost_packets),
            reductions: path.congestion_events
                - std::mem::replace(&mut reductions, path.congestion_events),
        });
    }
}
