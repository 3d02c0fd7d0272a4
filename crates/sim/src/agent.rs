//! A station's agent: the controller, and what its driver keeps.

use wakeai_connection::SocketBounds;
use wakeai_control::{Actuation, Connection, Controller};
use wakeai_units::{Instant, Rate};

use crate::announcing::Announcing;

/// A running agent.
pub(crate) struct Agent {
    pub(crate) controller: Controller,
    /// Whether it bounds connections, or only observes them.
    binds: bool,
    link_rate: Option<Rate>,
    announcing: Option<Announcing>,
    /// The bounds of a connection that begins before the next tick.
    default: SocketBounds,
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent").field("default", &self.default).finish_non_exhaustive()
    }
}

impl Agent {
    pub(crate) fn new(
        controller: Controller,
        binds: bool,
        link_rate: Option<Rate>,
        announcing: Option<Announcing>,
    ) -> Self {
        Self { controller, binds, link_rate, announcing, default: SocketBounds::NONE }
    }

    /// The presence message that is due, as the peers are to hear it.
    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<Vec<u8>> {
        let message = self.controller.poll_transmit(now)?;
        Some(match &self.announcing {
            Some(announcing) => announcing.instead_of(&message),
            None => message,
        })
    }

    /// The driver tells another PHY rate from now on.
    pub(crate) fn set_link_rate(&mut self, rate: Rate) {
        self.link_rate = Some(rate);
    }

    /// What a connection that begins now is bound by.
    pub(crate) fn default_bounds(&self) -> SocketBounds {
        self.default
    }

    /// Decides until the next tick. Gives the bounds of every boundable connection of `own`, in its
    /// order.
    pub(crate) fn tick(&mut self, now: Instant, own: &[Connection]) -> Vec<(u64, SocketBounds)> {
        let Actuation { sockets, default } = self.controller.handle_tick(now, self.link_rate, own);
        while self.controller.poll_event().is_some() {}
        if !self.binds {
            return Vec::new();
        }
        self.default = default;
        // Both are in the order of the connections.
        let mut sockets = sockets.into_iter().peekable();
        let mut of = |id| sockets.next_if(|(own, _)| *own == id).map_or(default, |(_, part)| part);
        let boundable = own.iter().filter(|one| one.boundable).map(|one| one.id);
        boundable.map(|id| (id, of(id))).collect()
    }
}
