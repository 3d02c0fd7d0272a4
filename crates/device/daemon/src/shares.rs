//! Shares slots among clients; each slot is the right to one connection. Name lookups are shared in
//! the same way. A client may hold three times as many slots as are free.
//!
//! So a single client gets three quarters of all slots, the next client three quarters of the rest,
//! and so on. The last free slot is kept for a client that holds none. A client that holds more
//! than its present limit keeps its slots, but gets no more. This is a dynamic threshold (Choudhury
//! and Hahne, "Dynamic queue length thresholds for shared-memory packet switches", IEEE/ACM
//! Transactions on Networking 6(2), 1998). [`Shares::new`] takes a fixed limit for each client instead.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::{Notify, oneshot};

/// The number of shares (slots or lookups) that a client may hold for each free share.
const PER_FREE: usize = 3;
/// Idle connections end earlier if no more than one in this many slots is free.
const PRESSED: usize = 4;
/// The idle timeout is divided by at most this number.
pub const SHORTEST: u32 = 60;

/// One client. It is an IPv4 address or a /64 network of IPv6, because one host may use all
/// addresses of such a network (RFC 4291 section 2.5.1). A link-local address stands for itself,
/// because all hosts of a link have theirs in one network (section 2.5.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Client(IpAddr);

impl Client {
    /// The client that connects from this address.
    pub fn at(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(address) if !address.is_unicast_link_local() => {
                Self(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into())
            }
            other => Self(other),
        }
    }
}

/// The reason why a client gets no share now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Busy {
    /// No share is free.
    Full,
    /// The client holds as many shares as it may.
    OverShare,
}

/// A fixed number of slots or of lookups, shared among clients. Clones share the state.
#[derive(Clone, Debug)]
pub struct Shares(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    total: usize,
    /// The number of shares that a client may hold, if it does not depend on the number of free ones.
    limit: Option<usize>,
    state: RefCell<State>,
    given_back: Notify,
}

#[derive(Debug)]
struct State {
    free: usize,
    held: HashMap<Client, usize>,
    /// The waiting clients. The next free share goes to the first client here that may have one.
    waiting: VecDeque<(Client, oneshot::Sender<Share>)>,
}

/// One slot or lookup. Dropping this value gives it back.
#[derive(Debug)]
pub struct Share {
    of: Shares,
    client: Client,
}

impl State {
    fn held(&self, client: Client) -> usize {
        self.held.get(&client).copied().unwrap_or(0)
    }

    fn check(&self, client: Client, limit: Option<usize>) -> Result<(), Busy> {
        // The last free share is for a client that has none.
        let limit = limit.unwrap_or((PER_FREE * self.free.saturating_sub(1)).max(1));
        match (self.held(client), self.free) {
            (held, _) if held >= limit => Err(Busy::OverShare),
            (_, 0) => Err(Busy::Full),
            _ => Ok(()),
        }
    }

    fn take(&mut self, client: Client) {
        self.free -= 1;
        *self.held.entry(client).or_insert(0) += 1;
    }
}

impl Shares {
    /// Shares of which a client may hold `limit`, or without a limit three times as many as are free.
    pub fn new(total: usize, limit: Option<usize>) -> Self {
        let state = State { free: total, held: HashMap::new(), waiting: VecDeque::new() };
        Self(Rc::new(Inner { total, limit, state: RefCell::new(state), given_back: Notify::new() }))
    }

    /// The number of shares.
    pub fn total(&self) -> usize {
        self.0.total
    }

    /// The number of free shares.
    pub fn free(&self) -> usize {
        self.0.state.borrow().free
    }

    /// Takes a share for the client, if it may have one now.
    ///
    /// # Errors
    ///
    /// The client gets none now.
    pub fn try_take(&self, client: Client) -> Result<Share, Busy> {
        let mut state = self.0.state.borrow_mut();
        state.check(client, self.0.limit)?;
        state.take(client);
        Ok(Share { of: self.clone(), client })
    }

    /// Takes a share for the client as soon as it may have one.
    pub async fn take(&self, client: Client) -> Share {
        if let Ok(share) = self.try_take(client) {
            return share;
        }
        self.wait(client).await.expect("kept until it was given one")
    }

    fn wait(&self, client: Client) -> oneshot::Receiver<Share> {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.0.state.borrow_mut();
        state.waiting.retain(|(_, waiting)| !waiting.is_closed());
        state.waiting.push_back((client, sender));
        receiver
    }

    /// Returns when a share is given back.
    pub async fn given_back(&self) {
        self.0.given_back.notified().await;
    }

    fn hand_on(&self) {
        loop {
            let mut state = self.0.state.borrow_mut();
            state.waiting.retain(|(_, waiting)| !waiting.is_closed());
            let may = |(client, _): &(Client, _)| state.check(*client, self.0.limit).is_ok();
            let next = state.waiting.iter().position(may);
            let Some((client, waiting)) = next.and_then(|at| state.waiting.remove(at)) else {
                break;
            };
            state.take(client);
            drop(state);
            // Sending succeeds: the receiver existed at the check, and no other thread could have
            // dropped it since then.
            let _ = waiting.send(Share { of: self.clone(), client });
        }
        self.0.given_back.notify_waiters();
    }
}

impl Share {
    /// The time for which this client's connections may be idle now: between `timeout` and a
    /// sixtieth of `timeout`. It becomes shorter when fewer slots are free, and when the client
    /// holds more slots.
    pub fn idle_limit(&self, timeout: Duration) -> Duration {
        let state = self.of.0.state.borrow();
        let (total, free) = (self.of.0.total, PRESSED * state.free);
        if free > total {
            return timeout;
        }
        let part = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let divisor = part(state.held(self.client)).min(SHORTEST).saturating_mul(part(total));
        let pressed = timeout.saturating_mul(part(free)) / divisor.max(1);
        pressed.max(timeout / SHORTEST)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut state = self.of.0.state.borrow_mut();
        state.free += 1;
        if let Some(held) = state.held.get_mut(&self.client) {
            *held -= 1;
            if *held == 0 {
                state.held.remove(&self.client);
            }
        }
        drop(state);
        self.of.hand_on();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn client(text: &str) -> Client {
        Client::at(text.parse().unwrap())
    }

    /// All shares that the client gets.
    fn all(shares: &Shares, of: &str) -> Vec<Share> {
        std::iter::from_fn(|| shares.try_take(client(of)).ok()).collect()
    }

    #[test]
    fn a_client_that_holds_all_it_may_leaves_some_to_others() {
        for (total, clients) in [(2, 2), (3, 2), (8, 3), (100, 4), (8000, 7)] {
            let shares = Shares::new(total, None);
            let held: Vec<_> =
                (1..=clients).map(|host| all(&shares, &format!("10.0.0.{host}"))).collect();
            assert!(held.iter().all(|held| !held.is_empty()), "{total}");
            assert!((total / 2..=1 + total * 3 / 4).contains(&held[0].len()), "{total}");
            let busy = shares.try_take(client("10.0.0.1")).unwrap_err();
            assert_eq!(busy, Busy::OverShare);
        }
    }

    #[test]
    fn a_fixed_limit_holds_also_while_many_are_free_and_the_others_wait_for_the_last() {
        let shares = Shares::new(3, Some(2));
        let held = all(&shares, "10.0.0.1");
        assert_eq!((held.len(), shares.free()), (2, 1));
        assert_eq!(shares.try_take(client("10.0.0.1")).unwrap_err(), Busy::OverShare);
        let last = shares.try_take(client("10.0.0.2")).unwrap();
        assert_eq!(shares.try_take(client("10.0.0.2")).unwrap_err(), Busy::Full);
        drop(held);
        drop(last);
        assert_eq!(all(&shares, "10.0.0.2").len(), 2);
    }

    #[test]
    fn one_alone_waits_where_there_is_only_one() {
        let shares = Shares::new(1, None);
        let only = shares.try_take(client("10.0.0.1")).unwrap();
        assert_eq!(shares.try_take(client("10.0.0.2")).unwrap_err(), Busy::Full);
        drop(only);
        assert!(shares.try_take(client("10.0.0.2")).is_ok());
    }

    #[test]
    fn a_client_is_an_ipv4_address_or_an_ipv6_network() {
        assert_eq!(client("::ffff:10.0.0.1"), client("10.0.0.1"));
        assert_ne!(client("10.0.0.2"), client("10.0.0.1"));
        assert_eq!(client("2001:db8::1"), client("2001:db8::ffff:1"));
        assert_ne!(client("2001:db8:0:1::1"), client("2001:db8::1"));
    }

    #[test]
    fn what_is_given_back_goes_to_the_first_that_may_have_it() {
        let shares = Shares::new(4, None);
        let mut greedy = all(&shares, "10.0.0.1");
        let last = shares.try_take(client("10.0.0.2")).unwrap();
        let mut cx = Context::from_waker(Waker::noop());
        let mut over = pin!(shares.take(client("10.0.0.1")));
        let mut next = pin!(shares.take(client("10.0.0.3")));
        {
            let mut gone = pin!(shares.take(client("10.0.0.4")));
            assert!(gone.as_mut().poll(&mut cx).is_pending());
        }
        assert!(over.as_mut().poll(&mut cx).is_pending());
        assert!(next.as_mut().poll(&mut cx).is_pending());
        drop(last);
        assert!(over.as_mut().poll(&mut cx).is_pending(), "this client holds three of four");
        let Poll::Ready(next) = next.as_mut().poll(&mut cx) else { panic!("it was next in turn") };
        drop(next);
        greedy.pop();
        greedy.pop();
        assert!(over.as_mut().poll(&mut cx).is_ready());
    }

    #[test]
    fn under_pressure_those_who_hold_many_may_idle_less() {
        let hour = Duration::from_hours(1);
        let shares = Shares::new(8000, None);
        let quiet = shares.try_take(client("10.0.0.9")).unwrap();
        assert_eq!(quiet.idle_limit(hour), hour);
        let greedy = all(&shares, "10.0.0.1");
        assert_eq!(greedy[0].idle_limit(hour), hour / SHORTEST);
        assert!(quiet.idle_limit(hour) > hour * 9 / 10);
        let _others: Vec<_> =
            (1..=50).flat_map(|host| all(&shares, &format!("10.0.1.{host}"))).collect();
        assert_eq!(quiet.idle_limit(hour), hour / SHORTEST, "none is free");
    }
}
