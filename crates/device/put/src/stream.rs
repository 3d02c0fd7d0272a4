//! A connection whose answer can still be read after sending has failed.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::error::plain;

/// The error that ended the sending, for messages.
pub(super) type SendError = Arc<OnceLock<String>>;

/// A server that refuses a request may answer and close the connection while the body is still sent (RFC 9112, section
/// 9.5). Then sending fails, and the answer waits in the socket. After such a failure this stream sends nothing more, and
/// its reader gets the answer, or the end of the connection.
#[derive(Debug)]
pub(super) struct PatientStream<S> {
    pub(super) inner: S,
    /// Receives the error that ends the sending.
    pub(super) failed: SendError,
}

impl<S: AsyncWrite + Unpin> PatientStream<S> {
    /// The result of a write. A write that failed stays pending. Nothing wakes its task, which is the reader's, too, and
    /// therefore wakes when there is something to read. A socket that cannot send any more can always be read to its end.
    fn patiently<T>(
        &mut self,
        write: impl FnOnce(Pin<&mut S>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if self.failed.get().is_some() {
            return Poll::Pending;
        }
        match write(Pin::new(&mut self.inner)) {
            Poll::Ready(Err(error)) => {
                let _ = self.failed.set(plain(&error)); // the first error counts
                Poll::Pending
            }
            written => written,
        }
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
        self.patiently(|inner| inner.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.patiently(|inner| inner.poll_write_vectored(context, buffers))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.patiently(|inner| inner.poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
