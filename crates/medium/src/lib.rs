//! The `medium` part of Wakeai.
