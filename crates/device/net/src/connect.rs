//! Happy eyeballs on tokio: connects to the addresses of a name as the race decides.

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::Poll;

use tokio::time::{Instant, timeout_at};
use wakeai_units::Duration;

use crate::race::{Race, Unreached};

/// Connects to the first of `addresses` that answers, by the rules of RFC 8305: an address that
/// does not answer delays the others by 250 ms each, one that refuses by nothing. All attempts
/// together take at most `limit`. An attempt that loses is dropped, which closes its socket.
///
/// `attempt` makes one attempt. What has to be checked of an address is checked there.
///
/// # Errors
/// What was found at every address.
pub async fn connect<T, E, F: Future<Output = Result<T, E>>>(
    addresses: impl IntoIterator<Item = SocketAddr>,
    limit: Duration,
    mut attempt: impl FnMut(SocketAddr) -> F,
) -> Result<T, Unreached<E>> {
    let began = Instant::now();
    let now = || instant(began.elapsed());
    let mut race = Race::new(addresses, limit, now());
    let mut running: Vec<(SocketAddr, Pin<Box<F>>)> = Vec::new();
    loop {
        while let Some(address) = race.poll_attempt(now()) {
            running.push((address, Box::pin(attempt(address))));
        }
        while let Some(abandoned) = race.poll_abandoned() {
            running.retain(|(address, _)| *address != abandoned);
        }
        if race.is_over(now()) {
            return Err(race.into_error());
        }
        let due = std::time::Duration::from_nanos(race.next_timeout().as_nanos());
        match timeout_at(began + due, first(&mut running)).await {
            Ok((_, Ok(made))) => return Ok(made),
            Ok((address, Err(error))) => race.handle_failure(now(), address, error),
            Err(_elapsed) => {}
        }
    }
}

/// Converts a time since the beginning.
fn instant(elapsed: std::time::Duration) -> wakeai_units::Instant {
    wakeai_units::Instant::from_nanos(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX))
}

/// Waits for the first attempt that ends, and removes it.
async fn first<F: Future>(running: &mut Vec<(SocketAddr, Pin<Box<F>>)>) -> (SocketAddr, F::Output) {
    poll_fn(|context| {
        for (place, (address, attempt)) in running.iter_mut().enumerate() {
            if let Poll::Ready(output) = attempt.as_mut().poll(context) {
                let address = *address;
                drop(running.swap_remove(place));
                return Poll::Ready((address, output));
            }
        }
        Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::future::pending;

    use tokio::time::sleep;

    use super::*;
    use crate::race::Failure;

    const LIMIT: Duration = Duration::from_secs(10);

    fn millis(millis: u64) -> std::time::Duration {
        std::time::Duration::from_millis(millis)
    }

    fn addresses(list: &[&str]) -> Vec<SocketAddr> {
        list.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_does_not_answer_delays_the_next_by_a_quarter_of_a_second() {
        let list = addresses(&["[2001:db8::1]:1", "192.0.2.1:1"]);
        let began = Instant::now();
        let made = connect(list.clone(), LIMIT, async |address| match address {
            SocketAddr::V6(_) => pending().await,
            SocketAddr::V4(_) => Ok::<_, ()>(address),
        });
        assert_eq!(made.await, Ok(list[1]));
        assert_eq!(began.elapsed(), millis(250));
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_refuses_delays_nothing() {
        let list = addresses(&["[2001:db8::1]:1", "192.0.2.1:1", "192.0.2.2:1"]);
        let began = Instant::now();
        let made = connect(list.clone(), LIMIT, async |address| {
            if address == list[2] { Ok(address) } else { Err("refused") }
        });
        assert_eq!(made.await, Ok(list[2]));
        assert_eq!(began.elapsed(), millis(0));
    }

    #[tokio::test(start_paused = true)]
    async fn the_slow_first_address_wins_against_a_slower_second_one_whose_attempt_is_closed() {
        struct Open<'a>(&'a Cell<u32>);
        impl Drop for Open<'_> {
            fn drop(&mut self) {
                self.0.set(self.0.get() + 1);
            }
        }
        let list = addresses(&["192.0.2.1:1", "192.0.2.2:1"]);
        let closed = Cell::new(0);
        let made = connect(list.clone(), LIMIT, async |address| {
            let open = Open(&closed);
            sleep(millis(400)).await;
            std::mem::forget(open);
            Ok::<_, ()>(address)
        });
        assert_eq!(made.await, Ok(list[0]));
        assert_eq!(closed.get(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_of_many_addresses_has_its_chance_also_within_a_short_limit() {
        for (count, limit) in [(40, LIMIT), (200, LIMIT), (20, Duration::from_secs(1))] {
            let list = (1..=count).map(|last| SocketAddr::from(([192, 0, 2, last], 1)));
            let made = connect(list, limit, async |address| match address.ip() {
                std::net::IpAddr::V4(ip) if ip.octets()[3] == count => {
                    sleep(std::time::Duration::from(limit) / 3).await;
                    Ok::<_, ()>(address)
                }
                _ => pending().await,
            });
            assert!(made.await.is_ok(), "{count}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_limit_ends_all_attempts_and_each_is_named() {
        let list = addresses(&["[2001:db8::1]:1", "192.0.2.1:1"]);
        let (began, tried) = (Instant::now(), RefCell::new(Vec::new()));
        let failed = connect(list.clone(), LIMIT, async |address| {
            tried.borrow_mut().push(address);
            match address {
                SocketAddr::V6(_) => Err("refused"),
                SocketAddr::V4(_) => pending::<Result<(), _>>().await,
            }
        });
        let failed = failed.await.unwrap_err();
        assert_eq!((began.elapsed(), tried.into_inner()), (LIMIT.into(), list.clone()));
        let failures: Vec<_> = failed.attempts.into_iter().map(|attempt| attempt.failure).collect();
        assert_eq!(failures, [Failure::Error("refused"), Failure::NoAnswer]);
    }

    #[tokio::test(start_paused = true)]
    async fn when_all_have_failed_nothing_waits_for_the_limit() {
        let list = addresses(&["[2001:db8::1]:1", "192.0.2.1:1"]);
        let began = Instant::now();
        let failed = connect(list, LIMIT, async |_| Err::<(), _>("refused"));
        assert_eq!(failed.await.unwrap_err().attempts.len(), 2);
        assert_eq!(began.elapsed(), millis(0));
    }
}
