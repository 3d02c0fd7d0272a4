//! The event loop of a daemon, its signals, and what systemd learns of it (`sd_notify(3)`).

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::Poll;

use sd_notify::NotifyState;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

/// An event loop in the calling thread. It starts at most `blocking` threads for what blocks.
///
/// # Errors
///
/// The kernel refuses, for example because no file descriptor is left.
pub fn event_loop(blocking: usize) -> io::Result<Runtime> {
    Builder::new_current_thread().enable_io().enable_time().max_blocking_threads(blocking).build()
}

/// Waits for `SIGTERM` or `SIGINT`.
///
/// # Errors
///
/// The kernel refuses a signal handler.
pub async fn terminated() -> io::Result<()> {
    let (mut terminate, mut interrupt) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

/// Polls `shutdown` once, so that its signal handlers are installed. Returns whether it is ready.
pub async fn is_over(mut shutdown: Pin<&mut impl Future<Output = ()>>) -> bool {
    poll_fn(|context| Poll::Ready(shutdown.as_mut().poll(context).is_ready())).await
}

/// Sends the states to systemd in one message. Without systemd this has no effect. A failure is only logged, because
/// no daemon depends on systemd.
pub fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "systemd was not notified");
    }
}
