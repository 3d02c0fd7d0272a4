//! Wi-Fi and a cellular link as one type, for drivers that run whichever of them a scenario has.

use rand_pcg::Pcg64Mcg;
use wakeai_units::{Duration, Instant, Rate};

use crate::base::{Base, Departure};
use crate::cellular::{Cellular, CellularConfig};
use crate::counters::Counters;
use crate::error::ConfigError;
use crate::node::{Arrival, Delivery, Destination, Node, Packet, StationId};
use crate::wifi::{Wifi, WifiConfig};

/// The configuration of a [`Medium`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MediumConfig {
    /// An 802.11 BSS.
    Wifi(WifiConfig),
    /// A cellular base station.
    Cellular(CellularConfig),
}

impl MediumConfig {
    /// The number of stations.
    pub fn stations(&self) -> usize {
        match self {
            Self::Wifi(config) => config.stations.len(),
            Self::Cellular(config) => config.stations.len(),
        }
    }
}

/// Stations, the air that they share, their access point (a base station on a cellular link) and
/// the wired leg to the server.
///
/// Order of calls: [`Medium::enqueue`] and the setters at any time, with `now` never going back;
/// [`Medium::handle_timeout`] when [`Medium::next_timeout`] has come, or later; after that,
/// [`Medium::poll_delivery`] or [`Medium::poll_arrival`] until it gives `None`.
///
/// A late `handle_timeout` delays no event: each event happens at its own virtual instant. Only a
/// packet that is enqueued late is late.
#[derive(Clone, Debug)]
pub struct Medium<P> {
    air: Air<P>,
}

#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one of them per run")]
enum Air<P> {
    Wifi(Wifi<P>),
    Cellular(Cellular<P>),
}

/// Evaluates `$use` with `$medium`, which is either kind of medium.
macro_rules! either {
    ($air:expr, $medium:ident => $use:expr) => {
        match $air {
            Air::Wifi($medium) => $use,
            Air::Cellular($medium) => $use,
        }
    };
}

/// A setting of a station that can change during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The extra wired delay, each way, for the packets that leave from now on. It is at most an hour. Packets of
    /// one station and direction never overtake each other.
    WiredDelay(Duration),
    /// The PHY rate for the frames that start from now on, to the station and from it.
    Rate(Rate),
    /// The share of damaged MPDUs (frames within an aggregate), in parts per million. It holds for
    /// the frames to the station and from it that end from now on.
    FrameErrorPpm(u32),
}

impl<P: Packet> Medium<P> {
    /// An idle medium at [`Instant::ZERO`]. `rng` gives every backoff and every frame error of
    /// Wi-Fi, and the losses of the wire: the same seed and the same calls give the same run. Nothing
    /// else is random on a cellular link.
    ///
    /// # Errors
    ///
    /// Fails where a value is out of its range, where the standard does not have the rate, or where
    /// a station's standard does not fit its access point's.
    pub fn new(config: &MediumConfig, rng: Pcg64Mcg) -> Result<Self, ConfigError> {
        let air = match config {
            MediumConfig::Wifi(config) => Air::Wifi(Wifi::new(config, rng)?),
            MediumConfig::Cellular(config) => Air::Cellular(Cellular::new(config, &rng)?),
        };
        Ok(Self { air })
    }

    fn base(&self) -> &Base<P> {
        either!(&self.air, medium => &medium.base)
    }

    fn base_mut(&mut self) -> &mut Base<P> {
        either!(&mut self.air, medium => &mut medium.base)
    }

    /// Takes a packet from a node's host.
    ///
    /// The packet is only queued. A `now` before the last event counts as the time of that event. A
    /// broadcast on a cellular link reaches no station, and its sender gets no error.
    ///
    /// # Errors
    ///
    /// Returns the packet itself where the sender's queue is a full FIFO (counted as a queue drop).
    /// It also returns the packet where the packet is longer than `MAX_PACKET`, where an end does
    /// not exist, and where both ends are the same node (counted as refused).
    pub fn enqueue(
        &mut self,
        now: Instant,
        from: Node,
        to: Destination,
        packet: P,
    ) -> Result<(), P> {
        let is_cellular = matches!(self.air, Air::Cellular(_));
        let base = self.base_mut();
        if is_cellular && to == Destination::Broadcast && base.exists(from) {
            base.counters.unheard_broadcasts += 1;
            return Ok(());
        }
        let packet = base.admit(from, to, packet)?;
        let now = now.max(base.clock);
        match from {
            Node::Server => base.send_from_server(now, to, packet),
            Node::Station(id) => {
                either!(&mut self.air, medium => medium.enqueue(now, id.index(), to, packet))
            }
        }
    }

    /// Puts a frame into the queue of a radio of [`WifiConfig::radios`]. What becomes of it is told by
    /// [`Self::poll_departure`], where the radio is watched. Its receiver has to be on the radio's channel; a broadcast is
    /// delivered to the stations of every channel, among which the driver chooses.
    ///
    /// # Panics
    ///
    /// The medium has no radios, or no radio or receiver with this index.
    pub fn transmit(&mut self, now: Instant, radio: StationId, to: Destination, packet: P) {
        let now = now.max(self.base().clock);
        self.radios().transmit(now, radio.index(), to, packet);
    }

    /// Moves a radio to the channel with this number. Returns whether it is there: a radio with frames stays where it
    /// is until they are gone.
    ///
    /// # Panics
    ///
    /// As [`Self::transmit`].
    pub fn retune(&mut self, radio: StationId, channel: u32) -> bool {
        self.radios().retune(radio.index(), channel)
    }

    /// The number of frames that a radio keeps, those on the air included.
    ///
    /// # Panics
    ///
    /// As [`Self::transmit`].
    pub fn kept_by(&mut self, radio: StationId) -> usize {
        self.radios().kept_by(radio.index())
    }

    fn radios(&mut self) -> &mut Wifi<P> {
        match &mut self.air {
            Air::Wifi(wifi) if wifi.has_radios() => wifi,
            Air::Wifi(_) | Air::Cellular(_) => panic!("the medium has no radios"),
        }
    }

    /// The number of packets that the queue of `from` still takes without a drop, as of the last
    /// event. A station has a queue of its own, and the server has the queue of the wired leg.
    /// Where the limit is in bytes, the number is of packets of 1500 bytes.
    pub fn room(&self, from: Node) -> usize {
        let base = self.base();
        match from {
            Node::Server => base.room(),
            Node::Station(id) if base.exists(from) => {
                either!(&self.air, medium => medium.room(id.index()))
            }
            Node::Station(_) => 0,
        }
    }

    /// The number of packets in the queue of `from`, as of the last event. A station has a queue of
    /// its own, and the server has the queue of the wired leg.
    pub fn queued(&self, from: Node) -> usize {
        let base = self.base();
        match from {
            Node::Server => base.queued_at_server(),
            Node::Station(id) if base.exists(from) => {
                either!(&self.air, medium => medium.queued(id.index()))
            }
            Node::Station(_) => 0,
        }
    }

    /// Packets in the access points' queues for the air, over all stations.
    pub fn queued_at_access_point(&self) -> usize {
        either!(&self.air, medium => medium.queued_at_access_points())
    }

    /// Packets in the access points' queues for the wire, as of the last event.
    pub fn queued_for_server(&self) -> usize {
        self.base().queued_for_server()
    }

    /// The number of packets between their sender and [`Medium::poll_delivery`]: in a queue, on the
    /// air, in a reorder buffer, or on the wire.
    pub fn packets_inside(&self) -> usize {
        either!(&self.air, medium => medium.packets()) + self.base().packets()
    }

    /// Lets [`Medium::poll_departure`] give the packets that leave this station's queue from now
    /// on. A driver informs its host of transmitted frames in the same way.
    pub fn watch_departures(&mut self, station: StationId) {
        self.base_mut().departures.watch(station);
    }

    /// The next packet that has left the queue of a watched station, in order. The packet has
    /// arrived, was given up, or was dropped by the queue after [`Medium::enqueue`] had accepted
    /// it.
    pub fn poll_departure(&mut self) -> Option<Departure<P>> {
        self.base_mut().departures.seen.pop_front()
    }

    /// Handles all events that are due at or before `now`, in order.
    pub fn handle_timeout(&mut self, now: Instant) {
        either!(&mut self.air, medium => medium.handle_timeout(now));
    }

    /// The next packet that has arrived, in the order of arrival. A broadcast is given for each of its
    /// receivers, in the order of the stations.
    pub fn poll_delivery(&mut self) -> Option<Delivery<P>> {
        self.base_mut().poll_delivery()
    }

    /// The next packet that has arrived, in the order of arrival. A broadcast is given once, with all of
    /// its receivers. A driver calls either this or [`Medium::poll_delivery`].
    pub fn poll_arrival(&mut self) -> Option<Arrival<P>> {
        self.base_mut().arrivals.pop_front()
    }

    /// The time of the next event, provided that nothing is enqueued before. One of the events is
    /// that the server's full queue has room again. The time is in the past where
    /// [`Medium::handle_timeout`] is overdue.
    pub fn next_timeout(&self) -> Option<Instant> {
        either!(&self.air, medium => medium.next_event().map(|(at, _)| at))
    }

    /// The counters as of the last event. A cellular link has no contention, so it has no accesses,
    /// attempts or failures. Its airtime is the sum of both directions, and is updated at the end
    /// of each transmission time interval.
    pub fn counters(&self) -> &Counters {
        &self.base().counters
    }

    /// Changes a setting of a station.
    ///
    /// # Errors
    ///
    /// Fails where the station or the value does not exist, and where the link is cellular, unless the change is
    /// of the delay: there all stations share the cell's rates, and nothing is lost on the air.
    pub fn change(&mut self, station: StationId, change: Change) -> Result<(), ConfigError> {
        match change {
            Change::WiredDelay(delay) => self.base_mut().set_wired_delay(station, delay),
            Change::Rate(rate) => {
                self.wifi("rate")?.change(station, |config| config.radio.rate = rate)
            }
            Change::FrameErrorPpm(ppm) => {
                let wifi = self.wifi("frame_error_rate")?;
                wifi.change(station, |config| config.frame_error_ppm = ppm)
            }
        }
    }

    /// The Wi-Fi medium. On a cellular link the result is an error that names the key `what`.
    fn wifi(&mut self, what: &'static str) -> Result<&mut Wifi<P>, ConfigError> {
        match &mut self.air {
            Air::Wifi(wifi) => Ok(wifi),
            Air::Cellular(_) => Err(ConfigError::Cellular(what)),
        }
    }
}
