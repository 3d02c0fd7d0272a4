//! The ceiling, the floor and the pacing rate that the law sets at a tick (a decision, one every
//! 0.5 s).

use wakeai_connection::Direction;
use wakeai_units::{Bytes, Duration, Instant, Rate, Segments};

use super::{OneWay, SETTLED_TICKS, Situation, aggregate, target};
use crate::driver::TICK;
use crate::observation::Side;
use crate::{Bounds, Phase};

/// The usual factor of the probe, permille. While the queueing delay is below half of the target, the
/// law multiplies the window of the station's share by it, to find unused airtime.
pub(super) const PROBE: u32 = 1250;
/// The queue is nearly empty while the queueing delay is below the target divided by this number.
/// After [`SETTLED_TICKS`] consecutive ticks with a nearly empty queue the factor of the probe is
/// multiplied by [`PROBE`], because the air has room. It rises up to the number of senders, with which
/// the station has the window of the whole air.
const EMPTY_PART: u64 = 3;
/// A probe of uploads ends where the station delivers more than this percentage of what its peers do, in [`SETTLED_TICKS`] ticks with
/// a queue within the target: then it takes what they lose, and finds no room.
const AHEAD_PERCENT: u64 = 115;
/// Where stations send and stations receive, a station leads while it delivers more than this percentage of what its peers do.
const LEADS_PERCENT: u64 = 105;
/// Beside whole aggregates, a part of one of this percentage or more is a further one. Of a smaller part there is a further
/// one in some ticks, so that the mean window grows evenly.
const FULL_PART_PERCENT: u64 = 60;
/// Slow stations, and those without aggregation, have so many packets in an aggregate at most. With them windows are a few segments, and
/// 2.5 rounded to 4 has a share and a half.
const FEW_PACKETS: u64 = 2;
/// The shortest minimum RTT with an opening phase. In this phase the window may double in each
/// round trip. A shorter path needs no opening phase, because the probe grows fast enough.
const OPENING_RTT: Duration = Duration::from_millis(150);
/// In a release the law sets no bounds, because stations without agents fill the queue and would
/// take the share of a bounded station. The exception is a floor for this time after the start of
/// the release.
const RECOVERY: Duration = Duration::from_secs(5);
/// This floor is the window for at least this percentage of the present rate, because what the station
/// delivered before strangers were found is less than its share.
const RECOVERY_PERCENT: u64 = 125;
/// In the opening phase the floor exceeds the present window by at most this many segments, or by
/// half of the window where that is more. So the host's queue does not get too many segments at
/// once.
const PUSH: u32 = 256;

/// The windows of connections that begin may double in each round trip of their first tick, up to this sum. From the initial window
/// of ten segments (RFC 6928) these are six doublings.
const BEGUN: Segments = Segments::new(640);

/// The number of round trips in a tick, in which slow start doubles a window; at least one, at most 16.
fn doublings(rtt: Duration) -> u32 {
    let round_trips = TICK.as_micros() / rtt.as_micros().max(1);
    u32::try_from(round_trips).unwrap_or(u32::MAX).clamp(1, 16)
}

fn scale(window: Segments, permille: u32) -> Segments {
    let scaled = u64::from(window.get()) * u64::from(permille) / 1000;
    Segments::new(u32::try_from(scaled).unwrap_or(u32::MAX))
}

/// The bounds of a station that does not send yet. `share` is the rate with which it would begin,
/// and `queue` is the target queueing delay.
pub(super) fn of_newcomer(share: Rate, queue: Duration, seen: Side<'_>) -> Bounds {
    let window = Segments::in_flight(share, target::PATH_UNKNOWN + queue, seen.own().mss());
    Bounds::window(Segments::ZERO, window.max(Segments::new(10)))
}

/// The bounds of a station that holds `window`, which is less than the window of its share.
pub(super) fn drained(window: Segments, situation: &Situation, seen: Side<'_>) -> Bounds {
    let ceiling = window.max(situation.least_window());
    Bounds { small_queue: small_queue(seen), ..Bounds::window(window, ceiling) }
}

/// The bytes that may wait in the host's queue: one aggregate. Zero where the station does not
/// aggregate, or where its PHY rate is not known.
fn small_queue(seen: Side<'_>) -> Bytes {
    aggregate::aggregate(seen.seen.link_rate).unwrap_or_default()
}

impl Situation {
    fn queue_is_empty(&self) -> bool {
        !self.trouble && self.path.growth < self.target / 2
    }

    /// Whether the queue is longer than the windows of stations with agents make it. Short targets are
    /// below the differences between turns, so half of the longest target counts at least. A station
    /// alone may fill a queue of its own up to the cap of its window.
    pub(super) fn queue_is_long(&self) -> bool {
        self.queue_is_long_for(self.target)
    }

    /// The same where the windows are those of this target.
    pub(super) fn queue_is_long_for(&self, target: Duration) -> bool {
        let least = if self.senders == 1 { self.capped_queue() } else { self.queue_max / 2 };
        let ours = (target * 2).max(least);
        self.path.growth > ours + self.path.min / 4
    }

    /// Whether the queue is somewhat longer than the target allows.
    pub(super) fn queue_exceeds_the_target(&self) -> bool {
        self.path.is_too_long(self.target)
    }

    /// Whether the queue is longer than any target allows, among several senders.
    pub(super) fn queue_is_far_too_long(&self) -> bool {
        self.path.growth > self.queue_max * 2 + self.path.min / 4
    }

    /// The queue that the cap of a window allows however short the target is.
    fn capped_queue(&self) -> Duration {
        self.queue_max * 7 / 10
    }

    /// Whether the queue is short enough for the opening phase. A burst of slow start alone can
    /// cause a queueing delay of a sixteenth of the minimum RTT.
    fn nothing_queues(&self) -> bool {
        !self.trouble && self.path.growth < self.target.max(self.path.min / 16)
    }

    /// What the windows of the connections that begin may become until the next tick, by slow start.
    fn begun(&self) -> Segments {
        let grown = scale(self.beginning, 1000 << doublings(self.path.current));
        grown.min(BEGUN.max(scale(self.beginning, 2000)))
    }

    /// The smallest window: two segments per connection, because the receiver acknowledges every
    /// second one at once.
    pub(super) fn least_window(&self) -> Segments {
        Segments::new(self.connections.saturating_mul(2).max(2))
    }
}

impl OneWay {
    pub(super) fn advance(&mut self, now: Instant, situation: &Situation) -> Phase {
        let first = self.ticks == 1;
        self.delivered.push(now, situation.rate);
        self.opening = (self.opening || first)
            && situation.path.min >= OPENING_RTT
            && situation.nothing_queues();
        if self.opening {
            return Phase::Opening;
        }
        let growth = situation.path.growth;
        let leads = self.leads(situation);
        self.leading = if leads { self.leading + 1 } else { self.leading.saturating_sub(1) };
        self.leading = self.leading.min(SETTLED_TICKS);
        // What the channel leaves rises by itself where the queue is short.
        let ends = leads || self.follows_the_channel();
        if situation.queue_is_empty() && !ends {
            self.probing = true;
        } else if growth > situation.target || ends || self.takes_from_peers(situation) {
            (self.probing, self.probe) = (false, PROBE);
        }
        let nearly_empty = !situation.trouble && growth < situation.target / EMPTY_PART;
        self.empty_ticks = if nearly_empty { self.empty_ticks + 1 } else { 0 };
        if self.empty_ticks == SETTLED_TICKS {
            self.empty_ticks = 0;
            let whole_air = situation.senders.saturating_mul(1000).max(PROBE);
            self.probe = (self.probe.saturating_mul(PROBE / 10) / 100).min(whole_air);
        }
        if self.probing { Phase::Probing } else { Phase::Steady }
    }

    /// Whether a probe of uploads, at a tick with a queue within the target, gives the station what its peers lose. Its own path may be the longer one, so that a queue that is
    /// not too long for it is too long for them.
    fn takes_from_peers(&mut self, situation: &Situation) -> bool {
        let limit = self.share.peers.times(AHEAD_PERCENT, 100);
        let ahead =
            situation.direction == Direction::Up && limit > Rate::ZERO && self.share.own > limit;
        self.ahead_ticks = if ahead { self.ahead_ticks + 1 } else { 0 };
        self.ahead_ticks >= SETTLED_TICKS
    }

    /// Whether the station delivers more than its peers, where the two directions wait in different queues: with fair queueing at the access
    /// point, uploads see a shorter delay than downloads, and the same window has a larger share.
    fn leads(&self, situation: &Situation) -> bool {
        let limit = self.share.peers.times(LEADS_PERCENT, 100);
        situation.both_ways && limit > Rate::ZERO && self.share.own > limit
    }

    /// The queueing delay for which the window is made. It is the target, and the longer a station leads, the more of it the delay that it
    /// sees, half of the target at least: by Little's law the window for the share at the present RTT has the share.
    fn queue(&self, situation: &Situation) -> Duration {
        let target = situation.target;
        let seen = situation.path.growth.clamp(target / 2, target);
        target - (target - seen) * u64::from(self.leading) / u64::from(SETTLED_TICKS)
    }

    /// Whether the windows follow what the channel leaves to uploads. Then stations of other access points hold windows that this station does
    /// not know.
    fn follows_the_channel(&self) -> bool {
        self.share.channel.left().is_some()
    }

    /// The window after the probe.
    fn probed(&self, window: Bytes) -> Bytes {
        let factor = if self.probing { u64::from(self.probe) } else { 1000 };
        Bytes::new(window.get().saturating_mul(factor) / 1000)
    }

    pub(super) fn window(&mut self, situation: &Situation, seen: Side<'_>) -> Bounds {
        let mss = seen.own().mss();
        let Situation { path, target, share, windowed, .. } = *situation;
        let fair = self.probed(windowed.bytes_in(path.min + self.queue(situation)));
        let wanted = fair.min(self.most(situation, seen));
        let smooth =
            self.window.map_or(wanted, |last| Bytes::new(last.get().midpoint(wanted.get())));
        self.window = Some(smooth);
        let least = situation.least_window();
        let whole = self.rounded(smooth, seen);
        // Recovery from random losses does not last longer. Where it does, the losses are congestion.
        let halvings = self.trouble.saturating_sub(SETTLED_TICKS).min(31);
        let floor = Segments::new(whole.get() >> halvings);
        let too_small =
            smooth.get().div_ceil(mss.get()) < u64::from(least.get()) && path.growth > target;
        let pacing =
            too_small.then(|| share.max(situation.rate).times(9, 8).max(Rate::of(mss, TICK)));
        // Where no rate is expected, the share of a station without peers is what it delivers, which proves no more.
        let expects = situation.phy_rate_known || seen.own().max_rate.is_some();
        let begun = match (seen.seen.live_peers, expects) {
            (0, false) => situation.begun(),
            _ => Segments::ZERO,
        };
        let ceiling = whole.max(least).saturating_add(begun);
        Bounds { pacing, small_queue: small_queue(seen), ..Bounds::window(floor, ceiling) }
    }

    /// The largest window. Announcements may be old or wrong, so it follows from the proved rate, at
    /// one and a half times the target, and at 70 % of the longest target at least. What a connection
    /// delivered in its first tick proves nothing, because it is that of less than a tick. Its window may double in each
    /// round trip of the next one, as in slow start. Where nothing was delivered yet, all windows may double once, and
    /// those that begin in each round trip, up to half of [`BEGUN`] for all live stations together, because all of them
    /// may begin within this tick.
    fn most(&self, situation: &Situation, seen: Side<'_>) -> Bytes {
        let mss = seen.own().mss();
        let Situation { path, target, .. } = *situation;
        let queue = (target + target / 2).max(situation.capped_queue());
        if let Some(rate) = self.proved(situation) {
            let proved = self.probed(rate.bytes_in(path.min + queue));
            proved.checked_add(situation.begun().bytes(mss)).unwrap_or(proved)
        } else {
            let part = BEGUN.get() / 2 / seen.seen.live_peers.saturating_add(1);
            let begun = situation.begun().min(Segments::new(part));
            scale(situation.window, 2000).max(begun).bytes(mss)
        }
    }

    /// The window in segments. It is even, because the receiver acknowledges every second segment at
    /// once, and the last one of an odd number only 40 ms later. Above one aggregate it is a number of
    /// aggregates with which no turn is nearly empty:
    ///
    /// - Where aggregates are short, whole ones ([`Self::aggregates`]).
    /// - Otherwise one, or one and a half and more. Just above one, each round has a nearly empty turn.
    ///
    /// Beside traffic of the other direction it is one up to one and a half, and only even above: the
    /// weights of the two directions differ a little, and a further step between them would be far from equal. Where the windows
    /// follow what the channel leaves and aggregates are not short, windows are only even, because they differ between the fleets on the channel.
    ///
    /// Stations with at most [`FEW_PACKETS`] in an aggregate compensate for the rounding in the next ticks, because
    /// their windows are a few segments. Where they follow the channel they do not: now and then the windows of all would be too long.
    fn rounded(&mut self, window: Bytes, seen: Side<'_>) -> Segments {
        let (link_rate, mss) = (seen.seen.link_rate, seen.own().mss().get());
        let even = |bytes: u64| ((bytes + mss) / (2 * mss) * 2).max(2);
        let (packets, bytes) = (aggregate::packets(link_rate, seen.own().mss()), window.get());
        let one = packets * mss;
        let whole = if packets <= FEW_PACKETS && self.follows_the_channel() {
            even(bytes)
        } else if packets <= FEW_PACKETS {
            let due = bytes.saturating_add_signed(self.owed);
            let whole = even(due);
            let rest = due.cast_signed() - (whole * mss).cast_signed();
            self.owed = rest.clamp(-(2 * mss).cast_signed(), (2 * mss).cast_signed());
            whole
        } else if seen.seen.has_both_directions() {
            if bytes >= one && bytes * 2 < one * 3 { even(one) } else { even(bytes) }
        } else if bytes >= one && aggregate::is_short_turn(link_rate) {
            self.aggregates(bytes, one) * packets
        } else if self.follows_the_channel() {
            even(bytes)
        } else if bytes >= one && bytes * 2 < one * 3 {
            if bytes * 4 < one * 5 { even(one) } else { even(one * 3 / 2) }
        } else {
            even(bytes)
        };
        Segments::new(u32::try_from(whole).unwrap_or(u32::MAX))
    }

    /// The number of aggregates of `one` byte count in a window of `bytes`, in this tick. With a limit between two numbers, stations with
    /// nearly equal windows would hold very different ones: 42 and 84 segments with 802.11ac.
    fn aggregates(&mut self, bytes: u64, one: u64) -> u64 {
        let part = (bytes % one * 100 / FULL_PART_PERCENT).min(one);
        self.owed = self.owed.saturating_add_unsigned(part);
        let more = self.owed >= one.cast_signed();
        if more {
            self.owed -= one.cast_signed();
        }
        bytes / one + u64::from(more)
    }

    /// The bounds in a release: a floor for `RECOVERY`, and then none. The floor restores the rate
    /// that the station lost to stations without agents. The floor is the window for the highest
    /// rate of the last ten seconds before the release, or for [`RECOVERY_PERCENT`] of the present
    /// rate where that is more, at the present RTT. It is dropped early where loss recovery lasts
    /// longer than [`SETTLED_TICKS`].
    pub(super) fn released_window(
        &mut self,
        now: Instant,
        situation: &Situation,
        seen: Side<'_>,
    ) -> Bounds {
        if self.release.lasts_for(now) > RECOVERY || self.trouble > SETTLED_TICKS {
            return Bounds::NONE;
        }
        let rate = self.delivered.get().max(situation.rate.times(RECOVERY_PERCENT, 100));
        let window = Segments::in_flight(rate, situation.path.current, seen.own().mss());
        Bounds::window(window, Segments::MAX)
    }

    /// The proved rate is the larger of two rates: the highest that this station delivered in the
    /// last ten seconds, and the median rate of its peers. `None` where both are zero.
    fn proved(&self, situation: &Situation) -> Option<Rate> {
        let own = self.delivered.get().max(situation.rate);
        let proved = own.max(self.share.median);
        (proved > Rate::ZERO).then_some(proved)
    }

    /// The bounds in the opening phase. The window may double twice, and is raised to twice what is in flight.
    ///
    /// The rate is a mean of the last tick, of several round trips of slow start, and lags behind it. A station without
    /// active peers fills nobody's queue but its own. So there the whole window counts as in flight, and the pacing rate
    /// follows the ceiling. Otherwise it follows the window, because stations that begin together would fill
    /// the queue at once.
    pub(super) fn opening_window(&mut self, situation: &Situation, seen: Side<'_>) -> Bounds {
        let (mss, path) = (seen.own().mss(), situation.path);
        let held = Rate::of(situation.window.bytes(mss), path.current);
        let rate = if situation.rate > Rate::ZERO { situation.rate } else { held };
        let flying = Segments::in_flight(rate, path.min, mss);
        let queue = Segments::in_flight(situation.windowed.max(rate), situation.target, mss);
        let limit = seen.seen.link_rate.map_or(Segments::MAX, |link_rate| {
            let part = link_rate / u64::from(seen.seen.senders.max(1));
            let most = Segments::in_flight(part, path.min + situation.target, mss);
            most.max(scale(flying, 2000).saturating_add(queue))
        });
        let alone = seen.seen.peers.is_empty();
        let flew = Segments::in_flight(if alone { rate.max(held) } else { rate }, path.min, mss);
        let ceiling = scale(flew, 4000).saturating_add(queue).min(limit);
        let ceiling = ceiling.max(situation.least_window());
        let push = Segments::new(PUSH.max(situation.window.get() / 2));
        let floor = scale(flying, 2000).min(limit).min(situation.window.saturating_add(push));
        let most = if alone {
            Rate::of(ceiling.bytes(mss), path.current).times(5, 4)
        } else {
            Rate::of(situation.window.max(floor).bytes(mss), path.current).times(5, 2)
        };
        self.window = Some(ceiling.bytes(mss));
        // At least one segment per tick, because a connection with a lower rate would stall.
        let pacing = Some(most.max(rate.times(3, 1)).max(Rate::of(mss, TICK)));
        Bounds { pacing, ..Bounds::window(floor, ceiling) }
    }
}

#[cfg(test)]
mod tests {

    use super::super::{Airtime, AirtimeKnobs};
    use super::*;
    use crate::observation::{example, peer, traffic, uploads};
    use crate::{Basis, Law, Observation, OwnTraffic, PeerView, RttView, Traffic};

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn rtt(min: Duration, growth: Duration) -> RttView {
        RttView { current: min + growth, min, growth }
    }

    /// A station on a path of 50 ms with a queueing delay of 50 ms. It delivers `mbps`, and its
    /// peers deliver `peers`. Each station reaches `max` alone. All rates are in Mbit/s.
    fn seen(mbps: u64, max: u64, peers: &[u64]) -> Observation {
        let max_rate = Some(Rate::from_mbps(max));
        let peers: Vec<PeerView> = (1..)
            .zip(peers)
            .map(|(id, mbps)| peer(id, uploads(Traffic { max_rate, ..traffic(*mbps) })))
            .collect();
        Observation {
            senders: peers.len() as u32 + 1,
            peers,
            up: OwnTraffic {
                connections: vec![example()],
                rtt: Some(rtt(ms(50), ms(50))),
                mean_rate: Rate::from_mbps(mbps),
                max_rate,
                ..OwnTraffic::default()
            },
            ..Observation::default()
        }
    }

    fn at_phy(mbps: u64, seen: Observation) -> Observation {
        Observation { link_rate: Some(Rate::from_mbps(mbps)), ..seen }
    }

    /// The observation with another RTT of the uploads.
    fn with_rtt(min: Duration, growth: Duration, seen: Observation) -> Observation {
        let up = OwnTraffic { rtt: Some(rtt(min, growth)), ..seen.up };
        Observation { up, ..seen }
    }

    /// Consecutive ticks of a law.
    struct Ticks {
        law: Airtime,
        count: u64,
    }

    impl Ticks {
        fn new() -> Self {
            Self { law: Airtime::new(AirtimeKnobs::default()), count: 0 }
        }

        fn tick(&mut self, seen: &Observation) -> (Bounds, Option<Phase>) {
            self.count += 1;
            let (bounds, basis) = self.law.on_tick(Instant::ZERO + TICK * self.count, seen);
            let phase = match basis {
                Basis::Airtime { up, .. } => up.map(|state| state.phase),
                _ => None,
            };
            (bounds, phase)
        }
    }

    fn first(seen: &Observation) -> Bounds {
        Ticks::new().tick(seen).0
    }

    /// The bounds after thirty ticks with the same observation.
    fn settled(seen: &Observation) -> Bounds {
        let mut ticks = Ticks::new();
        (0..30).map(|_| ticks.tick(seen).0).last().expect("it ticked")
    }

    /// The target of the stations of `seen`, which announce no PHY rate: a turn, and a twelfth of the path of 50 ms.
    const TARGET: Duration = Duration::from_micros(6_000 + 50_000 / 12);

    #[test]
    fn a_window_is_the_share_times_path_and_queue() {
        // Each of the four stations reaches 40 Mbit/s alone.
        let bounds = settled(&seen(10, 40, &[10, 10, 10]));
        let window = Segments::in_flight(Rate::from_mbps(10), ms(50) + TARGET, Bytes::new(1448));
        assert_eq!(window, Segments::new(52));
        assert_eq!((bounds.floor, bounds.ceiling, bounds.pacing), (window, window, None));
    }

    #[test]
    fn the_window_does_not_depend_on_the_own_rate() {
        let equal = settled(&seen(10, 40, &[10, 10, 10]));
        let behind = settled(&seen(8, 40, &[10, 10, 12]));
        assert_eq!((behind.floor, behind.ceiling), (equal.floor, equal.ceiling));
    }

    /// The window that is held for this many segments at this PHY rate, Mbit/s.
    fn rounded(link_mbps: u64, segments: u64) -> u32 {
        let mut law = OneWay::new(AirtimeKnobs::default());
        let seen = at_phy(link_mbps, seen(10, 40, &[]));
        law.rounded(Bytes::new(segments * 1448), seen.side(Direction::Up)).get()
    }

    #[test]
    fn windows_are_even_and_no_turn_is_nearly_empty() {
        // An aggregate at 65 Mbit/s has 28 packets.
        for (segments, held) in
            [(1, 2), (3, 4), (20, 20), (27, 28), (28, 28), (34, 28), (36, 42), (41, 42), (50, 50)]
        {
            assert_eq!(rounded(65, segments), held, "{segments} at 65 Mbit/s");
        }
        // At 390 Mbit/s it has 42 packets, and its turn is short.
        for (segments, held) in [(24, 24), (41, 42), (67, 42), (68, 84), (94, 84), (110, 126)] {
            assert_eq!(rounded(390, segments), held, "{segments} at 390 Mbit/s");
        }
    }

    #[test]
    fn the_mean_of_whole_aggregates_grows_with_the_window() {
        let mean = |segments: u64| {
            let mut law = OneWay::new(AirtimeKnobs::default());
            let seen = at_phy(390, seen(10, 40, &[]));
            let held = (0..120)
                .map(|_| law.rounded(Bytes::new(segments * 1448), seen.side(Direction::Up)).get());
            let held: Vec<u32> = held.collect();
            assert!(held.iter().all(|window| window % 42 == 0), "{held:?}");
            held.iter().sum::<u32>() / 120
        };
        // Of an aggregate of 42 packets 60 % are 25.
        assert_eq!([42, 50, 55, 60, 67, 68, 80, 84].map(mean), [42, 55, 63, 71, 83, 84, 84, 84]);
    }

    #[test]
    fn a_probe_of_uploads_ends_where_the_station_takes_what_its_peers_lose() {
        let phases = |own: u64, direction| {
            let mut law = OneWay::new(AirtimeKnobs::default());
            (law.share.own, law.share.peers) = (Rate::from_bps(own), Rate::from_mbps(10));
            // An empty queue, and then one of 40 ms, where the target is 50 ms.
            [0, 40, 40, 40, 40, 40].map(|growth| {
                let situation = Situation { direction, ..Situation::example(50, growth) };
                law.advance(Instant::ZERO, &situation)
            })
        };
        let [probes, holds] = [Phase::Probing, Phase::Steady];
        assert_eq!(
            phases(11_600_000, Direction::Up),
            [probes, probes, probes, probes, holds, holds]
        );
        assert_eq!(phases(11_500_000, Direction::Up), [probes; 6]);
        assert_eq!(phases(11_600_000, Direction::Down), [probes; 6]);
    }

    /// A station with a path of 50 ms, a queueing delay of `growth_ms`, and a target of 50 ms. It delivers `own` kbit/s, and
    /// each of its peers 10 Mbit/s. Returns the phase of the sixth tick, and the queueing delay for which its window is made in each of the first six
    /// ticks.
    fn leads(own: u64, growth_ms: u64, both_ways: bool) -> (Phase, [u64; 6]) {
        let mut law = OneWay::new(AirtimeKnobs::default());
        (law.share.own, law.share.peers) = (Rate::from_bps(own * 1000), Rate::from_mbps(10));
        let situation = Situation { both_ways, ..Situation::example(50, growth_ms) };
        let ticks = [(); 6].map(|()| {
            let phase = law.advance(Instant::ZERO, &situation);
            (phase, law.queue(&situation).as_millis())
        });
        (ticks[5].0, ticks.map(|(_, queue)| queue))
    }

    #[test]
    fn where_both_directions_send_a_station_with_more_than_its_peers_holds_the_window_of_the_delay_it_sees()
     {
        assert_eq!(leads(10_600, 30, true), (Phase::Steady, [45, 40, 35, 30, 30, 30]));
        assert_eq!(leads(10_600, 10, true).1[5], 25, "half of the target at least");
        assert_eq!(leads(10_600, 60, true).1, [50; 6], "the target at most");
        assert_eq!(leads(10_500, 30, true).1, [50; 6], "it has as much as its peers");
        assert_eq!(leads(10_600, 30, false).1, [50; 6], "one direction");
    }

    #[test]
    fn where_both_directions_send_a_station_with_more_than_its_peers_does_not_probe() {
        let phase = |own, both_ways| leads(own, 10, both_ways).0;
        assert_eq!(phase(10_600, true), Phase::Steady);
        assert_eq!(phase(10_500, true), Phase::Probing);
        assert_eq!(phase(10_600, false), Phase::Probing);
    }

    #[test]
    fn a_station_that_no_longer_leads_comes_back_to_the_target() {
        let mut law = OneWay::new(AirtimeKnobs::default());
        law.share.peers = Rate::from_mbps(10);
        let situation = Situation { both_ways: true, ..Situation::example(50, 30) };
        let queues = [11, 11, 11, 11, 11, 10, 10, 10, 10].map(|own| {
            law.share.own = Rate::from_mbps(own);
            law.advance(Instant::ZERO, &situation);
            law.queue(&situation).as_millis()
        });
        assert_eq!(queues, [45, 40, 35, 30, 30, 35, 40, 45, 50]);
    }

    #[test]
    fn the_law_gives_a_station_that_leads_the_window_of_the_delay_it_sees() {
        let held = |tenths: u64, receives: bool| {
            let mut seen = with_rtt(ms(50), ms(6), at_phy(65, seen(9, 40, &[9, 9, 9])));
            seen.up.mean_rate = Rate::from_bps(tenths * 100_000);
            if receives {
                let max_rate = Some(Rate::from_mbps(40));
                let announced = &mut seen.peers[0].announced;
                (announced.up.rate, announced.down) =
                    (Rate::from_mbps(8), Traffic { max_rate, ..traffic(1) });
            }
            settled(&seen).ceiling
        };
        // With a share of 10 Mbit/s 48.4 segments are under way in 56 ms, 52 in 50 ms and the target, and 50.2 in these where nobody receives.
        assert_eq!(held(99, true), Segments::new(48));
        assert_eq!(held(90, true), Segments::new(52), "it has as much as its peers");
        assert_eq!(held(99, false), Segments::new(50), "nobody receives");
    }

    #[test]
    fn beside_the_other_direction_windows_are_one_aggregate_up_to_one_and_a_half_and_else_even() {
        let mut law = OneWay::new(AirtimeKnobs::default());
        let mut seen = at_phy(65, seen(10, 40, &[10]));
        seen.peers[0].announced.down = traffic(10);
        let mut rounded = |segments: u64| {
            law.rounded(Bytes::new(segments * 1448), seen.side(Direction::Up)).get()
        };
        let held = [21, 29, 41, 42, 50].map(&mut rounded);
        assert_eq!(held, [22, 28, 28, 42, 50], "an aggregate has 28 packets");
    }

    #[test]
    fn later_ticks_compensate_where_windows_are_a_few_frames() {
        // At 5 Mbit/s an aggregate has two packets.
        for link_mbps in [54, 5] {
            let seen = at_phy(link_mbps, seen(10, 40, &[]));
            let mut law = OneWay::new(AirtimeKnobs::default());
            let seen = seen.side(Direction::Up);
            let held = (0..40).map(|_| law.rounded(Bytes::new(1448 * 27 / 10), seen).get());
            let held: Vec<u32> = held.collect();
            assert!(held.iter().all(|window| [2, 4].contains(window)), "{held:?}");
            assert_eq!(held.iter().sum::<u32>(), 108, "27 tenths in each of 40 ticks: {held:?}");
        }
    }

    #[test]
    fn announcements_fill_at_most_70_percent_of_the_longest_target() {
        // Each of the two peers announces the rate of the whole air. This station has delivered
        // 2 Mbit/s. Of the longest target 70 % are 52.5 ms.
        let bounds = settled(&seen(2, 40, &[40, 40]));
        let proved = |mbps| {
            let path = ms(50) + Duration::from_micros(52_500);
            let exact = Segments::in_flight(Rate::from_mbps(mbps), path, Bytes::new(1448)).get();
            exact.saturating_sub(2)..=exact + 2
        };
        assert!(proved(2).contains(&bounds.ceiling.get()), "{bounds}");
        // With three peers their median rate counts, 4 Mbit/s, although one announces 900 Mbit/s.
        let bounds = settled(&seen(2, 40, &[4, 4, 900]));
        assert!(proved(4).contains(&bounds.ceiling.get()), "{bounds}");
    }

    #[test]
    fn before_the_first_delivery_the_window_at_most_doubles() {
        assert_eq!(first(&seen(0, 100, &[])).ceiling, Segments::new(200));
    }

    #[test]
    fn what_another_connection_delivers_does_not_limit_one_that_begins() {
        let few_bytes = |begins| {
            let mut seen = seen(0, 100, &[]);
            seen.up.mean_rate = Rate::from_bps(4_200);
            seen.up.connections[0].begins = begins;
            seen.up.connections[0].figures.cwnd = Segments::new(10);
            first(&seen).ceiling
        };
        assert_eq!(few_bytes(false), Segments::new(2));
        // On a path of 100 ms slow start doubles five times in a tick.
        assert_eq!(few_bytes(true), Segments::new(320));
    }

    #[test]
    fn a_connection_that_begins_doubles_once_per_round_trip() {
        let of = |rtt_ms| doublings(ms(rtt_ms));
        assert_eq!([0, 40, 100, 249, 251, 900].map(of), [16, 12, 5, 2, 1, 1]);
        let begun = |beginning| {
            let beginning = Segments::new(beginning);
            Situation { beginning, ..Situation::example(100, 0) }.begun().get()
        };
        assert_eq!(
            [0, 10, 30, 500].map(begun),
            [0, 320, 640, 1000],
            "640 segments, or one doubling"
        );
    }

    #[test]
    fn the_floor_halves_with_each_tick_of_recovery_after_the_fourth() {
        let calm = seen(10, 40, &[10, 10, 10]);
        let mut connection = example();
        connection.figures.congestion_state = wakeai_connection::CongestionState::Recovery;
        let up = OwnTraffic { connections: vec![connection], ..calm.up.clone() };
        let trouble = Observation { up, ..calm.clone() };
        let mut ticks = Ticks::new();
        for floor in [52, 52, 52, 52, 26, 13, 6] {
            let (bounds, _) = ticks.tick(&trouble);
            assert_eq!((bounds.floor.get(), bounds.ceiling.get()), (floor, 52));
        }
        assert_eq!(ticks.tick(&calm).0.floor.get(), 52);
        for _ in 0..100 {
            ticks.tick(&trouble);
        }
        assert_eq!(ticks.tick(&trouble).0.floor.get(), 0);
    }

    #[test]
    fn the_least_window_is_two_segments_per_connection() {
        let crowd = |connections, growth| {
            let mut crowd = Observation { senders: 40, ..seen(0, 4, &[]) };
            crowd.up.connections = vec![example(); connections];
            with_rtt(ms(3), growth, crowd)
        };
        assert_eq!(first(&crowd(1, ms(80))).ceiling, Segments::new(2));
        assert_eq!(first(&crowd(5, ms(80))).ceiling, Segments::new(10));
        let pacing = first(&crowd(1, ms(80))).pacing;
        assert_eq!(pacing, Rate::from_mbps(4).mul_div(9, 40 * 8), "9/8 of the share");
        assert_eq!(first(&crowd(1, ms(6))).pacing, None, "the queueing delay is at the target");
        assert_eq!(first(&seen(10, 40, &[10, 10, 10])).pacing, None);
    }

    #[test]
    fn an_aggregate_may_wait_in_the_host_s_queue() {
        let budget = |phy| first(&at_phy(phy, seen(10, 40, &[10, 10, 10]))).small_queue;
        assert_eq!(budget(65), Bytes::new(44_557));
        assert_eq!(budget(390), Bytes::new(65_535));
        assert_eq!(budget(54), Bytes::ZERO);
        assert_eq!(first(&seen(10, 40, &[10, 10, 10])).small_queue, Bytes::ZERO, "unknown");
    }

    #[test]
    fn below_half_of_the_target_the_window_probes() {
        let full = seen(10, 40, &[10, 10, 10]);
        let with = |growth| with_rtt(ms(50), ms(growth), full.clone());
        let mut ticks = Ticks::new();
        let mut last = Segments::ZERO;
        for _ in 0..10 {
            // Half of the target are 5.08 ms, and a third 3.39 ms.
            let (bounds, phase) = ticks.tick(&with(5));
            assert_eq!(phase, Some(Phase::Probing));
            last = bounds.ceiling;
        }
        assert!((62..=68).contains(&last.get()), "5/4 of 52: {last}");
        assert_eq!(
            ticks.tick(&with(8)).1,
            Some(Phase::Probing),
            "until the queue is at its target"
        );
        assert_eq!(ticks.tick(&with(12)).1, Some(Phase::Steady));
        assert_eq!(ticks.tick(&with(8)).1, Some(Phase::Steady), "until it is short again");
    }

    #[test]
    fn the_probe_grows_where_the_queue_stays_nearly_empty() {
        let empty = with_rtt(ms(50), ms(3), seen(10, 40, &[10, 10, 10]));
        let mut ticks = Ticks::new();
        let windows: Vec<u32> = (0..12).map(|_| ticks.tick(&empty).0.ceiling.get()).collect();
        assert!((62..=68).contains(&windows[2]), "5/4 of 52: {windows:?}");
        assert!((76..=84).contains(&windows[6]), "25/16 of 52 after the fourth tick: {windows:?}");
        assert!((96..=104).contains(&windows[10]), "125/64 of 52 after the eighth: {windows:?}");
    }

    #[test]
    fn what_follows_the_channel_is_even_alone_and_does_not_probe() {
        use super::super::channel::{Figures, Queue};
        let mut law = OneWay::new(AirtimeKnobs::default());
        let queue = Queue { exceeds_the_target: true, is_too_long: true };
        law.share.channel.on_tick(Figures { sum: 500_000, senders: 8, peer: 60_000, queue });
        assert!(law.follows_the_channel());
        let rounded = |law: &mut OneWay, link, segments: u64| {
            let seen = at_phy(link, seen(10, 40, &[]));
            law.rounded(Bytes::new(segments * 1448), seen.side(Direction::Up)).get()
        };
        // At 65 Mbit/s an aggregate has 28 packets, and at 54 Mbit/s none is formed.
        assert_eq!([30, 34, 38].map(|segments| rounded(&mut law, 65, segments)), [30, 34, 38]);
        assert_eq!([5, 5, 5].map(|segments| rounded(&mut law, 54, segments)), [6, 6, 6]);
        assert_eq!(law.owed, 0);
        // At 390 Mbit/s aggregates are short, and whole.
        assert_eq!(rounded(&mut law, 390, 68), 84);
        let phase = law.advance(Instant::ZERO, &Situation::example(50, 0));
        assert_eq!(phase, Phase::Steady, "the queue is empty");
    }

    #[test]
    fn a_probe_ends_at_the_window_of_the_whole_air() {
        let last = |seen: Observation| {
            let empty = with_rtt(ms(50), ms(3), seen);
            let mut ticks = Ticks::new();
            (0..80).map(|_| ticks.tick(&empty).0.ceiling.get()).last().expect("it ticked")
        };
        let whole = Segments::in_flight(Rate::from_mbps(40), ms(50) + TARGET, Bytes::new(1448));
        assert!(last(seen(10, 40, &[10, 10, 10])).abs_diff(whole.get()) <= 2, "four shares");
        let alone = last(seen(40, 40, &[]));
        assert!(alone.abs_diff(whole.get() * 5 / 4) <= 2, "a quarter more: {alone} of {whole}");
    }

    #[test]
    fn an_empty_queue_outweighs_announced_senders() {
        // Sixty peers announce that they send, at a rate of zero. A queueing delay of 18 ms is less
        // than a third of the target, which is 75 ms.
        let crowd = at_phy(65, seen(3, 40, &[0; 60]));
        let with_queue = |growth| with_rtt(ms(20), ms(growth), crowd.clone());
        let mut ticks = Ticks::new();
        let mut window = |growth, count| {
            (0..count).map(|_| ticks.tick(&with_queue(growth)).0.ceiling).last().expect("it ticked")
        };
        let share = window(30, 20);
        assert!(window(18, 40).get() >= 4 * share.get(), "above the share");
        assert!(window(30, 1).get() >= 4 * share.get(), "kept while the queue is short");
        let long = window(80, 8);
        assert!(long.get() <= share.get() + 2, "until the queue is long: {long} of {share}");
    }

    #[test]
    fn in_the_opening_phase_of_a_station_without_active_peers_the_window_counts_as_delivered() {
        let opening = |window, peers: &[u64]| {
            let mut seen = with_rtt(ms(150), ms(0), seen(4, 40, peers));
            seen.up.connections[0].figures.cwnd = Segments::new(window);
            first(&seen)
        };
        for (peers, more) in [(&[][..], 4 * 100), (&[4], 0)] {
            let [short, long] = [100, 200].map(|window| opening(window, peers));
            assert_eq!(long.floor, short.floor, "the floor follows what was delivered");
            assert_eq!(long.ceiling.get() - short.ceiling.get(), more, "{short} {long}");
            assert!(long.pacing > short.pacing, "{short} {long}");
        }
    }

    #[test]
    fn connections_that_begin_share_what_all_live_stations_may_begin_with() {
        // Nothing is delivered yet. On a path of 50 ms ten segments double nine times and more in a tick.
        let ceiling = |live_peers| {
            let mut seen = with_rtt(ms(50), ms(0), seen(0, 40, &[]));
            seen.live_peers = live_peers;
            seen.up.connections[0].begins = true;
            seen.up.connections[0].figures.cwnd = Segments::new(10);
            first(&at_phy(65, seen)).ceiling.get()
        };
        // The window of the share, a quarter of 320 segments, and one doubling.
        assert_eq!([0, 3, 400].map(ceiling), [250, 80, 20]);
    }

    #[test]
    fn a_path_of_150_ms_opens_once_until_there_is_a_queue() {
        let on = |min, growth| with_rtt(ms(min), ms(growth), seen(4, 40, &[]));
        assert_ne!(Ticks::new().tick(&on(149, 0)).1, Some(Phase::Opening));
        assert_ne!(
            Ticks::new().tick(&on(150, 30)).1,
            Some(Phase::Opening),
            "there is a queue already"
        );
        let mut ticks = Ticks::new();
        for _ in 0..5 {
            let (bounds, phase) = ticks.tick(&on(150, 0));
            assert_eq!(phase, Some(Phase::Opening));
            // At 4 Mbit/s a path of 150 ms holds 52 segments.
            assert_eq!(bounds.floor, Segments::new(104), "twice the segments in flight");
            assert!(
                bounds.ceiling >= Segments::new(208),
                "four times the segments in flight: {bounds}"
            );
            assert!(bounds.pacing >= Some(Rate::from_mbps(12)), "{bounds}");
        }
        assert_ne!(ticks.tick(&on(150, 30)).1, Some(Phase::Opening));
        assert_ne!(ticks.tick(&on(150, 0)).1, Some(Phase::Opening), "it opens only once");
    }

    #[test]
    fn an_idle_station_has_a_ceiling_for_its_share_and_no_floor() {
        let idle = |peers: &[u64]| {
            let max_rate = Some(Rate::from_mbps(40));
            let up = OwnTraffic { max_rate, ..OwnTraffic::default() };
            Observation { up, senders: (peers.len() as u32).max(1), ..seen(0, 40, peers) }
        };
        let newcomer = |share, queue| {
            let path = ms(100) + Duration::from_micros(queue);
            Segments::in_flight(Rate::from_mbps(share), path, Bytes::new(1448))
        };
        // No path is known, so 100 ms are assumed, and the target is 14.333 ms.
        let bounds = first(&idle(&[10, 10, 10]));
        assert_eq!(bounds, Bounds::window(Segments::ZERO, newcomer(10, 14_333)));
        let bounds = first(&idle(&[]));
        assert_eq!(bounds, Bounds::window(Segments::ZERO, newcomer(40, 14_333)));
        // At 4 Gbit/s the target ends where its ACKs fill 80 % of the access point's buffer: at
        // 1.39 ms.
        let mut fast = idle(&[]);
        fast.up.max_rate = Some(Rate::from_mbps(4_000));
        assert_eq!(first(&fast).ceiling, newcomer(4_000, 1_390));
        assert_eq!(
            first(&idle(&[1; 400])).ceiling,
            Segments::new(10),
            "an initial window at least"
        );
        let unknown = Observation { up: OwnTraffic::default(), ..idle(&[10]) };
        assert_eq!(first(&unknown), Bounds::NONE);
    }

    #[test]
    fn a_pause_resets_the_law() {
        let busy = seen(10, 40, &[10, 10, 10]);
        let idle = Observation { up: OwnTraffic::default(), ..busy.clone() };
        let mut ticks = Ticks::new();
        for _ in 0..20 {
            ticks.tick(&busy);
        }
        ticks.tick(&idle);
        let slow = seen(1, 4, &[1, 1, 1]);
        assert_eq!(ticks.tick(&slow).0, first(&slow));
    }

    #[test]
    fn a_release_has_a_floor_for_five_seconds() {
        let mut ticks = Ticks::new();
        let alone = seen(30, 40, &[]);
        for _ in 0..10 {
            ticks.tick(&alone);
        }
        let beside = at_phy(65, with_rtt(ms(50), ms(450), seen(4, 40, &[])));
        let bound = (0..10).find(|_| ticks.tick(&beside).1 == Some(Phase::Released));
        assert!(bound.is_some());
        let (bounds, _) = ticks.tick(&beside);
        let before = Segments::in_flight(Rate::from_mbps(30), ms(500), Bytes::new(1448));
        assert_eq!(bounds, Bounds::window(before, Segments::MAX));
        for _ in 0..10 {
            ticks.tick(&beside);
        }
        assert_eq!(ticks.tick(&beside), (Bounds::NONE, Some(Phase::Released)));
    }

    #[test]
    fn the_floor_of_a_release_is_above_the_present_rate() {
        let mut ticks = Ticks::new();
        // The station never had more than 4 Mbit/s.
        let beside = at_phy(65, with_rtt(ms(50), ms(450), seen(4, 40, &[])));
        let bound = (0..10).find(|_| ticks.tick(&beside).1 == Some(Phase::Released));
        assert!(bound.is_some());
        let floor = Segments::in_flight(Rate::from_mbps(5), ms(500), Bytes::new(1448));
        assert_eq!(ticks.tick(&beside).0, Bounds::window(floor, Segments::MAX));
    }
}
