//! The broadcasts of agents between their arrival and the controllers that handle them.

use std::collections::VecDeque;
use std::rc::Rc;

use wakeai_control::presence::Opened;
use wakeai_units::Instant;

/// A broadcast that has arrived.
struct Broadcast {
    at: Instant,
    bytes: Rc<[u8]>,
    opened: Opened,
}

/// The bit of a station among the stations that have received a broadcast.
#[derive(Clone, Copy)]
struct Place {
    /// The words for each broadcast.
    words: usize,
    word: usize,
    bit: u64,
}

impl Place {
    fn of(station: u32, stations: usize) -> Self {
        let (word, bit) = (station as usize / 64, 1 << (station % 64));
        Self { words: stations.div_ceil(64), word, bit }
    }

    fn is_in(self, receivers: &VecDeque<u64>, broadcast: usize) -> bool {
        receivers[broadcast * self.words + self.word] & self.bit != 0
    }
}

/// A station whose agent reads broadcasts.
#[derive(Clone, Copy)]
struct Reader {
    /// The number of the next broadcast to read.
    next: u64,
    /// The agent handles what arrives from this time on at once, because it has something to do then.
    busy_from: Instant,
}

/// The broadcasts that are not read by all yet. Each is kept once, and has been authenticated and read
/// once, because all agents have the same group key.
///
/// A controller reads its messages together, before anything else that it does. A thousand controllers
/// that take turns with every message would find little of their tables in the processor's cache.
pub(crate) struct Broadcasts {
    kept: VecDeque<Broadcast>,
    /// For each kept broadcast a bit for each station: whether it has received the broadcast.
    receivers: VecDeque<u64>,
    /// The number of the first kept broadcast. They are numbered in the order of their arrival.
    first: u64,
    /// The number of kept broadcasts at which those that are read by all are dropped.
    limit: usize,
    /// By station; `None` without an agent.
    readers: Vec<Option<Reader>>,
}

impl Broadcasts {
    pub(crate) fn new() -> Self {
        Self {
            kept: VecDeque::new(),
            receivers: VecDeque::new(),
            first: 0,
            limit: LEAST_LIMIT,
            readers: Vec::new(),
        }
    }

    /// Adds the next station. Its agent, if it has one, begins at `start`.
    pub(crate) fn add_station(&mut self, start: Option<Instant>) {
        self.readers.push(start.map(|start| Reader { next: 0, busy_from: start }));
    }

    /// Sets the time from which on `station` handles what arrives at once.
    pub(crate) fn set_busy_from(&mut self, station: u32, at: Instant) {
        if let Some(reader) = &mut self.readers[station as usize] {
            reader.busy_from = at;
        }
    }

    /// Takes a broadcast that has arrived at a station. `open` reads it where no other station has
    /// received it before. Returns whether the station's agent has to handle it at once.
    pub(crate) fn arrive(
        &mut self,
        now: Instant,
        station: u32,
        bytes: &Rc<[u8]>,
        open: impl FnOnce() -> Opened,
    ) -> bool {
        let Some(reader) = self.readers[station as usize] else { return false };
        let place = Place::of(station, self.readers.len());
        let last = self.kept.back();
        if !last.is_some_and(|last| last.at == now && Rc::ptr_eq(&last.bytes, bytes)) {
            self.drop_read();
            self.kept.push_back(Broadcast { at: now, bytes: Rc::clone(bytes), opened: open() });
            self.receivers.extend(std::iter::repeat_n(0, place.words));
        }
        let last = self.kept.back().expect("it has just been added where it was not there");
        self.receivers[(self.kept.len() - 1) * place.words + place.word] |= place.bit;
        now >= reader.busy_from || !last.opened.can_wait()
    }

    /// The broadcasts that have arrived at the station up to `until` and that its agent has not read
    /// yet, with the times of their arrival.
    pub(crate) fn read(
        &mut self,
        station: u32,
        until: Instant,
    ) -> impl Iterator<Item = (Instant, &Opened)> {
        let place = Place::of(station, self.readers.len());
        let next = self.readers[station as usize].as_mut().map(|reader| &mut reader.next);
        let from = next.as_deref().map_or(self.kept.len(), |next| (*next - self.first) as usize);
        let arrived = self.kept.range(from..).take_while(|one| one.at <= until).count();
        if let Some(next) = next {
            *next += arrived as u64;
        }
        let range = from..from + arrived;
        let receivers = &self.receivers;
        let all = range.clone().zip(self.kept.range(range));
        let received = all.filter(move |(at, _)| place.is_in(receivers, *at));
        received.map(|(_, one)| (one.at, &one.opened))
    }

    /// Drops the broadcasts that are read by all, where there may be many.
    fn drop_read(&mut self) {
        if self.kept.len() < self.limit {
            return;
        }
        let next = self.readers.iter().flatten().map(|reader| reader.next).min();
        let read = next.map_or(self.kept.len(), |next| (next - self.first) as usize);
        self.kept.drain(..read);
        self.receivers.drain(..read * self.readers.len().div_ceil(64));
        self.first += read as u64;
        self.limit = LEAST_LIMIT.max(2 * self.kept.len());
    }
}

const LEAST_LIMIT: usize = 64;

#[cfg(test)]
mod tests {
    use wakeai_control::{Controller, ControllerConfig, LawConfig, StationId};

    use super::*;

    #[test]
    fn each_station_reads_once_what_it_has_received_in_time() {
        let config = ControllerConfig::new(StationId(1), [2; 6], [7; 32]);
        let law = LawConfig::from_name("airtime").unwrap().build();
        let reader = Controller::new(Instant::ZERO, config, [1; 16], law);
        let at = Instant::from_nanos;
        let mut broadcasts = Broadcasts::new();
        for start in [Some(at(150)), None, Some(at(u64::MAX))] {
            broadcasts.add_station(start);
        }
        let mut opened = 0;
        let mut arrive = |broadcasts: &mut Broadcasts, time, bytes: &Rc<[u8]>, to: &[u32]| {
            let arrive = |station: &u32| {
                let open = || {
                    opened += 1;
                    reader.open(bytes)
                };
                broadcasts.arrive(at(time), *station, bytes, open)
            };
            to.iter().map(arrive).collect::<Vec<bool>>()
        };
        let bytes: Rc<[u8]> = Rc::from([0_u8; 8]);
        // More than are kept at least; station 2 does not receive every third one.
        for time in 0..200 {
            let to: &[u32] = if time % 3 == 0 { &[0, 1] } else { &[0, 1, 2] };
            let urgent = arrive(&mut broadcasts, time, &bytes, to);
            assert_eq!(urgent[..2], [time >= 150, false]);
            let read: Vec<u64> =
                broadcasts.read(0, at(time)).map(|(at, _)| at.as_nanos()).collect();
            assert_eq!(read, [time]);
        }
        let mut read = |until| -> Vec<u64> {
            broadcasts.read(2, at(until)).map(|(at, _)| at.as_nanos()).collect()
        };
        assert_eq!(read(5), [1, 2, 4, 5]);
        assert_eq!(read(5), [0_u64; 0]);
        assert_eq!(read(400).len(), 129);
        assert_eq!(opened, 200, "each is opened once");
        let last: Rc<[u8]> = Rc::from([1_u8; 8]);
        broadcasts.arrive(at(500), 2, &last, || reader.open(&last));
        assert!(broadcasts.kept.len() <= 2 * LEAST_LIMIT + 200);
    }
}
