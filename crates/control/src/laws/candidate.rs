//! Candidate 1: bounds from the number of stations (001 §3.2 step 2).

use wakeai_units::Segments;

use crate::{Bounds, Observation};

/// A station's share of the path and of the access point's buffer.
///
/// 001 does not print its rule. Ours follows Keceli, Inan and Ayanoglu (arXiv 0806.1089): uplink
/// windows may be as large as the ACKs that they cause fit in the access point's buffer. With
/// `C` what the air carries in total, `R` the minimum RTT, `B` the buffer in packets, `d` the data
/// segments per ACK and `n` the stations sending:
///
/// ceiling = (C·R/MSS + d·B) / n, floor = (C·R/MSS) / n.
///
/// `None` while `C` or `R` is not known: there is nothing to divide yet.
pub fn by_senders(observation: &Observation) -> Option<Bounds> {
    let rtt = observation.rtt?;
    if observation.total_rate.bits_per_second() == 0 || rtt.min.is_zero() {
        return None;
    }
    let path = Segments::in_flight(observation.total_rate, rtt.min, observation.mss());
    let acks = observation.access_point_buffer.saturating_mul(observation.segments_per_ack);
    let senders = observation.senders.max(1);
    let share = |total: Segments| Segments::new((total.get() / senders).max(1));
    Some(Bounds::window(share(path), share(path.saturating_add(Segments::new(acks)))))
}
