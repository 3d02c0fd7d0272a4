//! The `algorithms` part of Wakeai.
