//! A channel: the air that access points and their stations share.

use std::collections::BTreeSet;

use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;
use wakeai_units::Instant;

use super::AirEvent;
use super::attempt::Attempt;
use super::config::WifiConfig;
use super::contention::{ContenderRules, Contention};
use super::hidden::Partial;
use super::link::Common;
use super::reception::Reception;
use crate::base::earlier;
use crate::error::ConfigError;

/// The air of one channel. Nothing crosses from one channel to another.
///
/// Where every contender hears every other, the fields below describe what is on the air. Otherwise it is
/// `partial`, and the other fields stay as they were made.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    /// The backoffs of all contenders of the medium. Those of other channels stay quiet here.
    pub(crate) contention: Contention,
    /// The transmissions on the air, until `busy_until`.
    pub(crate) on_air: Vec<Attempt>,
    pub(crate) busy_until: Option<Instant>,
    /// The reception of the aggregate on the air, as long as an MPDU (frame) is to arrive before
    /// the last one.
    pub(crate) reception: Option<Reception>,
    /// The end of the last exchange.
    pub(crate) quiet_since: Instant,
    /// The state of a channel on which not all hear each other.
    pub(crate) partial: Option<Box<Partial>>,
    pub(crate) rng: Pcg64Mcg,
}

impl Channel {
    /// The attempts on the air, of which one may be that of `contender`.
    pub(crate) fn attempts_of(&self, contender: usize) -> impl Iterator<Item = &Attempt> {
        let own = self.partial.as_ref().and_then(|partial| partial.attempt(contender));
        self.on_air.iter().chain(own)
    }

    /// The earlier one of `before` and of the next event on the channel with this number.
    #[inline]
    pub(crate) fn next_event(
        &self,
        number: u32,
        before: Option<(Instant, AirEvent)>,
    ) -> Option<(Instant, AirEvent)> {
        if let Some(partial) = &self.partial {
            let event = partial.next_event().map(|at| (at, AirEvent::Partial(number)));
            return earlier(before, event);
        }
        let access = || self.contention.next_access().map(|at| (at, AirEvent::AirBegins(number)));
        let end = self.busy_until.map(|end| (end, AirEvent::AirEnds(number)));
        let mpdu = self.reception.map(|one| (one.at, AirEvent::MpduEnds(number)));
        earlier(earlier(before, mpdu), end.or_else(access))
    }

    /// Ends the busy period at `end`. After it all contenders except the senders wait `deferral` slots more
    /// than usual.
    pub(crate) fn fall_idle(&mut self, end: Instant, deferral: u64) {
        self.quiet_since = end;
        self.contention.idle_from(end, deferral);
    }
}

/// The channels of a medium.
pub(crate) struct Channels {
    /// The number of each in the configuration.
    pub(crate) numbers: Vec<u32>,
    pub(crate) channels: Vec<Channel>,
}

/// Makes a channel for each number that an access point has, in the order of the access points. The first
/// uses `rng`, and each other a generator of its own.
pub(crate) fn channels(
    config: &WifiConfig,
    rules: &[ContenderRules],
    rng: Pcg64Mcg,
) -> Result<Channels, ConfigError> {
    let mut numbers = Vec::new();
    for one in &config.access_points {
        if !numbers.contains(&one.channel) {
            numbers.push(one.channel);
        }
    }
    let members = Members::new(config);
    let channel_of = |contender: usize| members.channel_of(contender);
    let mut seeds = rng.clone();
    let mut first = Some(rng);
    let channels = numbers.iter().map(|number| {
        let of = config.access_points.iter().find(|one| one.channel == *number);
        let bss = &of.expect("the number is that of an access point").bss;
        let (standard, common) = (bss.standard, Common::new(bss)?);
        let is_member = |contender| channel_of(contender) == *number;
        let partial = members.has_hidden(*number).then(|| {
            let hears = |one, other| members.hear(*number, one, other);
            Box::new(Partial::new(&common, rules, hears))
        });
        Ok(Channel {
            contention: Contention::new(standard.sifs(), standard.slot(), rules, is_member),
            on_air: Vec::with_capacity(rules.len()),
            busy_until: None,
            reception: None,
            quiet_since: Instant::ZERO,
            partial,
            rng: first.take().unwrap_or_else(|| Pcg64Mcg::from_rng(&mut seeds)),
        })
    });
    let channels: Result<Vec<_>, ConfigError> = channels.collect();
    let channels = channels?;
    Ok(Channels { numbers, channels })
}

/// The contenders, the stations first and the access points last, and which of them hear each other.
struct Members<'a> {
    config: &'a WifiConfig,
    /// The pairs of zones that do not hear each other, each with the smaller number first.
    hidden: BTreeSet<(u32, u32)>,
}

impl<'a> Members<'a> {
    fn new(config: &'a WifiConfig) -> Self {
        let ordered = |(one, other): &(u32, u32)| (*one.min(other), *one.max(other));
        Self { config, hidden: config.hidden.iter().map(ordered).collect() }
    }

    /// The access point of a contender, and the contender's zone.
    fn place(&self, contender: usize) -> (usize, u32) {
        let WifiConfig { stations, access_points, .. } = self.config;
        match contender.checked_sub(stations.len()) {
            Some(place) => (place, access_points[place].zone),
            None => (stations[contender].access_point as usize, stations[contender].zone),
        }
    }

    fn channel_of(&self, contender: usize) -> u32 {
        self.config.access_points[self.place(contender).0].channel
    }

    /// Whether two contenders are on this channel and hear each other.
    fn hear(&self, channel: u32, one: usize, other: usize) -> bool {
        if self.channel_of(one) != channel || self.channel_of(other) != channel {
            return false;
        }
        let stations = self.config.stations.len();
        let ((ap, zone), (other_ap, other_zone)) = (self.place(one), self.place(other));
        let are_linked = ap == other_ap && (one < stations) != (other < stations);
        are_linked || !self.hidden.contains(&(zone.min(other_zone), zone.max(other_zone)))
    }

    /// Whether two contenders of this channel do not hear each other.
    fn has_hidden(&self, channel: u32) -> bool {
        let all = self.config.stations.len() + self.config.access_points.len();
        let on_channel = |one: &usize| self.channel_of(*one) == channel;
        !self.hidden.is_empty()
            && (0..all)
                .filter(on_channel)
                .any(|one| (0..one).filter(on_channel).any(|other| !self.hear(channel, one, other)))
    }
}
