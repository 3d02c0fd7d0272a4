//! The `kernel` part of Wakeai.
