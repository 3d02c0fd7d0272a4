//! libbpf's messages and errors.

use std::sync::Once;

use libbpf_rs::{PrintLevel, set_print};

use crate::error::Error;
use crate::features;

/// Sends libbpf's messages to `tracing` instead of standard error, once per process.
pub(crate) fn quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        set_print(Some((PrintLevel::Info, |_, message| {
            tracing::debug!(target: "libbpf", "{}", message.trim_end());
        })));
    });
}

/// Converts libbpf's error for an operation that needs the features `needs`: one of them is missing, or else
/// the kernel refused.
pub(crate) fn explain(asked: &str, needs: &[&str], error: libbpf_rs::Error) -> Error {
    features::detect().why_not(asked, needs).unwrap_or_else(|| Error::refused(asked, error))
}
