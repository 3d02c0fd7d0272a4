//! The entry of packets into the BSS, and their way over the air, to the wire and back to the air.

use wakeai_units::Instant;

use super::attempt::{Contender, Path, Receiver};
use super::frames::{Frames, Shape};
use super::{AccessPointState, Wifi};
use crate::node::{Destination, Node, Packet, StationId};

impl<P: Packet> Wifi<P> {
    /// Takes a packet from the host of a station.
    pub(crate) fn enqueue(
        &mut self,
        now: Instant,
        station: usize,
        to: Destination,
        packet: P,
    ) -> Result<(), P> {
        let (link, uplink) = (&self.links[station], &mut self.uplinks[station]);
        let counters = &mut self.base.counters.stations[station];
        counters.offered += 1;
        let shape = Shape::of(link.standard.is_qos(), &packet);
        if let Some(host) = &mut self.hosts[station] {
            let mut gone = self.base.departures.of(Some(station));
            let (flow, bytes) = (packet.flow(), packet.len() as u32);
            host.push(now, flow, bytes, (packet, to, shape), |(packet, ..)| {
                counters.queue_drops += 1;
                gone(&packet, 0, false);
            });
        } else if uplink.waiting >= link.queue {
            counters.queue_drops += 1;
            return Err(packet);
        } else {
            uplink.push(packet, Node::Station(StationId(station as u32)), to, shape);
        }
        let place = self.access_point_of[station] as usize;
        self.contend(self.access_points[place].channel, station, now);
        Ok(())
    }

    pub(crate) fn room(&self, station: usize) -> usize {
        match &self.hosts[station] {
            Some(host) => host.room(),
            None => self.links[station].queue.saturating_sub(self.uplinks[station].waiting),
        }
    }

    pub(crate) fn queued(&self, station: usize) -> usize {
        self.uplinks[station].waiting + self.hosts[station].as_ref().map_or(0, |host| host.packets)
    }

    pub(crate) fn queued_at_access_points(&self) -> usize {
        self.access_points.iter().map(|one| one.queues.waiting).sum()
    }

    /// Makes a contender that got a frame contend for its channel, unless it does already.
    pub(crate) fn contend(&mut self, channel: u32, contender: usize, now: Instant) {
        let channel = &mut self.channels[channel as usize];
        if let Some(partial) = &mut channel.partial {
            partial.request(contender, now, &mut channel.rng);
        } else if !channel.contention.is_active(contender) {
            channel.contention.request(contender, now, &mut channel.rng);
        }
    }

    /// Puts a packet into an access point's queue for a station, or for all its stations.
    pub(crate) fn send_down(
        &mut self,
        at: Instant,
        place: usize,
        from: Node,
        to: Destination,
        packet: P,
    ) {
        let me = Contender::AccessPoint(place).index(self.links.len());
        let (receiver, qos) = match to {
            Destination::Unicast(Node::Station(id)) => {
                (Receiver::Station(id.index()), self.links[id.index()].standard.is_qos())
            }
            // The server never sends to itself.
            Destination::Unicast(Node::Server) | Destination::Broadcast => {
                (Receiver::Everyone, false)
            }
        };
        let shape = Shape::of(qos, &packet);
        let access_point = &mut self.access_points[place];
        let channel = &self.channels[access_point.channel as usize];
        let on_air = channel.attempts_of(me).find_map(|attempt| match attempt.path {
            Path::Down(by, receiver) if by == place => Some((receiver, attempt.psdu.span)),
            Path::Down(..) | Path::Up(_) => None,
        });
        let number = access_point.channel;
        let watched = self.config.radios.then_some(place);
        let gone = self.base.departures.of(watched);
        let dropped = access_point.queues.push(receiver, (packet, from, to, shape), on_air, gone);
        let counters = &mut self.base.counters.access_point;
        counters.offered += 1;
        counters.queue_drops += dropped;
        self.contend(number, me, at);
    }

    /// Hands on the packets that are in order after the outcome of some frames of a queue was
    /// recorded. `gone` is the number of these frames that have left the queue.
    pub(crate) fn handed_on(&mut self, path: Path, station: usize, gone: usize, at: Instant) {
        if let Path::Down(place, receiver) = path {
            self.access_points[place].queues.left(receiver, gone);
        }
        while let Some(frame) =
            queue_mut(&mut self.uplinks, &mut self.access_points, path).release()
        {
            self.arrive(path, station, at, frame.from, frame.to, frame.packet);
        }
    }

    /// Handles a unicast packet that has crossed the air. A packet to a station is delivered, and a
    /// packet to the access point is forwarded.
    pub(crate) fn arrive(
        &mut self,
        path: Path,
        station: usize,
        at: Instant,
        from: Node,
        to: Destination,
        packet: P,
    ) {
        if let Path::Down(..) = path {
            self.base.counters.access_point.delivered += 1;
            self.base.deliver(at, Node::Station(StationId(station as u32)), from, packet);
            return;
        }
        self.base.counters.stations[station].delivered += 1;
        let place = self.access_point_of[station] as usize;
        match to {
            Destination::Unicast(Node::Station(id))
                if self.access_point_of[id.index()] as usize == place =>
            {
                self.send_down(at, place, from, to, packet);
            }
            Destination::Unicast(_) => self.base.send_up(at, station, to, packet),
            Destination::Broadcast => self.send_down(at, place, from, to, packet),
        }
    }

    /// The queue from which an access takes its frames.
    pub(crate) fn queue(&self, path: Path) -> &Frames<P> {
        match path {
            Path::Up(station) => &self.uplinks[station],
            Path::Down(place, receiver) => self.access_points[place].queues.frames(receiver),
        }
    }
}

/// The queue from which an access takes its frames.
pub(crate) fn queue_mut<'a, P: Packet>(
    uplinks: &'a mut [Frames<P>],
    access_points: &'a mut [AccessPointState<P>],
    path: Path,
) -> &'a mut Frames<P> {
    match path {
        Path::Up(station) => &mut uplinks[station],
        Path::Down(place, receiver) => access_points[place].queues.frames_mut(receiver),
    }
}
