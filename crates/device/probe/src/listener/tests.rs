//! Tests of the listening end: what it answers, and whom it refuses.

use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;

const TOKEN: Token = Token::from_bytes([3; 16]);
const SESSION: u64 = 77;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn peer(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), port))
}

fn header(kind: DatagramKind, session: u64, burst: u32, number: u32) -> Header {
    Header { kind, session, burst, number, tag: 0 }
}

fn written(token: &Token, header: &Header, length: usize) -> Vec<u8> {
    let mut buffer = [0; LONGEST_BYTES];
    Seal::new(token).write(header, &[], length, &mut buffer).unwrap().to_vec()
}

fn request(kind: DatagramKind, burst: u32, number: u32, length: usize) -> Vec<u8> {
    written(&TOKEN, &header(kind, SESSION, burst, number), length)
}

/// A listener that has begun a session with port 1.
fn greeted() -> Listener {
    let mut listener = Listener::new(at(0), &TOKEN, Limits::default());
    let hello = request(DatagramKind::Hello, 0, 0, HEADER_BYTES);
    assert!(listener.handle_datagram(at(0), at(0), peer(1), &hello).is_some());
    listener
}

#[test]
fn only_a_hello_with_the_token_is_answered_at_first() {
    let mut listener = Listener::new(at(0), &TOKEN, Limits::default());
    for kind in [
        DatagramKind::Data,
        DatagramKind::Fetch,
        DatagramKind::Ping,
        DatagramKind::Bye,
        DatagramKind::Welcome,
    ] {
        let datagram = request(kind, 0, 0, 500);
        assert_eq!(listener.handle_datagram(at(1), at(1), peer(1), &datagram), None, "{kind:?}");
    }
    let forged =
        written(&Token::from_bytes([4; 16]), &header(DatagramKind::Hello, SESSION, 0, 0), 500);
    assert_eq!(listener.handle_datagram(at(1), at(1), peer(1), &forged), None);
    assert_eq!((listener.session(), listener.ended(), listener.tally().refused), (None, None, 6));
}

#[test]
fn arrivals_are_listed_in_parts_that_fit_into_the_request() {
    let mut listener = greeted();
    for number in [0, 2, 3] {
        let data = request(DatagramKind::Data, 1, number, 1_000);
        assert_eq!(
            listener.handle_datagram(at(9), at(10 + u64::from(number)), peer(2), &data),
            None
        );
    }
    let mut fetch = |from, length| {
        let fetch = request(DatagramKind::Fetch, 1, from, length);
        let answer = listener.handle_datagram(at(20), at(20), peer(1), &fetch)?.to_vec();
        assert!(answer.len() <= length);
        let (header, body) = Seal::new(&TOKEN).read(&answer).map(|(h, b)| (h, b.to_vec())).unwrap();
        assert_eq!((header.kind, header.burst, header.number), (DatagramKind::Arrivals, 1, from));
        let part = Part::decode(&body).unwrap();
        assert_eq!(part.total, 3);
        Some(part.entries.iter().map(|entry| (entry.number, entry.at)).collect::<Vec<_>>())
    };
    assert_eq!(fetch(0, 1_472).unwrap(), [(0, at(10)), (2, at(12)), (3, at(13))]);
    assert_eq!(fetch(1, HEADER_BYTES + 8 + 13).unwrap(), [(2, at(12))]);
    assert_eq!(fetch(9, 1_472).unwrap(), []);
    assert_eq!(fetch(0, HEADER_BYTES), None, "not even the head of a list fits");
}

#[test]
fn a_new_burst_replaces_the_one_before_and_stragglers_do_not_count() {
    let mut listener = greeted();
    for (burst, number) in [(1, 0), (2, 5), (1, 1)] {
        listener.handle_datagram(
            at(1),
            at(1),
            peer(1),
            &request(DatagramKind::Data, burst, number, 100),
        );
    }
    let fetch = request(DatagramKind::Fetch, 2, 0, 500);
    let answer = listener.handle_datagram(at(2), at(2), peer(1), &fetch).unwrap().to_vec();
    let part = Part::decode(Seal::new(&TOKEN).read(&answer).unwrap().1).unwrap();
    assert_eq!(part.entries.iter().map(|entry| entry.number).collect::<Vec<_>>(), [5]);
}

#[test]
fn another_session_and_another_address_are_refused() {
    let mut listener = greeted();
    let other = written(&TOKEN, &header(DatagramKind::Hello, SESSION + 1, 0, 0), 500);
    assert_eq!(listener.handle_datagram(at(1), at(1), peer(1), &other), None);
    let elsewhere = SocketAddr::from((Ipv4Addr::new(198, 51, 100, 9), 1));
    for kind in [DatagramKind::Hello, DatagramKind::Fetch, DatagramKind::Ping, DatagramKind::Bye] {
        let replayed = request(kind, 0, 0, 500);
        assert_eq!(listener.handle_datagram(at(1), at(1), elsewhere, &replayed), None, "{kind:?}");
    }
    assert_eq!(listener.ended(), None, "a Bye of another session ends nothing");
    assert_eq!(listener.tally().answers, 1);
}

#[test]
fn a_session_that_has_ended_does_not_begin_again() {
    let mut listener = greeted();
    listener.handle_datagram(at(1), at(1), peer(1), &request(DatagramKind::Bye, 0, 0, 100));
    assert_eq!((listener.ended(), listener.next_timeout()), (Some(Ending::Done), None));
    for kind in [DatagramKind::Hello, DatagramKind::Ping] {
        let again = request(kind, 0, 0, 500);
        assert_eq!(listener.handle_datagram(at(2), at(2), peer(1), &again), None);
    }
}

#[test]
fn it_ends_without_a_sender_after_silence_and_after_the_longest_session() {
    let limits = Limits {
        wait: Duration::from_secs(2),
        silence: Duration::from_secs(3),
        session: Duration::from_secs(7),
        ..Limits::default()
    };
    let mut alone = Listener::new(at(0), &TOKEN, limits);
    alone.handle_timeout(at(1_999));
    assert_eq!((alone.ended(), alone.next_timeout()), (None, Some(at(2_000))));
    alone.handle_timeout(at(2_000));
    assert_eq!(alone.ended(), Some(Ending::NobodyCame));

    let mut left = Listener { limits, ..greeted() };
    assert_eq!(left.next_timeout(), Some(at(3_000)));
    left.handle_timeout(at(3_000));
    assert_eq!(left.ended(), Some(Ending::Silence));

    let mut long = Listener { limits, ..greeted() };
    for ms in (0..7_000).step_by(1_000) {
        long.handle_timeout(at(ms));
        long.handle_datagram(at(ms), at(ms), peer(1), &request(DatagramKind::Ping, 0, 0, 100));
    }
    long.handle_timeout(at(7_000));
    assert_eq!(long.ended(), Some(Ending::TooLong));
}

#[test]
fn answers_keep_to_their_rate() {
    let mut listener = greeted();
    let ping = request(DatagramKind::Ping, 0, 0, 100);
    let mut answered = 0;
    for tick in 0..40_000_u64 {
        let now = Instant::from_nanos(tick * 50_000); // 20,000 requests per second for 2 s
        answered += u64::from(listener.handle_datagram(now, now, peer(1), &ping).is_some());
    }
    assert!(
        (2_900..=3_001).contains(&answered),
        "a second's worth, and 1,000 per second: {answered}"
    );
}

#[test]
fn a_burst_that_is_too_long_is_cut() {
    let mut listener = greeted();
    listener.limits.arrivals = 2;
    for number in 0..5 {
        listener.handle_datagram(
            at(1),
            at(1),
            peer(1),
            &request(DatagramKind::Data, 1, number, 100),
        );
    }
    assert_eq!(listener.session.unwrap().arrivals.len(), 2);
}

#[derive(Clone, Debug)]
enum Sent {
    Noise(Vec<u8>),
    Ours { kind: DatagramKind, session: u64, burst: u32, number: u32, length: usize, port: u16 },
}

fn any_sent() -> impl Strategy<Value = Sent> {
    let kinds = [
        DatagramKind::Hello,
        DatagramKind::Welcome,
        DatagramKind::Data,
        DatagramKind::Fetch,
        DatagramKind::Arrivals,
        DatagramKind::Ping,
        DatagramKind::Pong,
        DatagramKind::Bye,
    ];
    let kind = prop::sample::select(kinds.to_vec());
    let ours = (kind, 76..79_u64, 0..3_u32, 0..4_u32, HEADER_BYTES..=LONGEST_BYTES, 1..3_u16);
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200).prop_map(Sent::Noise),
        ours.prop_map(|(kind, session, burst, number, length, port)| Sent::Ours {
            kind,
            session,
            burst,
            number,
            length,
            port
        }),
    ]
}

proptest! {
    #[test]
    fn no_answer_is_longer_than_its_request_whatever_comes(all in prop::collection::vec(any_sent(), 0..60)) {
        let mut listener = Listener::new(at(0), &TOKEN, Limits::default());
        for (ms, sent) in (0..).zip(all) {
            let (datagram, port) = match sent {
                Sent::Noise(bytes) => (bytes, 1),
                Sent::Ours { kind, session, burst, number, length, port } => {
                    (written(&TOKEN, &header(kind, session, burst, number), length), port)
                }
            };
            let answer = listener.handle_datagram(at(ms), at(ms), peer(port), &datagram);
            prop_assert!(answer.is_none_or(|answer| answer.len() <= datagram.len()));
        }
        let tally = listener.tally();
        prop_assert!(tally.sent_bytes <= tally.received_bytes);
    }
}
