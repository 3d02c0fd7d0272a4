//! The list of the datagrams that have arrived at a listener, and its form in the answer to the
//! sender.

use wakeai_units::Instant;

/// The arrival of one datagram of a burst at the listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BurstArrival {
    /// The flow of the datagram.
    pub flow: u8,
    /// The number that the sender gave the datagram.
    pub number: u32,
    /// The time of the arrival, by the listener's clock.
    pub at: Instant,
}

/// The length of one arrival in the body of an answer: flow, number, time.
const ENTRY_BYTES: usize = 1 + 4 + 8;
/// The length of the head of a body: the number of all arrivals of the burst, and the losses at the
/// listener's own socket.
const HEAD_BYTES: usize = 8;

/// A part of the list of arrivals of a burst.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The number of all arrivals of the burst until now.
    pub total: u32,
    /// The number of datagrams, since the session began, that arrived but were lost because the
    /// listener's own socket had no room.
    pub overflowed: u32,
    /// Arrivals, in the order in which they came.
    pub entries: Vec<BurstArrival>,
}

/// The largest number of arrivals that fit into a body of this length.
pub(crate) const fn entries_in(body_bytes: usize) -> usize {
    body_bytes.saturating_sub(HEAD_BYTES) / ENTRY_BYTES
}

impl Part {
    /// Writes the body of an answer.
    pub(crate) fn encode(total: u32, overflowed: u32, entries: &[BurstArrival]) -> Vec<u8> {
        let mut body = Vec::with_capacity(HEAD_BYTES + entries.len() * ENTRY_BYTES);
        body.extend(total.to_be_bytes());
        body.extend(overflowed.to_be_bytes());
        for BurstArrival { flow, number, at } in entries {
            body.push(*flow);
            body.extend(number.to_be_bytes());
            body.extend(at.as_nanos().to_be_bytes());
        }
        body
    }

    /// Reads the body of an answer; `None` where no list has this length.
    pub fn decode(body: &[u8]) -> Option<Self> {
        let (head, entries) = body.split_first_chunk::<HEAD_BYTES>()?;
        let [t0, t1, t2, t3, o0, o1, o2, o3] = *head;
        if entries.len() % ENTRY_BYTES != 0 {
            return None;
        }
        let entry = |bytes: &[u8]| -> Option<BurstArrival> {
            let (&flow, rest) = bytes.split_first()?;
            let (number, at) = rest.split_first_chunk::<4>()?;
            let at = Instant::from_nanos(u64::from_be_bytes(at.try_into().ok()?));
            Some(BurstArrival { flow, number: u32::from_be_bytes(*number), at })
        };
        let entries: Option<Vec<_>> = entries.chunks_exact(ENTRY_BYTES).map(entry).collect();
        let total = u32::from_be_bytes([t0, t1, t2, t3]);
        Some(Self { total, overflowed: u32::from_be_bytes([o0, o1, o2, o3]), entries: entries? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_reads_as_it_was_written_and_a_torn_one_is_refused() {
        let arrival = |number| BurstArrival { flow: 1, number, at: Instant::from_nanos(1 << 60) };
        let entries = vec![arrival(0), arrival(u32::MAX)];
        let body = Part::encode(9, 3, &entries);
        assert_eq!(entries_in(body.len()), 2);
        assert_eq!(Part::decode(&body), Some(Part { total: 9, overflowed: 3, entries }));
        for length in (0..body.len()).filter(|length| ![8, 21].contains(length)) {
            assert_eq!(Part::decode(&body[..length]), None, "{length}");
        }
    }
}
