//! A connection whose answer can still be read after sending has failed.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::error::plain;

/// The error that ended the sending, for messages.
pub(super) type SendError = Arc<OnceLock<String>>;

/// A server that refuses a request may answer and close the connection while the body is still sent (RFC 9112, section
/// 9.5). Then sending fails, and the answer waits in the socket. After such a failure this stream sends nothing more, and
/// its reader gets the answer, or the end of the connection.
#[derive(Debug)]
pub(super) struct PatientStream<S> {
    inner: S,
    failed: SendError,
}

impl<S> PatientStream<S> {
    /// Wraps a connection. `failed` receives the error that ends the sending.
    pub(super) fn new(inner: S, failed: SendError) -> Self {
        Self { inner, failed }
    }

    /// The result of a write. A write that failed stays pending. Nothing wakes its task, which is the reader's, too, and
    /// therefore wakes when there is something to read. A socket that cannot send any more can always be read to its end.
    fn patient<T>(&self, done: io::Result<T>) -> Poll<io::Result<T>> {
        match done {
            Ok(done) => Poll::Ready(Ok(done)),
            Err(error) => {
                let _ = self.failed.set(plain(&error)); // the first error counts
                Poll::Pending
            }
        }
    }

    fn has_failed(&self) -> bool {
        self.failed.get().is_some()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PatientStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PatientStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.has_failed() {
            return Poll::Pending;
        }
        let done = ready!(Pin::new(&mut self.inner).poll_write(context, bytes));
        self.patient(done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.has_failed() {
            return Poll::Pending;
        }
        let done = ready!(Pin::new(&mut self.inner).poll_write_vectored(context, buffers));
        self.patient(done)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.has_failed() {
            return Poll::Pending;
        }
        let done = ready!(Pin::new(&mut self.inner).poll_flush(context));
        self.patient(done)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
