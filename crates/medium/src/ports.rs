//! Ports: how packets come in, go from leg to leg, and out.

use wakeai_units::{Duration, Instant};

use crate::access::{Attempt, Contender, Path, Receiver};
use crate::frames::{Frames, Shape};
use crate::link::fits_a_frame;
use crate::medium::{Transit, Wifi};
use crate::node::{Delivery, Destination, Node, Packet, StationId};

impl<P: Packet> Wifi<P> {
    /// Takes a packet from a node's host.
    ///
    /// Nothing else happens; a `now` before the last event counts as that event's.
    ///
    /// # Errors
    ///
    /// The packet itself: the sender's queue is a FIFO and full (counted as a queue drop), or nobody
    /// can receive it (counted as refused).
    pub fn enqueue(
        &mut self,
        now: Instant,
        from: Node,
        to: Destination,
        packet: P,
    ) -> Result<(), P> {
        if !self.is_deliverable(from, to) || !fits_a_frame(packet.len()) {
            self.counters.refused += 1;
            return Err(packet);
        }
        let now = now.max(self.clock);
        match from {
            Node::Server => self.enqueue_server(now, to, packet),
            Node::Station(id) => self.enqueue_station(now, id.index(), to, packet),
        }
    }

    fn is_deliverable(&self, from: Node, to: Destination) -> bool {
        let exists = |node| match node {
            Node::Server => true,
            Node::Station(id) => id.index() < self.links.len(),
        };
        exists(from)
            && match to {
                Destination::Unicast(node) => node != from && exists(node),
                Destination::Broadcast => true,
            }
    }

    fn enqueue_server(&mut self, now: Instant, to: Destination, packet: P) -> Result<(), P> {
        let flow = match to {
            Destination::Unicast(Node::Station(id)) => id.index(),
            Destination::Unicast(Node::Server) | Destination::Broadcast => self.links.len(),
        };
        let extra = self.links.get(flow).map_or(Duration::ZERO, |link| link.wired_delay);
        let length = packet.len();
        let transit = Transit { packet, from: Node::Server, to };
        let counters = &mut self.counters.wired_down;
        let sent = self.wired_down.send(now, flow, extra, length, transit, counters);
        sent.map_err(|transit| transit.packet)
    }

    fn enqueue_station(
        &mut self,
        now: Instant,
        station: usize,
        to: Destination,
        packet: P,
    ) -> Result<(), P> {
        let (link, uplink) = (&self.links[station], &mut self.uplinks[station]);
        let counters = &mut self.counters.stations[station];
        counters.offered += 1;
        let shape = Shape::of(link.standard.is_qos(), &packet);
        if let Some(host) = &mut self.hosts[station] {
            let mut gone = self.departures.of(Contender::Station(station));
            let (flow, bytes) = (packet.flow(), packet.len() as u32);
            host.push(now, flow, bytes, (packet, to, shape), |(packet, ..)| {
                counters.queue_drops += 1;
                gone(&packet);
            });
        } else if uplink.waiting() >= link.queue {
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

    /// Packets that still fit into the queue that `from` sends through without another being dropped:
    /// a station's own, or for the server the wired leg's, as of the last event.
    pub fn room(&self, from: Node) -> usize {
        match from {
            Node::Server => self.wired_down.room(self.clock),
            Node::Station(id) => match (self.links.get(id.index()), self.hosts.get(id.index())) {
                (Some(_), Some(Some(host))) => host.room(),
                (Some(link), _) => link.queue.saturating_sub(self.uplinks[id.index()].waiting()),
                (None, _) => 0,
            },
        }
    }

    /// Packets in the queue that `from` sends through: a station's own, or for the server the wired
    /// leg's, as of the last event.
    pub fn queued(&self, from: Node) -> usize {
        match from {
            Node::Server => self.wired_down.queued(self.clock),
            Node::Station(id) => self.queued_at_station(id.index()),
        }
    }

    pub(crate) fn queued_at_station(&self, station: usize) -> usize {
        let frames = self.uplinks.get(station).map_or(0, Frames::waiting);
        frames + self.hosts.get(station).and_then(Option::as_ref).map_or(0, |host| host.len())
    }

    /// Packets in the access point's queue for the air.
    pub fn queued_at_access_point(&self) -> usize {
        self.access_point.waiting()
    }

    /// Packets in the access point's queue for the wire, as of the last event.
    pub fn queued_for_server(&self) -> usize {
        self.wired_up.queued(self.clock)
    }

    pub(crate) fn arrive_at_access_point(&mut self, at: Instant) {
        let Some(transit) = self.wired_down.arrive(&mut self.counters.wired_down) else { return };
        let Transit { packet, from, to } = transit;
        self.send_down(at, from, to, packet);
    }

    pub(crate) fn arrive_at_server(&mut self, at: Instant) {
        let Some(transit) = self.wired_up.arrive(&mut self.counters.wired_up) else { return };
        self.deliver(at, Node::Server, transit.from, transit.packet);
    }

    /// The access point puts a packet on the wire; a full queue drops it.
    pub(crate) fn send_up(&mut self, at: Instant, station: usize, packet: P) {
        let from = Node::Station(StationId(station as u32));
        let to = Destination::Unicast(Node::Server);
        let (length, extra) = (packet.len(), self.links[station].wired_delay);
        let counters = &mut self.counters.wired_up;
        let transit = Transit { packet, from, to };
        // The packet that is given back is a drop, and counted there.
        let _ = self.wired_up.send(at, station, extra, length, transit, counters);
    }

    /// The access point puts a packet into its queue for a station, or for all.
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
        let kept = self.access_point.push(receiver, (packet, from, to, shape), on_air);
        let counters = &mut self.counters.access_point;
        counters.offered += 1;
        counters.queue_drops += u64::from(!kept);
        if !self.contention.is_active(me) {
            self.contention.request(me, at, &mut self.rng);
        }
    }

    pub(crate) fn deliver(&mut self, at: Instant, to: Node, from: Node, packet: P) {
        self.deliveries.push_back(Delivery { at, to, from, packet });
    }

    /// After some of a queue's frames were settled, `gone` of them for good: hands on what is in
    /// order now.
    pub(crate) fn handed_on(&mut self, attempt: Attempt, gone: usize, at: Instant) {
        match attempt.path {
            Path::Down(receiver) => {
                self.access_point.left(receiver, gone);
                let Receiver::Station(station) = receiver else { return };
                while let Some(frame) = self.access_point.frames_mut(receiver).release() {
                    self.counters.access_point.delivered += 1;
                    let to = Node::Station(StationId(station as u32));
                    self.deliver(at, to, frame.from, frame.packet);
                }
            }
            Path::Up(station) => {
                while let Some(frame) = self.uplinks[station].release() {
                    self.counters.stations[station].delivered += 1;
                    self.forward(at, station, frame.to, frame.packet);
                }
            }
        }
    }

    /// The access point forwards a frame that has come from a station.
    pub(crate) fn forward(&mut self, at: Instant, station: usize, to: Destination, packet: P) {
        let from = Node::Station(StationId(station as u32));
        match to {
            Destination::Unicast(Node::Server) => self.send_up(at, station, packet),
            Destination::Unicast(Node::Station(_)) | Destination::Broadcast => {
                self.send_down(at, from, to, packet);
            }
        }
    }

    /// The queue that an access takes its frames from.
    pub(crate) fn queue(&self, path: Path) -> &Frames<P> {
        match path {
            Path::Up(station) => &self.uplinks[station],
            Path::Down(receiver) => self.access_point.frames(receiver),
        }
    }
}
