//! The medium as the air between radios ([`WifiConfig::radios`](super::WifiConfig::radios)): who sends, on which
//! channel, and with which modulation, is the driver's decision.

use rand_core::SeedableRng as _;
use rand_pcg::Pcg64Mcg;
use wakeai_units::Instant;

use super::Wifi;
use super::attempt::{Contender, Path};
use super::channel::Channel;
use super::contention::Contention;
use crate::node::{Destination, Node, Packet, StationId};

impl<P: Packet> Wifi<P> {
    /// Whether it is the air between radios.
    pub(crate) fn has_radios(&self) -> bool {
        self.config.radios
    }

    /// Puts a frame into the queue of a radio.
    pub(crate) fn transmit(&mut self, now: Instant, radio: usize, to: Destination, packet: P) {
        let from = Node::Station(StationId(radio as u32));
        self.send_down(now, radio, from, to, packet);
    }

    /// Moves a radio to the channel with this number, unless it has frames to send.
    pub(crate) fn retune(&mut self, radio: usize, channel: u32) -> bool {
        let current = self.access_points[radio].channel as usize;
        if self.channel_numbers[current] == channel {
            return true;
        }
        let me = Contender::AccessPoint(radio).index(self.links.len());
        if self.channels[current].contention.is_active(me) {
            return false;
        }
        let known = self.channel_numbers.iter().position(|number| *number == channel);
        let place = known.unwrap_or_else(|| self.add_channel(radio, channel));
        self.access_points[radio].channel = place as u32;
        true
    }

    /// Adds an idle channel with the times of a radio's standard.
    fn add_channel(&mut self, radio: usize, number: u32) -> usize {
        let standard = self.config.access_points[radio].bss.standard;
        let is_radio = |contender| contender >= self.links.len();
        let (sifs, slot) = (standard.sifs(), standard.slot());
        let channel = Channel {
            contention: Contention::new(sifs, slot, &self.rules, is_radio),
            on_air: Vec::new(),
            busy_until: None,
            reception: None,
            quiet_since: self.base.clock,
            partial: None,
            rng: Pcg64Mcg::from_rng(&mut self.channels[0].rng),
        };
        self.channel_numbers.push(number);
        self.channels.push(channel);
        self.channels.len() - 1
    }

    /// The frames that a radio keeps.
    pub(crate) fn kept_by(&self, radio: usize) -> usize {
        self.access_points[radio].queues.waiting
    }

    /// The access point at one end of a path.
    pub(crate) fn place_of(&self, path: Path, station: usize) -> usize {
        match path {
            Path::Down(place, _) => place,
            Path::Up(_) => self.access_point_of[station] as usize,
        }
    }

    /// The share of damaged frames on a path. Between radios it is that of the worse one.
    pub(crate) fn frame_error_ppm(&self, path: Path, station: usize) -> u32 {
        let own = self.links[station].frame_error_ppm;
        match path {
            Path::Down(radio, _) if self.config.radios => {
                own.max(self.links[radio].frame_error_ppm)
            }
            Path::Down(..) | Path::Up(_) => own,
        }
    }

    /// The index under which a contender's departures may be watched.
    pub(crate) fn watched(&self, sender: Contender) -> Option<usize> {
        match sender {
            Contender::Station(station) => Some(station),
            Contender::AccessPoint(radio) => self.config.radios.then_some(radio),
        }
    }

    /// Gives a station's link the modulation that the sender of the next frame on `path` has chosen, and returns the
    /// number of frames that may be aggregated.
    pub(crate) fn modulate(&mut self, path: Path, station: usize) -> usize {
        let Some((modulation, alike)) = self.queue(path).modulation() else { return usize::MAX };
        if self.modulations[station] != Some(modulation) {
            let bss = &self.config.access_points[self.place_of(path, station)].bss;
            self.links[station] = self.links[station].modulated(modulation, bss);
            self.modulations[station] = Some(modulation);
        }
        alike
    }

    /// Records an access of a contender without an answer. A frame that was given up after its own number of attempts
    /// ends the doubling of the window, as the retry limit does (802.11-2020 10.3.3).
    pub(crate) fn fail_backoff(&mut self, number: usize, sender: Contender, given_up: usize) {
        let (radios, index) = (self.config.radios, sender.index(self.links.len()));
        let backoff = self.channels[number].contention.backoff(index);
        if radios && given_up > 0 {
            backoff.succeeded();
        } else if radios {
            backoff.widen();
        } else {
            backoff.failed();
        }
    }
}
