//! A client's dialogue with the proxy, and assertions for every dialogue. The fuzz targets use this
//! module, too.

use std::net::SocketAddr;

use wakeai_proxy::{Host, Negotiation, Outcome, REQUEST_LIMIT, Rejection, Target};

const CONNECTED: Outcome = Outcome::Connected(SocketAddr::new(
    std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 9)),
    0x1234,
));

/// The outcome of a dialogue: the result, the proxy's replies, and the data that the client sent early.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Talk {
    pub(crate) result: Result<Option<Target>, Rejection>,
    pub(crate) said: Vec<u8>,
    pub(crate) early: Vec<u8>,
}

pub(crate) fn talk(input: &[u8], piece: usize) -> Talk {
    let mut negotiation = Negotiation::default();
    let (mut result, mut said, mut fed) = (Ok(None), Vec::new(), 0);
    for bytes in input.chunks(piece) {
        fed += bytes.len();
        result = negotiation.handle_input(bytes);
        assert!(negotiation.held() <= REQUEST_LIMIT + 512 + bytes.len(), "bounded");
        while let Some(output) = negotiation.poll_transmit() {
            said.extend(output);
        }
        if !matches!(result, Ok(None)) {
            break;
        }
    }
    if matches!(result, Ok(Some(_))) {
        negotiation.answer(CONNECTED);
        while let Some(output) = negotiation.poll_transmit() {
            said.extend(output);
        }
    }
    let asked = matches!(result, Ok(Some(_)));
    let mut early = negotiation.into_early_data();
    early.extend(&input[fed..]);
    if !asked {
        early.clear();
    }
    Talk { result, said, early }
}

/// Passes the input to a negotiation whole, and to another one in pieces. Panics where the outcomes
/// differ, where a negotiation holds more bytes than allowed, or where the target is not valid.
pub(crate) fn check(input: &[u8], piece: usize) -> Talk {
    let whole = talk(input, input.len().max(1));
    assert_eq!(whole, talk(input, piece), "pieces of {piece} bytes change the outcome");
    if let Ok(Some(target)) = &whole.result {
        assert_ne!(target.port, 0);
        let sound = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        match &target.host {
            Host::Address(_) => {}
            Host::Name(name) => assert!(name.chars().all(sound), "{target:?}"),
        }
    }
    whole
}
