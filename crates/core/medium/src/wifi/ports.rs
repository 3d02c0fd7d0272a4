//! The entry of packets into the BSS, and their way over the air, to the wire and back to the air.

use wakeai_units::Instant;

use super::Wifi;
use super::access_point::AccessPoint;
use super::attempt::{Contender, Path, Receiver};
use super::frames::{Frames, Shape};
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
                gone(&packet);
            });
        } else if uplink.waiting >= link.queue {
            counters.queue_drops += 1;
            return Err(packet);
        } else {
            uplink.push(packet, Node::Station(StationId(station as u32)), to, shape);
        }
        if !self.contention.is_active(station) {
            self.contention.request(station, now, &mut self.rng);
        }
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

    pub(crate) fn queued_at_access_point(&self) -> usize {
        self.access_point.waiting
    }

    /// Puts a packet into the access point's queue for a station, or for all stations.
    pub(crate) fn send_down(&mut self, at: Instant, from: Node, to: Destination, packet: P) {
        let me = Contender::AccessPoint.index(self.links.len());
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
        let on_air = self.on_air.iter().find_map(|attempt| match attempt.path {
            Path::Down(receiver) => Some((receiver, attempt.psdu.span)),
            Path::Up(_) => None,
        });
        let dropped = self.access_point.push(receiver, (packet, from, to, shape), on_air);
        let counters = &mut self.base.counters.access_point;
        counters.offered += 1;
        counters.queue_drops += dropped;
        if !self.contention.is_active(me) {
            self.contention.request(me, at, &mut self.rng);
        }
    }

    /// Hands on the packets that are in order after the outcome of some frames of a queue was
    /// recorded. `gone` is the number of these frames that have left the queue.
    pub(crate) fn handed_on(&mut self, path: Path, station: usize, gone: usize, at: Instant) {
        if let Path::Down(receiver) = path {
            self.access_point.left(receiver, gone);
        }
        while let Some(frame) = queue_mut(&mut self.uplinks, &mut self.access_point, path).release()
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
        if let Path::Down(_) = path {
            self.base.counters.access_point.delivered += 1;
            self.base.deliver(at, Node::Station(StationId(station as u32)), from, packet);
            return;
        }
        self.base.counters.stations[station].delivered += 1;
        match to {
            Destination::Unicast(Node::Server) => self.base.send_to_server(at, station, packet),
            Destination::Unicast(Node::Station(_)) | Destination::Broadcast => {
                self.send_down(at, from, to, packet);
            }
        }
    }

    /// The queue from which an access takes its frames.
    pub(crate) fn queue(&self, path: Path) -> &Frames<P> {
        match path {
            Path::Up(station) => &self.uplinks[station],
            Path::Down(receiver) => self.access_point.frames(receiver),
        }
    }
}

/// The queue from which an access takes its frames.
pub(crate) fn queue_mut<'a, P>(
    uplinks: &'a mut [Frames<P>],
    access_point: &'a mut AccessPoint<P>,
    path: Path,
) -> &'a mut Frames<P> {
    match path {
        Path::Up(station) => &mut uplinks[station],
        Path::Down(receiver) => access_point.frames_mut(receiver),
    }
}
