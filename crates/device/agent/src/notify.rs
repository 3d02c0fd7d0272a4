//! Notifications to systemd (`sd_notify(3)`). Without systemd they have no effect.

use sd_notify::NotifyState;

/// Sends the states in one message. A failure is only logged, because the agent does not depend on
/// systemd.
pub(crate) fn send(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "systemd was not notified");
    }
}

/// Reports that the agent is ready.
pub(crate) fn ready(status: &str) {
    send(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// Reports that the agent is undoing its changes and will end.
pub(crate) fn stopping() {
    send(&[NotifyState::Stopping, NotifyState::Status("undoing all changes")]);
}
