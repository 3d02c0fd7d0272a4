//! Histograms over the connections, the peers and the ticks, for the metrics.

use wakeai_daemon::metrics::Histogram;
use wakeai_units::Duration;

use crate::report::Connections;

/// The upper bounds of the buckets for delays, in seconds.
const DELAYS: &[f64] = &[0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0];
/// The upper bounds of the buckets for the time of a tick, in seconds.
const TICKS: &[f64] = &[0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5];
/// The upper bounds of the buckets for rates, in bytes per second: from 0.1 Mbit/s to 1 Gbit/s.
const RATES: &[f64] =
    &[1.25e4, 6.25e4, 1.25e5, 2.5e5, 6.25e5, 1.25e6, 2.5e6, 6.25e6, 1.25e7, 1.25e8];
/// The upper bounds of the buckets for congestion windows, in segments.
const WINDOWS: &[f64] = &[2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 4096.0];
const BYTES_PER_MEGABIT: f64 = 125_000.0;

/// Histograms over the connections, the peers and the ticks. Each tick adds one observation per sending connection and per
/// sending peer. Labels with one value per connection or peer are not used, because their number would grow without
/// bound.
#[derive(Clone, Debug)]
pub(crate) struct Distributions {
    pub(crate) rtt: Histogram,
    pub(crate) window: Histogram,
    pub(crate) peer_rate: Histogram,
    pub(crate) peer_delay: Histogram,
    /// How long ticks took.
    pub(crate) tick: Histogram,
}

impl Default for Distributions {
    fn default() -> Self {
        Self {
            rtt: Histogram::new(DELAYS.iter().copied()),
            window: Histogram::new(WINDOWS.iter().copied()),
            peer_rate: Histogram::new(RATES.iter().copied()),
            peer_delay: Histogram::new(DELAYS.iter().copied()),
            tick: Histogram::new(TICKS.iter().copied()),
        }
    }
}

impl Distributions {
    /// Adds the sending connections and the sending peers of a tick.
    pub(crate) fn observe(&mut self, connections: &Connections, peers: &[wakeai_api::Peer]) {
        for (connection, _) in connections.iter().filter(|(_, sends)| *sends) {
            let figures = &connection.figures;
            self.rtt.observe(figures.smoothed_rtt.unwrap_or(Duration::ZERO).as_secs_f64());
            self.window.observe(f64::from(figures.cwnd.get()));
        }
        for peer in peers.iter().filter(|peer| peer.sending) {
            self.peer_rate.observe(bytes(peer.delivery_rate_mbps));
            self.peer_delay.observe(peer.growth_ms / 1000.0);
        }
    }
}

/// Converts a rate from Mbit/s to bytes per second.
pub(crate) fn bytes(mbps: f64) -> f64 {
    (mbps * BYTES_PER_MEGABIT).round()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, SocketAddr};

    use wakeai_daemon::metrics::{Format, Page, Unit};
    use wakeai_kernel::{Figures, Receiving, Socket, TcpSnapshot};
    use wakeai_units::Segments;

    #[test]
    fn a_rate_is_in_bytes_per_second() {
        assert!((bytes(8.0) - 1_000_000.0).abs() < f64::EPSILON);
    }

    #[test]
    fn only_those_that_send_are_observed() {
        let figures = Figures {
            cwnd: Segments::new(3),
            smoothed_rtt: Some(Duration::from_millis(20)),
            ..Figures::default()
        };
        let unknown = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let socket =
            Socket { cookie: 1, netns_cookie: 1, netns_inode: 1, local: unknown, remote: unknown };
        let one = TcpSnapshot {
            socket,
            figures,
            receiving: Receiving::default(),
            algorithm: "cubic".into(),
        };
        let mut distributions = Distributions::default();
        distributions.observe(&Connections::new(vec![one.clone(), one], vec![true, false]), &[]);
        let mut page = Page::new();
        page.histogram("rtt", Unit::Seconds, "help", &distributions.rtt);
        page.histogram("window", Unit::Segments, "help", &distributions.window);
        let text = page.text(Format::Text);
        assert!(text.contains("\nrtt_seconds_sum 0.02\n"), "{text}");
        assert!(text.contains("\nwindow_segments_bucket{le=\"4\"} 1\n"), "{text}");
        assert!(text.contains("\nwindow_segments_bucket{le=\"2\"} 0\n"), "{text}");
    }
}
