//! Which connections carry a flow, and what they run.

use wakeai_scenario::{Expanded, Experiment, Flow};
use wakeai_units::{Bytes, Rate};

/// Payload of a datagram of a UDP flow.
pub const DATAGRAM: Bytes = Bytes::new(1_472);

/// A UDP sender without a rate sends this share of its station's PHY rate: more than the air
/// carries.
const SATURATING_PERCENT: u64 = 120;

/// The algorithm that a flow's sender runs. Under a law, `cubic` and `reno` on a station whose
/// agent bounds its connections are the bounded ones (DESIGN §5).
pub fn sender_algorithm(flow: &Flow, bounded: bool) -> Option<&str> {
    let asked = flow.algorithm.as_deref()?;
    Some(match asked {
        "cubic" if bounded => "wakeai_cubic",
        "reno" if bounded => "wakeai_reno",
        other => other,
    })
}

/// What connection `number` of `chunks`, from 0, carries of `size`: as even as whole bytes allow,
/// the remainder with the first ones.
pub fn chunk(size: Bytes, chunks: u32, number: u32) -> Bytes {
    let chunks = u64::from(chunks.max(1));
    let (each, more) = (size.get() / chunks, size.get() % chunks);
    Bytes::new(each + u64::from(u64::from(number) < more))
}

/// The rate of a UDP flow that has none of its own.
pub fn saturating_rate(experiment: &Experiment, expanded: &Expanded, flow: &Flow) -> Rate {
    let group = &experiment.stations[expanded.stations[flow.station()].group];
    let rate = group.radio.map_or(experiment.wired.rate, |radio| radio.rate);
    rate.mul_div(SATURATING_PERCENT, 100).unwrap_or(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_add_up_to_the_size() {
        let chunks = [0, 1, 2].map(|number| chunk(Bytes::new(10), 3, number));
        assert_eq!(chunks, [4, 3, 3].map(Bytes::new));
        assert_eq!(chunk(Bytes::new(7), 1, 0), Bytes::new(7));
    }
}
