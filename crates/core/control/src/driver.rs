//! What drives a [`Controller`]: the agent on a device, and the simulator.

use wakeai_units::{Bytes, Duration, Instant, Rate};

use crate::{Actuation, Connection, Controller};

/// The time between two ticks. The controller decides once per tick.
pub const TICK: Duration = Duration::from_millis(500);

/// The time between two writes of the receive windows while they move. Linux lifts the limit of a window where the receive
/// buffer grows, and what is still in flight after a smaller limit can make it grow. Until the next tick the
/// window could then double several times.
pub const LIMITS_EVERY: Duration = Duration::from_millis(100);

/// What a station's program knows at a tick.
#[derive(Clone, Copy, Debug, Default)]
pub struct StationTick<'a> {
    /// The PHY rate of the data frames that the station sends, where it is known.
    pub link_rate: Option<Rate>,
    /// The station's connections over the Wi-Fi interface.
    pub connections: &'a [Connection],
    /// The bytes that the station's transfers in turns have left; `None` where it has none.
    pub left: Option<Bytes>,
    /// The rate that the station asks its peers to leave free.
    pub reserve: Option<Rate>,
}

impl Controller {
    /// Makes a tick: hands over what is left to transfer, then the reservation, and decides by both. Agent and
    /// simulator make their ticks by this function, so that the order is the same in both.
    pub fn tick(&mut self, now: Instant, station: &StationTick<'_>) -> Actuation {
        if station.left.is_some() {
            self.transfer(now, station.left);
        }
        self.reserve(station.reserve);
        self.handle_tick(now, station.link_rate, station.connections)
    }
}
