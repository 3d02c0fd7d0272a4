//! Fuzzes a listener of `wakeai probe`, with datagrams and with the first bytes of connections.

use std::net::{Ipv4Addr, SocketAddr};

use strum::VariantArray as _;
use wakeai_probe::solo::StreamKey;
use wakeai_probe::{
    DatagramKind, HEADER_BYTES, Header, LONGEST_BYTES, Limits, Listener, Part, Seal, Token,
};
use wakeai_units::{Duration, Instant};

use crate::input::Input;

const TOKEN: Token = Token::from_bytes([9; 16]);
/// Sends arbitrary datagrams to a listener. Some have a valid authenticator, made with the token.
/// The others must get no answer, and no answer may be longer than its request.
pub(crate) fn target(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let limits = Limits { arrivals: 50, ..Limits::default() };
    let mut now = Instant::ZERO;
    let mut listener = Listener::new(now, &TOKEN, limits);
    while !input.is_empty() {
        now += Duration::from_micros(u64::from(input.count().min(1 << 24)));
        listener.handle_timeout(now);
        let from = SocketAddr::from((Ipv4Addr::LOCALHOST, u16::from(input.below(3)) + 1));
        if input.flag() {
            authentic(&mut input, &mut listener, now, from);
        } else {
            let length = usize::from(input.byte());
            let noise = input.bytes(length);
            assert_eq!(listener.handle_datagram(now, now, from, noise), None);
            if let Some(opening) = noise.first_chunk() {
                assert_eq!(StreamKey::new(&TOKEN).read(opening), None);
            }
        }
    }
    let tally = listener.tally();
    assert!(tally.sent_bytes <= tally.received_bytes, "{tally:?}");
}

fn authentic(input: &mut Input<'_>, listener: &mut Listener, now: Instant, from: SocketAddr) {
    let kind = DatagramKind::VARIANTS[usize::from(input.below(8))];
    let session = u64::from(input.below(2));
    let (burst, number) = (input.count(), input.count());
    let header = Header { kind, session, burst, number, tag: input.magnitude() };
    let length = HEADER_BYTES + input.count() as usize % (LONGEST_BYTES - HEADER_BYTES + 1);
    let mut buffer = [0; LONGEST_BYTES];
    let seal = Seal::new(&TOKEN);
    let datagram = seal.write(&header, &[], length, &mut buffer).expect("it fits");
    let Some(answer) = listener.handle_datagram(now, now, from, datagram) else { return };
    assert!(answer.len() <= datagram.len(), "{header:?}: {} bytes", answer.len());
    let (answered, body) = seal.read(answer).expect("its answers are authentic");
    assert_eq!(answered.session, session);
    if answered.kind == DatagramKind::Arrivals {
        let part = Part::decode(body).expect("a list");
        assert!(part.entries.len() <= part.total as usize, "{part:?}");
    }
}
