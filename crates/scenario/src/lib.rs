//! The `scenario` part of Wakeai.
