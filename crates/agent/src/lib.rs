//! The `agent` part of Wakeai.
