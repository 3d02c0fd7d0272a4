//! The `host` part of Wakeai.
