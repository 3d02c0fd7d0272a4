//! The broadcasts of agents between their arrival and the controllers that handle them.

use std::collections::VecDeque;

use wakeai_control::presence::Opened;
use wakeai_medium::{StationId, Stations};
use wakeai_units::Instant;

/// A broadcast that has arrived.
struct Broadcast {
    at: Instant,
    opened: Opened,
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
#[derive(Default)]
pub(crate) struct Broadcasts {
    kept: VecDeque<Broadcast>,
    /// The stations that have received each kept broadcast, as [`Stations::words`].
    receivers: VecDeque<u64>,
    /// The number of the first kept broadcast. They are numbered in the order of their arrival.
    first: u64,
    /// The number of kept broadcasts, at least [`LEAST_LIMIT`], at which those that are read by all are dropped.
    limit: usize,
    /// By station; `None` without an agent.
    readers: Vec<Option<Reader>>,
}

impl Broadcasts {
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

    /// Takes a broadcast that has arrived at some stations. `open` reads it at the station with an agent
    /// whose number it is given. Returns the stations whose agents have to handle it at once, in order.
    pub(crate) fn arrive(
        &mut self,
        now: Instant,
        receivers: &Stations,
        open: impl FnOnce(usize) -> Opened,
    ) -> Vec<u32> {
        let is_receiver = |station: usize| receivers.contains(StationId(station as u32));
        let has_agent = |station: &usize| self.readers[*station].is_some();
        let Some(first) = (0..self.readers.len()).filter(has_agent).find(|one| is_receiver(*one))
        else {
            return Vec::new();
        };
        self.drop_read();
        let opened = open(first);
        let urgent = !opened.can_wait();
        self.kept.push_back(Broadcast { at: now, opened });
        let words = receivers.words().iter().copied().chain(std::iter::repeat(0));
        self.receivers.extend(words.take(self.words()));
        let readers = self.readers.iter().enumerate();
        let at_once = readers
            .filter(|(_, reader)| reader.is_some_and(|reader| urgent || now >= reader.busy_from));
        let at_once = at_once.map(|(station, _)| station).filter(|one| is_receiver(*one));
        at_once.map(|station| station as u32).collect()
    }

    /// The broadcasts that have arrived at the station up to `until` and that its agent has not read
    /// yet, with the times of their arrival.
    pub(crate) fn read(
        &mut self,
        station: u32,
        until: Instant,
    ) -> impl Iterator<Item = (Instant, &Opened)> {
        let next = self.readers[station as usize].as_mut().map(|reader| &mut reader.next);
        let from = next.as_deref().map_or(self.kept.len(), |next| (*next - self.first) as usize);
        let arrived = self.kept.range(from..).take_while(|one| one.at <= until).count();
        if let Some(next) = next {
            *next += arrived as u64;
        }
        let range = from..from + arrived;
        let all = range.clone().zip(self.kept.range(range));
        let (words, receivers) = (self.words(), &self.receivers);
        let (word, bit) = (station as usize / 64, station % 64);
        let received = all.filter(move |(at, _)| receivers[at * words + word] >> bit & 1 == 1);
        received.map(|(_, one)| (one.at, &one.opened))
    }

    /// The number of broadcasts that have arrived at some stations since the last one that the station's
    /// agent has read.
    pub(crate) fn unread(&self, station: u32) -> usize {
        let reader = &self.readers[station as usize];
        reader.map_or(0, |reader| self.kept.len() - (reader.next - self.first) as usize)
    }

    /// The words of a set of stations.
    fn words(&self) -> usize {
        self.readers.len().div_ceil(64)
    }

    /// Drops the broadcasts that are read by all, where there may be many.
    fn drop_read(&mut self) {
        if self.kept.len() < self.limit.max(LEAST_LIMIT) {
            return;
        }
        let next = self.readers.iter().flatten().map(|reader| reader.next).min();
        let read = next.map_or(self.kept.len(), |next| (next - self.first) as usize);
        self.kept.drain(..read);
        self.receivers.drain(..read * self.words());
        self.first += read as u64;
        self.limit = 2 * self.kept.len();
    }
}

const LEAST_LIMIT: usize = 64;

#[cfg(test)]
mod tests {
    use wakeai_control::{Controller, ControllerConfig, LawConfig, LawName};

    use super::*;

    fn stations(numbers: &[u32]) -> Stations {
        let mut set = Stations::default();
        for number in numbers {
            set.insert(StationId(*number));
        }
        set
    }

    #[test]
    fn each_station_reads_once_what_it_has_received_in_time() {
        let config = ControllerConfig::new(wakeai_control::StationId(1), [2; 6], [7; 32]);
        let law = LawConfig::new(LawName::Airtime);
        let reader = Controller::new(Instant::ZERO, &config, [1; 16], &law);
        let at = Instant::from_nanos;
        let mut broadcasts = Broadcasts::default();
        for start in [Some(at(150)), None, Some(at(u64::MAX))] {
            broadcasts.add_station(start);
        }
        let mut opened = 0;
        let mut arrive = |broadcasts: &mut Broadcasts, time, to: &[u32]| {
            let open = |_| {
                opened += 1;
                reader.open(&[0; 8])
            };
            broadcasts.arrive(at(time), &stations(to), open)
        };
        // More than are kept at least; station 2 does not receive every third one.
        for time in 0..200 {
            let to: &[u32] = if time % 3 == 0 { &[0, 1] } else { &[0, 1, 2] };
            let at_once: &[u32] = if time >= 150 { &[0] } else { &[] };
            assert_eq!(arrive(&mut broadcasts, time, to), at_once);
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
        broadcasts.arrive(at(500), &stations(&[1]), |_| unreachable!("none of them has an agent"));
        broadcasts.arrive(at(500), &stations(&[1, 2]), |station| {
            assert_eq!(station, 2);
            reader.open(&[1; 8])
        });
        assert!(broadcasts.kept.len() <= 2 * LEAST_LIMIT + 200);
    }
}
