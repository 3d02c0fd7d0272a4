//! libbpf's messages.

use std::sync::Once;

use libbpf_rs::{PrintLevel, set_print};

/// Sends libbpf's messages to `tracing` instead of standard error, once per process.
pub(crate) fn quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        set_print(Some((PrintLevel::Info, |_, message| {
            tracing::debug!(target: "libbpf", "{}", message.trim_end());
        })));
    });
}
