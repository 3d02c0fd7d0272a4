//! One radio channel: a queue per station and one at the access point, contention in slots, turns
//! of one frame or one aggregate. Small on purpose: it is what the laws are tuned against, not a
//! model of 802.11 in detail.

use std::collections::VecDeque;

use super::random::Random;

/// What crosses the air.
#[derive(Clone, Debug)]
pub(crate) enum Packet {
    /// A data segment of a station's flow.
    Data { flow: usize, sequence: u64 },
    /// An acknowledgement: everything below `cumulative`, and these beside.
    Ack { flow: usize, cumulative: u64, received: Vec<u64> },
    /// A presence datagram on its way to the access point.
    Presence { from: usize, bytes: Vec<u8> },
    /// The same, broadcast by the access point.
    Broadcast { from: usize, bytes: Vec<u8> },
}

impl Packet {
    fn len(&self) -> u64 {
        match self {
            Self::Data { .. } => 1500,
            Self::Ack { received, .. } => 52 + 8 * received.len().min(3) as u64,
            Self::Presence { bytes, .. } | Self::Broadcast { bytes, .. } => bytes.len() as u64 + 28,
        }
    }
}

impl Packet {
    fn is_presence(&self) -> bool {
        matches!(self, Self::Presence { .. } | Self::Broadcast { .. })
    }
}

/// A packet and, at the access point, the station that it goes to.
struct Queued {
    packet: Packet,
    to: usize,
}

/// One that contends: a station, or the access point (the last).
struct Contender {
    queue: VecDeque<Queued>,
    limit: usize,
    rate_mbps: f64,
    window: u64,
    backoff: Option<u64>,
    drops: u64,
}

/// How the air behaves.
#[derive(Clone, Debug)]
pub(crate) struct AirConfig {
    /// PHY rate of each station, Mbit/s.
    pub(crate) rates_mbps: Vec<f64>,
    /// Aggregation (802.11n and later) or a frame per turn (802.11g).
    pub(crate) aggregates: bool,
    /// Packets in each host's queue.
    pub(crate) host_queue: usize,
    /// Packets in the access point's queue.
    pub(crate) access_point_queue: usize,
}

pub(crate) struct Air {
    contenders: Vec<Contender>,
    aggregates: bool,
    random: Random,
    /// The transmission on the air: who, what, to whom; ends at `busy_until`.
    flying: Vec<Queued>,
    pub(crate) busy_until: Option<u64>,
    /// Time that presence took, collisions aside, ns.
    pub(crate) presence: u64,
}

const SLOT: u64 = 9_000;
const CW_MIN: u64 = 15;
const CW_MAX: u64 = 1023;
const LONGEST_PPDU: f64 = 5_484_000.0;
const LARGEST_AMPDU: u64 = 65_535;
const MOST_SUBFRAMES: usize = 64;

impl Air {
    pub(crate) fn new(config: &AirConfig, random: Random) -> Self {
        let contender = |limit, rate_mbps| Contender {
            queue: VecDeque::new(),
            limit,
            rate_mbps,
            window: CW_MIN,
            backoff: None,
            drops: 0,
        };
        let mut contenders: Vec<Contender> =
            config.rates_mbps.iter().map(|rate| contender(config.host_queue, *rate)).collect();
        contenders.push(contender(config.access_point_queue, 0.0));
        Self {
            contenders,
            aggregates: config.aggregates,
            random,
            flying: Vec::new(),
            busy_until: None,
            presence: 0,
        }
    }

    pub(crate) fn access_point(&self) -> usize {
        self.contenders.len() - 1
    }

    /// Queues a packet; false where the queue is full.
    pub(crate) fn enqueue(&mut self, at: usize, to: usize, packet: Packet) -> bool {
        let contender = &mut self.contenders[at];
        if contender.queue.len() >= contender.limit {
            contender.drops += 1;
            return false;
        }
        contender.queue.push_back(Queued { packet, to });
        true
    }

    pub(crate) fn drops(&self, at: usize) -> u64 {
        self.contenders[at].drops
    }

    /// Takes what has just crossed.
    pub(crate) fn finish(&mut self) -> Vec<Packet> {
        self.busy_until = None;
        self.flying.drain(..).map(|queued| queued.packet).collect()
    }

    /// Starts the next turn where somebody has something to send.
    pub(crate) fn start(&mut self, now: u64) {
        assert!(self.busy_until.is_none(), "one turn at a time");
        let random = &mut self.random;
        let mut ready: Vec<(usize, u64)> = Vec::new();
        for (index, contender) in self.contenders.iter_mut().enumerate() {
            if !contender.queue.is_empty() {
                let window = contender.window;
                let slots = *contender.backoff.get_or_insert_with(|| random.below(window + 1));
                ready.push((index, slots));
            }
        }
        let Some(first) = ready.iter().map(|(_, slots)| *slots).min() else {
            return;
        };
        for (index, _) in &ready {
            let backoff = self.contenders[*index].backoff.as_mut().expect("drawn above");
            *backoff -= first;
        }
        let winners: Vec<usize> =
            ready.iter().filter(|(_, slots)| *slots == first).map(|(index, _)| *index).collect();
        let access = 43_000 + first * SLOT;
        if winners.len() > 1 {
            let longest = winners.iter().map(|w| self.turn(*w).1).max().expect("somebody won");
            for winner in winners {
                let contender = &mut self.contenders[winner];
                contender.window = (contender.window * 2 + 1).min(CW_MAX);
                contender.backoff = None;
            }
            self.busy_until = Some(now + access + longest);
            return;
        }
        let (count, duration) = self.turn(winners[0]);
        let contender = &mut self.contenders[winners[0]];
        contender.window = CW_MIN;
        contender.backoff = None;
        let to = contender.queue[0].to;
        let mut taken = 0;
        let (flying, rest): (Vec<Queued>, Vec<Queued>) =
            contender.queue.drain(..).partition(|queued| {
                let take = taken < count && queued.to == to;
                taken += usize::from(take);
                take
            });
        if flying.iter().all(|queued| queued.packet.is_presence()) {
            self.presence += access + duration;
        }
        self.flying = flying;
        contender.queue = rest.into();
        self.busy_until = Some(now + access + duration);
    }

    /// Packets and air time of the next turn of `who`, acknowledgement included.
    fn turn(&self, who: usize) -> (usize, u64) {
        let contender = &self.contenders[who];
        let head = &contender.queue[0];
        if matches!(head.packet, Packet::Broadcast { .. }) {
            return (1, 26_000 + ((head.packet.len() + 36) * 8 * 1_000 / 6));
        }
        let station = if who == self.access_point() { head.to } else { who };
        let rate = self.contenders[station].rate_mbps;
        let nanos = |bytes: u64| bytes as f64 * 8_000.0 / rate;
        if !self.aggregates {
            let frame = 26_000.0 + nanos(head.packet.len() + 38);
            return (1, frame as u64 + 10_000 + 34_000);
        }
        let (mut count, mut bytes) = (0, 0);
        for queued in contender.queue.iter().filter(|queued| queued.to == head.to) {
            let more = bytes + queued.packet.len() + 44;
            let fits = more <= LARGEST_AMPDU && nanos(more) <= LONGEST_PPDU;
            if count == MOST_SUBFRAMES || (count > 0 && !fits) {
                break;
            }
            (count, bytes) = (count + 1, more);
        }
        (count, 36_000 + nanos(bytes) as u64 + 16_000 + 32_000)
    }
}
