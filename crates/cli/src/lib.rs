//! The `cli` part of Wakeai.
