//! Bianchi's model of a saturated uplink (IEEE JSAC 18(3), 2000) for 802.11g, with the limit on
//! attempts of Wu et al. (INFOCOM 2002).

/// Times in microseconds of 802.11g with IP packets of 1500 bytes at 54 Mbit/s and control frames
/// at 24 Mbit/s. Each frame includes its signal extension of 6 us.
const SLOT: f64 = 9.0;
const SIFS: f64 = 10.0;
const DIFS: f64 = 28.0;
const DATA: f64 = 254.0;
/// The time of an ACK, of an RTS and of a CTS: two symbols each.
const CONTROL: f64 = 34.0;
/// EIFS: SIFS, an ACK at 6 Mbit/s (44 us and 6 us of signal extension), and DIFS.
const EIFS: f64 = SIFS + 50.0 + DIFS;

const CW_MIN: f64 = 16.0;
const DOUBLINGS: i32 = 6;
const ATTEMPTS: i32 = 7;
const PAYLOAD_BITS: f64 = 1_472.0 * 8.0;

/// The wait after a collision before the stations count down again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterCollision {
    /// DIFS: no station decoded a frame, so the medium was only busy.
    Difs,
    /// EIFS: the other stations decoded a header, and wait for an answer that does not arrive.
    Eifs,
}

/// The figures of the model for a saturated BSS.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Saturated {
    /// The probability that an attempt collides.
    pub collision: f64,
    /// The goodput of UDP payload, Mbit/s.
    pub mbps: f64,
}

/// The model for `stations` stations, with RTS/CTS or without.
pub fn saturated(stations: u32, rts: bool, after: AfterCollision) -> Saturated {
    let (attempt, collision) = fixed_point(stations);
    let others = f64::from(stations);
    let idle = (1.0 - attempt).powf(others);
    let success = others * attempt * (1.0 - attempt).powf(others - 1.0);
    let gap = match after {
        AfterCollision::Difs => DIFS,
        AfterCollision::Eifs => EIFS,
    };
    let exchange = DATA + SIFS + CONTROL + DIFS;
    let (good, bad) = if rts {
        (2.0 * (CONTROL + SIFS) + exchange, CONTROL + gap)
    } else {
        (exchange, DATA + gap)
    };
    let slot = idle * SLOT + success * good + (1.0 - idle - success) * bad;
    Saturated { collision, mbps: success * PAYLOAD_BITS / slot }
}

/// The probability of an attempt in a slot, and the probability that it collides (Bianchi's
/// equations 7 and 9).
fn fixed_point(stations: u32) -> (f64, f64) {
    let mut collision = 0.5_f64;
    let mut attempt = 0.0;
    for _ in 0..10_000 {
        let reached = |tries: i32| collision.powi(tries);
        let window = |tries: i32| 2.0_f64.powi(tries.min(DOUBLINGS)) * CW_MIN;
        let transmissions: f64 = (0..ATTEMPTS).map(reached).sum();
        let slots: f64 = (0..ATTEMPTS).map(|i| reached(i) * f64::midpoint(window(i), 1.0)).sum();
        attempt = transmissions / slots;
        let others = f64::from(stations) - 1.0;
        collision = f64::midpoint(collision, 1.0 - (1.0 - attempt).powf(others));
    }
    (attempt, collision)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_collision_probabilities_are_the_published_ones() {
        for (stations, expected) in [(1, 0.0), (10, 0.389), (40, 0.600)] {
            let found = saturated(stations, false, AfterCollision::Difs).collision;
            assert!((found - expected).abs() < 0.001, "{stations}: {found}");
        }
    }

    #[test]
    fn what_follows_a_collision_costs_what_was_worked_out_by_hand() {
        // This is 23.3 Mbit/s of IP packets at 40 stations with DIFS, and 21.6 Mbit/s with EIFS.
        for (after, ip_mbps) in [(AfterCollision::Difs, 23.3), (AfterCollision::Eifs, 21.6)] {
            let found = saturated(40, false, after).mbps * 1_500.0 / 1_472.0;
            assert!((found - ip_mbps).abs() < 0.1, "{after:?}: {found}");
        }
    }

    #[test]
    fn rts_loses_with_one_station_and_wins_with_forty() {
        let mbps = |stations, rts| saturated(stations, rts, AfterCollision::Difs).mbps;
        assert!(mbps(1, true) < mbps(1, false) && mbps(40, true) > mbps(40, false));
    }
}
