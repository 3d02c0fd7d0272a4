//! The `control` part of Wakeai.
