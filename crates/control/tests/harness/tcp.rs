//! A sender like Linux: CUBIC (RFC 9438) with `HyStart`, SACK, loss detection by time (RFC 8985),
//! under bounds; and a receiver that acknowledges every second segment.

use std::collections::{BTreeSet, VecDeque};

use wakeai_control::{Bounds, CongestionState, ConnectionView};
use wakeai_units::{Bytes, Duration, Rate, Segments};

pub(crate) const MSS: u64 = 1448;
const MILLISECOND: u64 = 1_000_000;

struct Sent {
    at: u64,
    sacked: bool,
    lost: bool,
    /// When it was first sent, where `at` is a retransmission.
    first: Option<u64>,
}

pub(crate) struct Sender {
    pub(crate) id: u64,
    pub(crate) bounds: Bounds,
    una: u64,
    next: u64,
    window: VecDeque<Sent>,
    lost: BTreeSet<u64>,
    in_flight: u64,
    cwnd: f64,
    ssthresh: f64,
    state: CongestionState,
    recovery_until: u64,
    srtt: f64,
    rttvar: f64,
    latest: u64,
    min_rtt: u64,
    delivered: u64,
    newest_sacked_at: u64,
    pub(crate) rto_at: u64,
    pace_at: u64,
    cubic: Cubic,
    hystart: HyStart,
    pub(crate) timeouts: u64,
    backoff: u32,
    undo: Option<(f64, f64)>,
    pub(crate) losses: u64,
}

#[derive(Default)]
struct Cubic {
    w_max: f64,
    epoch: Option<u64>,
    k: f64,
    origin: f64,
    reno: f64,
}

struct HyStart {
    found: bool,
    round_end: u64,
    round_start: u64,
    last_ack: u64,
    samples: u32,
    current: u64,
}

/// By Newton's method: the C library's differs from machine to machine.
fn cube_root(value: f64) -> f64 {
    let mut root = value.max(1.0);
    for _ in 0..64 {
        root -= (root - value / (root * root)) / 3.0;
    }
    root
}

impl Sender {
    pub(crate) fn new(id: u64) -> Self {
        Self {
            id,
            bounds: Bounds::NONE,
            una: 0,
            next: 0,
            window: VecDeque::new(),
            lost: BTreeSet::new(),
            in_flight: 0,
            cwnd: 10.0,
            ssthresh: f64::INFINITY,
            state: CongestionState::Open,
            recovery_until: 0,
            srtt: 0.0,
            rttvar: 0.0,
            latest: 0,
            min_rtt: u64::MAX,
            delivered: 0,
            newest_sacked_at: 0,
            rto_at: u64::MAX,
            pace_at: 0,
            cubic: Cubic::default(),
            hystart: HyStart {
                found: false,
                round_end: 0,
                round_start: 0,
                last_ack: 0,
                samples: 0,
                current: u64::MAX,
            },
            timeouts: 0,
            backoff: 0,
            undo: None,
            losses: 0,
        }
    }

    pub(crate) fn view(&self) -> ConnectionView {
        ConnectionView {
            id: self.id,
            cwnd: Segments::new(self.cwnd as u32),
            mss: Bytes::new(MSS),
            smoothed_rtt: Duration::from_nanos(self.srtt as u64),
            latest_rtt: Duration::from_nanos(self.latest),
            min_rtt: Duration::from_nanos(if self.min_rtt == u64::MAX { 0 } else { self.min_rtt }),
            delivery_rate: Rate::ZERO,
            delivered: self.delivered,
            in_flight: Segments::new(self.in_flight as u32),
            congestion_state: self.state,
            sending: true,
        }
    }

    pub(crate) fn cwnd(&self) -> f64 {
        self.cwnd
    }

    /// The next segment to send now, if any; with a pacing bound, `Err` says when.
    pub(crate) fn poll_send(&mut self, now: u64) -> Result<Option<u64>, u64> {
        if self.in_flight >= (self.cwnd as u64).max(1) {
            return Ok(None);
        }
        if let Some(rate) = self.bounds.pacing {
            if now < self.pace_at {
                return Err(self.pace_at);
            }
            let gap = 1500 * 8 * 1_000_000_000 / rate.bits_per_second().max(1);
            self.pace_at = self.pace_at.max(now.saturating_sub(gap)) + gap;
        }
        self.in_flight += 1;
        if self.rto_at == u64::MAX {
            self.arm(now);
        }
        if let Some(sequence) = self.lost.pop_first() {
            let sent = &mut self.window[(sequence - self.una) as usize];
            sent.first.get_or_insert(sent.at);
            (sent.at, sent.lost) = (now, false);
            return Ok(Some(sequence));
        }
        self.window.push_back(Sent { at: now, sacked: false, lost: false, first: None });
        self.next += 1;
        Ok(Some(self.next - 1))
    }

    fn arm(&mut self, now: u64) {
        let rto = if self.srtt == 0.0 { 1e9 } else { self.srtt + (4.0 * self.rttvar).max(2e8) };
        self.rto_at = now + ((rto as u64) << self.backoff.min(8));
    }

    pub(crate) fn on_timeout(&mut self, now: u64) {
        self.timeouts += 1;
        self.backoff += 1;
        self.undo.get_or_insert((self.cwnd, self.ssthresh));
        self.reduce();
        self.cwnd = 1.0;
        self.state = CongestionState::Loss;
        self.recovery_until = self.next;
        for (sequence, sent) in (self.una..).zip(&mut self.window) {
            if !sent.sacked && !sent.lost {
                sent.lost = true;
                self.lost.insert(sequence);
            }
        }
        self.in_flight = 0;
        self.arm(now);
    }

    /// An ACK; returns the RTT sample.
    pub(crate) fn on_ack(&mut self, now: u64, cumulative: u64, received: &[u64]) -> Option<u64> {
        let mut acked = 0;
        let mut first_sent = u64::MAX;
        let mut spurious = false;
        let una = self.una;
        let mut take = |sender: &mut Self, sequence: u64| {
            let Some(sent) = sender.window.get_mut((sequence - una) as usize) else {
                return;
            };
            if sent.sacked {
                return;
            }
            sent.sacked = true;
            acked += 1;
            if sent.lost {
                sent.lost = false;
                sender.lost.remove(&sequence);
            } else {
                sender.in_flight -= 1;
                sender.newest_sacked_at = sender.newest_sacked_at.max(sent.at);
                // The timestamp option tells which copy is acknowledged (RFC 7323).
                let original = sent.first.filter(|_| now - sent.at < sender.min_rtt);
                let at = original.unwrap_or(sent.at);
                first_sent = first_sent.min(at);
                sender.min_rtt = sender.min_rtt.min(now - at);
                spurious |= original.is_some();
            }
        };
        for sequence in una..cumulative.max(una) {
            take(self, sequence);
        }
        for sequence in received.iter().filter(|sequence| **sequence >= una) {
            take(self, *sequence);
        }
        while self.window.front().is_some_and(|sent| sent.sacked) {
            self.window.pop_front();
            self.una += 1;
        }
        if acked == 0 {
            return None;
        }
        self.delivered += acked;
        let sample = (first_sent != u64::MAX).then(|| now - first_sent);
        if let Some(sample) = sample {
            self.take_rtt(sample);
        }
        if sample.is_some() {
            self.backoff = 0;
        }
        if let Some((cwnd, ssthresh)) = self.undo.filter(|_| spurious) {
            // F-RTO (RFC 5682) and Eifel (RFC 4015): the timeout was spurious.
            (self.cwnd, self.ssthresh) = (self.cwnd.max(cwnd), ssthresh);
            self.state = CongestionState::Open;
            self.undo = None;
            for sequence in std::mem::take(&mut self.lost) {
                self.window[(sequence - self.una) as usize].lost = false;
                self.in_flight += 1;
            }
        }
        self.arm(now);
        self.detect_losses();
        self.grow(now, acked as f64, sample);
        self.bind();
        sample
    }

    fn take_rtt(&mut self, sample: u64) {
        self.latest = sample;
        let sample = sample as f64;
        if self.srtt == 0.0 {
            (self.srtt, self.rttvar) = (sample, sample / 2.0);
        } else {
            self.rttvar += ((sample - self.srtt).abs() - self.rttvar) / 4.0;
            self.srtt += (sample - self.srtt) / 8.0;
        }
    }

    fn detect_losses(&mut self) {
        // Nothing is reordered here, so what was sent earlier than something delivered is lost.
        let mut found = false;
        for (sequence, sent) in (self.una..).zip(&mut self.window) {
            if !sent.sacked && !sent.lost && sent.at < self.newest_sacked_at {
                sent.lost = true;
                found = true;
                self.lost.insert(sequence);
                self.in_flight -= 1;
                self.losses += 1;
            }
            if sequence > self.una + 4000 {
                break;
            }
        }
        if found && self.state == CongestionState::Open {
            self.reduce();
            self.cwnd = self.ssthresh;
            self.state = CongestionState::Recovery;
            self.recovery_until = self.next;
        }
        if self.state != CongestionState::Open && self.una >= self.recovery_until {
            self.state = CongestionState::Open;
            self.undo = None;
        }
    }

    fn reduce(&mut self) {
        let cubic = &mut self.cubic;
        cubic.epoch = None;
        cubic.w_max = if self.cwnd < cubic.w_max { self.cwnd * 0.85 } else { self.cwnd };
        self.ssthresh = (self.cwnd * 0.7).max(2.0);
    }

    fn grow(&mut self, now: u64, acked: f64, sample: Option<u64>) {
        if self.state == CongestionState::Recovery {
            return;
        }
        if self.cwnd < self.ssthresh {
            if let Some(sample) = sample {
                self.on_slow_start_sample(now, sample);
            }
            self.cwnd = (self.cwnd + acked).min(self.ssthresh.max(self.cwnd));
            return;
        }
        let cubic = &mut self.cubic;
        let epoch = *cubic.epoch.get_or_insert_with(|| {
            cubic.reno = self.cwnd;
            if self.cwnd < cubic.w_max {
                cubic.k = cube_root((cubic.w_max - self.cwnd) / 0.4);
                cubic.origin = cubic.w_max;
            } else {
                (cubic.k, cubic.origin) = (0.0, self.cwnd);
            }
            now
        });
        let t = (now - epoch) as f64 / 1e9 + self.min_rtt as f64 / 1e9;
        let target = cubic.origin + 0.4 * (t - cubic.k) * (t - cubic.k) * (t - cubic.k);
        let per_window = if target > self.cwnd { target - self.cwnd } else { 0.01 };
        cubic.reno += 3.0 * 0.3 / 1.7 * acked / self.cwnd;
        let per_window = per_window.max(cubic.reno - self.cwnd);
        self.cwnd += (acked * per_window / self.cwnd).min(acked / 2.0);
    }

    fn on_slow_start_sample(&mut self, now: u64, sample: u64) {
        let hystart = &mut self.hystart;
        if self.una >= hystart.round_end {
            hystart.round_end = self.next;
            (hystart.round_start, hystart.last_ack) = (now, now);
            (hystart.samples, hystart.current) = (0, u64::MAX);
        }
        if hystart.found || self.cwnd < 16.0 {
            return;
        }
        if now - hystart.last_ack <= 2 * MILLISECOND {
            hystart.last_ack = now;
            hystart.found |= now - hystart.round_start > self.min_rtt / 2;
        }
        if hystart.samples < 8 {
            hystart.samples += 1;
            hystart.current = hystart.current.min(sample);
        } else {
            let slack = (self.min_rtt / 8).clamp(4 * MILLISECOND, 16 * MILLISECOND);
            hystart.found |= hystart.current > self.min_rtt + slack;
        }
        if hystart.found {
            self.ssthresh = self.cwnd;
        }
    }

    /// Floor and ceiling hold in every state but Loss.
    fn bind(&mut self) {
        if self.state != CongestionState::Loss {
            let floor = f64::from(self.bounds.floor.get());
            self.cwnd = self.cwnd.max(floor).min(f64::from(self.bounds.ceiling.get()));
        }
    }
}

#[derive(Default)]
pub(crate) struct Receiver {
    pub(crate) next: u64,
    early: BTreeSet<u64>,
    fresh: Vec<u64>,
    pub(crate) delayed_until: Option<u64>,
}

impl Receiver {
    /// A segment; true where an ACK is due now.
    pub(crate) fn on_data(&mut self, now: u64, sequence: u64) -> bool {
        let in_order = sequence == self.next && self.early.is_empty();
        if sequence >= self.next {
            self.early.insert(sequence);
        }
        while self.early.remove(&self.next) {
            self.next += 1;
        }
        self.fresh.push(sequence);
        self.delayed_until.get_or_insert(now + 40 * MILLISECOND);
        !in_order || self.fresh.len() >= 2
    }

    pub(crate) fn ack(&mut self) -> (u64, Vec<u64>) {
        self.delayed_until = None;
        let mut fresh = std::mem::take(&mut self.fresh);
        fresh.retain(|sequence| *sequence >= self.next);
        // A lost ACK would lose what it alone said: name what is missing no longer, up to 256.
        if !self.early.is_empty() {
            fresh = self.early.iter().rev().take(256).copied().collect();
        }
        (self.next, fresh)
    }
}
