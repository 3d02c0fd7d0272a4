//! What systemd is told (`sd_notify(3)`); without systemd it goes nowhere.

use sd_notify::NotifyState;

/// Whether systemd wants to hear that the loop turns, and how often at least.
pub(crate) fn watchdog() -> Option<std::time::Duration> {
    sd_notify::watchdog_enabled()
}

/// Sends the states, all at once. A failure is logged: the agent's work does not depend on it.
pub(crate) fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "systemd was not told");
    }
}

/// The agent works.
pub(crate) fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// The agent restores everything and ends.
pub(crate) fn stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("putting everything back")]);
}
