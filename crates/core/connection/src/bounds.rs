//! The limits that a connection obeys: those of its congestion control, and that of its receive window.

use std::fmt;

use wakeai_units::{Bytes, Duration, Rate, Segments};

/// The limits of a station or of one of its connections. Those of sending concern the segments in
/// flight, the sending rate, and the bytes in the host's queue. That of receiving concerns the
/// window that is offered to the peer, which limits what the peer may have in flight.
///
/// A law keeps `floor` at or below `ceiling`. Where the ceiling of a connection is below the floor,
/// the ceiling holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The smallest congestion window, segments; zero is no bound.
    pub floor: Segments,
    /// The largest congestion window, segments; [`Segments::MAX`] is no bound.
    pub ceiling: Segments,
    /// The largest rate at which data is sent; `None` is no bound.
    pub pacing: Option<Rate>,
    /// The bytes that may wait in the host's queue. Linux's own limit for a connection (TCP small
    /// queues) may be as low as two packets, which is less than an aggregate. So a law raises the
    /// limit to the bytes of an aggregate. Zero leaves Linux's own limit. This bound takes effect
    /// only with a ceiling and without a pacing rate.
    pub small_queue: Bytes,
    /// The largest receive window, segments of the peer's size; [`Segments::MAX`] is no bound.
    pub receive: Segments,
    /// The largest rate at which datagrams are sent, which obey no window; `None` is no bound.
    pub rate: Option<Rate>,
    /// The time between two bursts: datagrams above the rate leave at multiples of it, so that those of one burst share an
    /// aggregate. Zero lets each leave by itself. It takes effect only where the host's queue obeys departure times.
    pub burst: Duration,
}

impl Bounds {
    /// No bounds: connections behave as under plain CUBIC.
    pub const NONE: Self = Self {
        floor: Segments::ZERO,
        ceiling: Segments::MAX,
        pacing: None,
        small_queue: Bytes::ZERO,
        receive: Segments::MAX,
        rate: None,
        burst: Duration::ZERO,
    };

    /// The floor is never above the ceiling.
    pub fn assert_order(&self) {
        debug_assert!(self.floor <= self.ceiling, "a floor above the ceiling: {self}");
    }

    /// The bounds of sending as the algorithms that apply them read them: the floor and the ceiling in segments, the
    /// rate in bytes per second, and the bytes in the host's queue. 0 is no bound. So a ceiling of 0 and a rate below
    /// 1 byte/s become 1.
    pub fn to_numbers(self) -> (u32, u32, u64, u64) {
        let Self { floor, ceiling, pacing, small_queue, receive: _, rate: _, burst: _ } = self;
        let ceiling = if ceiling == Segments::MAX { 0 } else { ceiling.get().max(1) };
        let pacing = pacing.map_or(0, |rate| rate.bytes_per_second().max(1));
        (floor.get(), ceiling, pacing, small_queue.get())
    }

    /// The bounds of sending with these [`Self::to_numbers`], without a bound of receiving.
    pub const fn from_numbers(floor: u32, ceiling: u32, pacing: u64, small_queue: u64) -> Self {
        Self {
            floor: Segments::new(floor),
            ceiling: if ceiling == 0 { Segments::MAX } else { Segments::new(ceiling) },
            pacing: match pacing {
                0 => None,
                bytes => Some(Rate::from_bps(bytes.saturating_mul(8))),
            },
            small_queue: Bytes::new(small_queue),
            receive: Segments::MAX,
            rate: None,
            burst: Duration::ZERO,
        }
    }

    /// Bounds of the window alone. A floor above the ceiling is lowered to the ceiling.
    pub fn window(floor: Segments, ceiling: Segments) -> Self {
        Self { floor: floor.min(ceiling), ceiling, ..Self::NONE }
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Self::NONE
    }
}

impl fmt::Display for Bounds {
    /// Formats bounds as `200..555`, `0..unbounded`, `1..2 at 3Mbit/s`, `9..30, 65.535kB in the
    /// host's queue`, `0..unbounded, receive window 40` or `0..unbounded, 3Mbit/s without a window`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ceiling == Segments::MAX {
            write!(f, "{}..unbounded", self.floor)?;
        } else {
            write!(f, "{}..{}", self.floor, self.ceiling)?;
        }
        if let Some(rate) = self.pacing {
            write!(f, " at {rate}")?;
        }
        if self.small_queue > Bytes::ZERO {
            write!(f, ", {} in the host's queue", self.small_queue)?;
        }
        if self.receive < Segments::MAX {
            write!(f, ", receive window {}", self.receive)?;
        }
        if let Some(rate) = self.rate {
            write!(f, ", {rate} without a window")?;
            if self.burst > Duration::ZERO {
                write!(f, " in bursts of {}", self.burst)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_existing_bounds_are_shown() {
        let window = Bounds::window(Segments::new(9), Segments::new(30));
        let small_queue = Bytes::new(65_535);
        let pacing = Some(Rate::from_mbps(3));
        let all = Bounds { pacing, small_queue, ..window };
        let receive = Bounds { receive: Segments::new(40), ..Bounds::NONE };
        let rate = Bounds { rate: pacing, ..Bounds::NONE };
        assert_eq!(rate.to_string(), "0..unbounded, 3Mbit/s without a window");
        let bursts = Bounds { burst: Duration::from_millis(14), ..rate };
        assert_eq!(bursts.to_string(), "0..unbounded, 3Mbit/s without a window in bursts of 14ms");
        assert_eq!(receive.to_string(), "0..unbounded, receive window 40");
        assert_eq!(Bounds::NONE.to_string(), "0..unbounded");
        assert_eq!(window.to_string(), "9..30");
        assert_eq!(all.to_string(), "9..30 at 3Mbit/s, 65.535kB in the host's queue");
    }

    #[test]
    fn a_bound_stays_a_bound_and_none_stays_none() {
        assert_eq!(Bounds::NONE.to_numbers(), (0, 0, 0, 0));
        assert_eq!(Bounds::from_numbers(0, 0, 0, 0), Bounds::NONE);
        let slow = Bounds {
            floor: Segments::ZERO,
            ceiling: Segments::ZERO,
            pacing: Some(Rate::from_bps(7)),
            small_queue: Bytes::new(9),
            receive: Segments::new(7),
            rate: Some(Rate::from_bps(7)),
            burst: Duration::from_millis(7),
        };
        assert_eq!(slow.to_numbers(), (0, 1, 1, 9));
        assert_eq!(Bounds::from_numbers(2, 5, 7, 9).to_numbers(), (2, 5, 7, 9));
    }
}
