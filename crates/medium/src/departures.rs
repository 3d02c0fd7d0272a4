//! Who wants to know when packets leave a host's queue.

use std::collections::VecDeque;

use crate::access::Contender;
use crate::medium::Wifi;
use crate::node::{Packet, StationId};

/// A packet that its station keeps no longer: it has arrived, was given up, or was dropped by a queue
/// that had taken it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure<P> {
    /// Whose it was.
    pub station: StationId,
    /// The packet.
    pub packet: P,
}

/// Departures of the stations that are watched.
#[derive(Clone, Debug)]
pub(crate) struct Departures<P> {
    watched: Vec<bool>,
    seen: VecDeque<Departure<P>>,
}

impl<P: Packet> Departures<P> {
    pub(crate) fn new(stations: usize) -> Self {
        Self { watched: vec![false; stations], seen: VecDeque::new() }
    }

    /// From now on this station's packets are told of.
    pub(crate) fn watch(&mut self, station: StationId) {
        if let Some(watched) = self.watched.get_mut(station.index()) {
            *watched = true;
        }
    }

    /// The next packet that has left the queue of a watched station.
    pub(crate) fn poll(&mut self) -> Option<Departure<P>> {
        self.seen.pop_front()
    }

    /// What hears of the packets that leave the queue of `sender`.
    pub(crate) fn of(&mut self, sender: Contender) -> impl FnMut(&P) {
        let watched = match sender {
            Contender::Station(station) if self.watched[station] => Some(StationId(station as u32)),
            Contender::Station(_) | Contender::AccessPoint => None,
        };
        move |packet| {
            if let Some(station) = watched {
                self.seen.push_back(Departure { station, packet: packet.clone() });
            }
        }
    }
}

impl<P: Packet> Wifi<P> {
    /// From now on [`Wifi::poll_departure`] tells when packets leave this station's queue, as a
    /// driver tells its host when frames were transmitted.
    pub fn watch_departures(&mut self, station: StationId) {
        self.departures.watch(station);
    }

    /// The next packet that has left the queue of a watched station: at the time of the
    /// [`Wifi::handle_timeout`] that it is polled after, in order.
    pub fn poll_departure(&mut self) -> Option<Departure<P>> {
        self.departures.poll()
    }
}
