//! The `lab` part of Wakeai.
