//! What this station delivers, what the air carries in total, what the station reaches alone.

use std::collections::{BTreeMap, VecDeque};

use wakeai_units::{Bytes, Duration, Instant, Rate};

use crate::{PeerView, StationView};

/// A total or solo rate holds this long after it was last reached.
const WINDOW: Duration = Duration::from_secs(10);

/// Ticks that an announced rate is the mean of.
const MEAN_TICKS: usize = 4;

/// The largest value of a sliding window, one candidate per tick.
#[derive(Clone, Debug, Default)]
struct WindowedMax {
    /// Falling values with their times: the front is the maximum.
    falling: VecDeque<(Instant, Rate)>,
}

impl WindowedMax {
    fn push(&mut self, now: Instant, value: Rate) {
        while self.falling.back().is_some_and(|(_, last)| *last <= value) {
            self.falling.pop_back();
        }
        self.falling.push_back((now, value));
        while self.falling.front().is_some_and(|(at, _)| now.saturating_since(*at) > WINDOW) {
            self.falling.pop_front();
        }
    }

    fn get(&self) -> Rate {
        self.falling.front().map_or(Rate::ZERO, |(_, value)| *value)
    }
}

/// Measures rates from tick to tick.
#[derive(Clone, Debug)]
pub(crate) struct RateWatch {
    configured_max: Option<Rate>,
    last_tick: Option<Instant>,
    /// Segments delivered as of the last tick, by connection.
    delivered: BTreeMap<u64, u64>,
    /// Bytes delivered in the last ticks, and their lengths.
    recent: VecDeque<(Bytes, Duration)>,
    rate: Rate,
    total: WindowedMax,
}

impl RateWatch {
    pub(crate) fn new(configured_max: Option<Rate>) -> Self {
        Self {
            configured_max,
            last_tick: None,
            delivered: BTreeMap::new(),
            recent: VecDeque::new(),
            rate: Rate::ZERO,
            total: WindowedMax::default(),
        }
    }

    pub(crate) fn on_tick(&mut self, now: Instant, own: &StationView, peers: &[PeerView]) {
        let before = std::mem::take(&mut self.delivered);
        let mut bytes = Bytes::ZERO;
        for connection in &own.connections {
            let earlier = before.get(&connection.id).copied().unwrap_or(connection.delivered);
            let segments = connection.delivered.saturating_sub(earlier);
            bytes = bytes
                .checked_add(Bytes::new(connection.mss.get().saturating_mul(segments)))
                .unwrap_or(bytes);
            self.delivered.insert(connection.id, connection.delivered);
        }
        let elapsed = self.last_tick.map_or(Duration::ZERO, |last| now.saturating_since(last));
        self.last_tick = Some(now);
        self.rate = Rate::of(bytes, elapsed);
        if self.recent.len() == MEAN_TICKS {
            self.recent.pop_front();
        }
        self.recent.push_back((bytes, elapsed));
        let announced: Rate = peers.iter().filter(|p| p.sending).map(|p| p.delivery_rate).sum();
        self.total.push(now, announced.saturating_add(self.mean()));
    }

    /// What was delivered since the tick before.
    pub(crate) fn delivered(&self) -> Rate {
        self.rate
    }

    /// The mean over some ticks: aggregates make a single tick a matter of luck.
    pub(crate) fn mean(&self) -> Rate {
        let sum = |(bytes, span): (Bytes, Duration), (more, longer): &(Bytes, Duration)| {
            (bytes.checked_add(*more).unwrap_or(bytes), span.saturating_add(*longer))
        };
        let (bytes, span) = self.recent.iter().fold((Bytes::ZERO, Duration::ZERO), sum);
        Rate::of(bytes, span)
    }

    /// What the air carries in total.
    pub(crate) fn total(&self) -> Rate {
        self.total.get()
    }

    /// What this station reaches alone.
    pub(crate) fn alone(&self) -> Option<Rate> {
        self.configured_max
    }
}
