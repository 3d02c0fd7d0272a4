//! A negotiation with the proxy, and the properties of each. The fuzz targets use it, too.

use std::net::SocketAddr;

use wakeai_proxy::{Host, Negotiation, Outcome, REQUEST_LIMIT, Rejection, Target};

const CONNECTED: Outcome = Outcome::Connected(SocketAddr::new(
    std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 9)),
    0x1234,
));

/// The outcome of a negotiation, with all input at once or byte by byte.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Talk {
    pub(crate) result: Result<Option<Target>, Rejection>,
    pub(crate) said: Vec<u8>,
    pub(crate) early: Vec<u8>,
}

pub(crate) fn talk(input: &[u8], piece: usize) -> Talk {
    let mut negotiation = Negotiation::new();
    let (mut result, mut said, mut fed) = (Ok(None), Vec::new(), 0);
    for bytes in input.chunks(piece) {
        fed += bytes.len();
        result = negotiation.handle_input(bytes);
        assert!(negotiation.held() <= REQUEST_LIMIT + 256 + bytes.len(), "bounded");
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

/// Negotiates with all input at once and in pieces. Panics if the two differ, if more is held than
/// allowed, or if the target is one that cannot be asked for.
pub(crate) fn check(input: &[u8], piece: usize) -> Talk {
    let whole = talk(input, input.len().max(1));
    assert_eq!(whole, talk(input, piece), "the same in pieces of {piece}");
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
