//! Happy eyeballs (RFC 8305): which address of a name is tried when.

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;

use wakeai_units::{Duration, Instant};

/// The Connection Attempt Delay: the time after which the next address is tried while the earlier
/// attempts still wait for an answer (RFC 8305 section 8, the recommended value).
const DELAY: Duration = Duration::from_millis(250);
/// The shortest Connection Attempt Delay (RFC 8305 section 8).
const SHORTEST_DELAY: Duration = Duration::from_millis(10);
/// The largest number of attempts at a time. An attempt needs a socket, and a name may have
/// hundreds of addresses. The oldest attempt gives way to the next address.
const MOST_AT_ONCE: usize = 16;

/// Why an attempt made no connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure<E> {
    /// The attempt failed.
    Error(E),
    /// No answer came in the time that the attempt had.
    NoAnswer,
    /// The limit was over before it was the turn of this address.
    NotTried,
}

/// An attempt that made no connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt<E> {
    /// The address.
    pub address: SocketAddr,
    /// What was found.
    pub failure: Failure<E>,
}

/// No address of a list made a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreached<E> {
    /// Every address with what was found there, in the order in which the failures became known.
    pub attempts: Vec<Attempt<E>>,
    /// The limit of all attempts together.
    pub limit: Duration,
}

/// Decides which address is tried when. The order of calls:
///
/// 1. [`Race::poll_attempt`] until it returns `None`: each address that it returns is to be tried
///    now.
/// 2. [`Race::poll_abandoned`] until it returns `None`: the attempt at each address that it returns
///    is to be closed.
/// 3. [`Race::is_over`]: whether all attempts have failed, or the limit is over;
///    [`Race::into_error`] then says why.
/// 4. Wait for the end of an attempt, at most until [`Race::next_timeout`]. The first one that
///    succeeds wins, and the caller closes all others. [`Race::handle_failure`] takes the failure of
///    another. Then from the beginning.
#[derive(Clone, Debug)]
pub struct Race<E> {
    waiting: VecDeque<SocketAddr>,
    running: VecDeque<SocketAddr>,
    abandoned: VecDeque<SocketAddr>,
    failed: Vec<Attempt<E>>,
    delay: Duration,
    limit: Duration,
    /// When the next address is tried.
    next: Instant,
    end: Instant,
}

impl<E> Race<E> {
    /// A race between `addresses`, in the order in which the resolver sorted them (RFC 6724), that
    /// begins at `now` and lasts at most for `limit`.
    ///
    /// The last address is tried when half of the limit is left. So none is without its chance, as
    /// long as the limit is not below 20 ms for each address.
    pub fn new(
        addresses: impl IntoIterator<Item = SocketAddr>,
        limit: Duration,
        now: Instant,
    ) -> Self {
        let waiting = interlaced(addresses);
        let share = limit / 2 / (waiting.len() as u64).max(1);
        Self {
            waiting,
            running: VecDeque::new(),
            abandoned: VecDeque::new(),
            failed: Vec::new(),
            delay: share.clamp(SHORTEST_DELAY, DELAY),
            limit,
            next: now,
            end: now.checked_add(limit).unwrap_or(Instant::MAX),
        }
    }

    /// The next address to try, if it is due.
    pub fn poll_attempt(&mut self, now: Instant) -> Option<SocketAddr> {
        if now < self.next || now >= self.end {
            return None;
        }
        let address = self.waiting.pop_front()?;
        self.next = now + self.delay;
        if self.running.len() == MOST_AT_ONCE
            && let Some(oldest) = self.running.pop_front()
        {
            self.failed.push(Attempt { address: oldest, failure: Failure::NoAnswer });
            self.abandoned.push_back(oldest);
        }
        self.running.push_back(address);
        Some(address)
    }

    /// An address whose attempt is to be closed, because it gave way to another one.
    pub fn poll_abandoned(&mut self) -> Option<SocketAddr> {
        self.abandoned.pop_front()
    }

    /// Takes the failure of the attempt at `address`. The next address is due at once (RFC 8305
    /// section 5).
    pub fn handle_failure(&mut self, now: Instant, address: SocketAddr, error: E) {
        let Some(place) = self.running.iter().position(|running| *running == address) else {
            return; // it was abandoned
        };
        self.running.remove(place);
        self.failed.push(Attempt { address, failure: Failure::Error(error) });
        self.next = now;
    }

    /// When an address is due next, or the limit is over.
    pub fn next_timeout(&self) -> Instant {
        if self.waiting.is_empty() { self.end } else { self.next.min(self.end) }
    }

    /// Whether no connection can come of the race any more.
    pub fn is_over(&self, now: Instant) -> bool {
        now >= self.end || (self.waiting.is_empty() && self.running.is_empty())
    }

    /// What was found at every address.
    pub fn into_error(self) -> Unreached<E> {
        let still = |address, failure| Attempt { address, failure };
        let running = self.running.into_iter().map(|at| still(at, Failure::NoAnswer));
        let waiting = self.waiting.into_iter().map(|at| still(at, Failure::NotTried));
        let attempts = self.failed.into_iter().chain(running).chain(waiting).collect();
        Unreached { attempts, limit: self.limit }
    }
}

/// The addresses without repetitions, of the two families by turns. The family of the first one
/// begins (RFC 8305 section 4, with a First Address Family Count of 1).
fn interlaced(addresses: impl IntoIterator<Item = SocketAddr>) -> VecDeque<SocketAddr> {
    let mut all: Vec<SocketAddr> = Vec::new();
    for address in addresses {
        if !all.contains(&address) {
            all.push(address);
        }
    }
    let v4_begins = all.first().is_some_and(SocketAddr::is_ipv4);
    let (first, second): (VecDeque<_>, VecDeque<_>) =
        all.into_iter().partition(|address| address.is_ipv4() == v4_begins);
    let (mut families, mut order) = ([first, second], VecDeque::new());
    while let [Some(_), _] | [_, Some(_)] = families.each_ref().map(VecDeque::front) {
        order.extend(families.iter_mut().filter_map(VecDeque::pop_front));
    }
    order
}

impl<E: fmt::Display> fmt::Display for Unreached<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.attempts.is_empty() {
            return f.write_str("it has no address");
        }
        for (number, attempt) in self.attempts.iter().enumerate() {
            let separator = if number == 0 { "" } else { "; " };
            write!(f, "{separator}{}: ", attempt.address)?;
            match &attempt.failure {
                Failure::Error(error) => write!(f, "{error}")?,
                Failure::NoAnswer => write!(f, "no answer within {}", self.limit)?,
                Failure::NotTried => write!(f, "not tried within {}", self.limit)?,
            }
        }
        Ok(())
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for Unreached<E> {}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(list: &[&str]) -> Vec<SocketAddr> {
        list.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn the_families_take_turns_and_the_first_one_begins() {
        let list = ["[2001:db8::1]:1", "[2001:db8::2]:1", "[2001:db8::1]:1", "[2001:db8::3]:1"];
        let list = addresses(&[&list[..], &["192.0.2.1:1", "192.0.2.2:1"]].concat());
        let order = addresses(&[
            "[2001:db8::1]:1",
            "192.0.2.1:1",
            "[2001:db8::2]:1",
            "192.0.2.2:1",
            "[2001:db8::3]:1",
        ]);
        assert_eq!(interlaced(list), order);
        let v4 = addresses(&["192.0.2.1:1", "192.0.2.2:1", "[2001:db8::1]:1"]);
        assert_eq!(interlaced(v4), addresses(&["192.0.2.1:1", "[2001:db8::1]:1", "192.0.2.2:1"]));
        assert_eq!(interlaced([]), addresses(&[]));
    }

    #[test]
    fn all_addresses_are_tried_before_half_of_the_limit_is_over() {
        let limit = Duration::from_secs(2);
        let list = (0..100).map(|last| SocketAddr::from(([192, 0, 2, last], 1)));
        let mut race: Race<()> = Race::new(list, limit, Instant::ZERO);
        let (mut now, mut tried, mut closed) = (Instant::ZERO, 0, 0);
        while !race.waiting.is_empty() {
            now = race.next_timeout();
            assert!(!race.is_over(now), "{} were not tried", race.waiting.len());
            tried += std::iter::from_fn(|| race.poll_attempt(now)).count();
            closed += std::iter::from_fn(|| race.poll_abandoned()).count();
            assert!(race.running.len() <= MOST_AT_ONCE);
        }
        assert_eq!((tried, closed), (100, 100 - MOST_AT_ONCE));
        assert!(now <= Instant::ZERO + limit / 2, "{now}");
        assert!(!race.is_over(now) && race.is_over(race.next_timeout()));
    }

    #[test]
    fn an_error_says_what_was_found_at_each_address() {
        let list = addresses(&["192.0.2.1:1", "[2001:db8::1]:1", "192.0.2.2:1"]);
        let mut race = Race::new(list.clone(), Duration::from_millis(40), Instant::ZERO);
        assert_eq!(race.poll_attempt(Instant::ZERO), Some(list[0]));
        race.handle_failure(Instant::ZERO, list[0], "refused");
        assert_eq!(race.poll_attempt(Instant::ZERO), Some(list[1]));
        let late = Instant::from_nanos(40_000_000);
        assert!(race.poll_attempt(late).is_none() && race.is_over(late));
        assert_eq!(
            race.into_error().to_string(),
            "192.0.2.1:1: refused; [2001:db8::1]:1: no answer within 40ms; \
             192.0.2.2:1: not tried within 40ms"
        );
        let nothing: Race<&str> = Race::new([], DELAY, Instant::ZERO);
        assert!(nothing.is_over(Instant::ZERO));
        assert_eq!(nothing.into_error().to_string(), "it has no address");
    }
}
