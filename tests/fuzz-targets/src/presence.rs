//! Fuzzes the receipt of presence messages, by which agents announce themselves. The messages come
//! from members of the group and from outsiders, who do not know the group's key.

use wakeai_control::common::{LawNumber, QueueParameters};
use wakeai_control::presence::{
    AgentFigures, BootId, Challenge, Codec, FleetCodec, FleetContent, FleetMessage, Label,
    MESSAGE_LEN, Presence, StationFigures,
};
use wakeai_control::{
    Announcement, Bounds, Clocks, CommonLaw, ControllerConfig, LawConfig, LawName, Reservation,
    Share, StationId, Traffic, Turn, TurnState,
};
use wakeai_units::{Duration, Instant, Rate, Segments};

use crate::input::Input;
use crate::station::{BSSID, FuzzedStation, KEY, NEXT_KEY, OWN, OWN_BOOT};

/// The length in bytes of the authenticator, at the end of a message.
const TAG_LEN: usize = 16;
/// The largest number of messages that an attacker records.
const RECORDED: usize = 64;
/// The Unix time at the start of a run with synchronised clocks.
const UNIX: Duration = Duration::from_secs(1_700_000_000);

/// A station receives datagrams of members and of outsiders. Those of members have a valid
/// authenticator, so they reach the code that runs after the authenticator is checked.
pub(crate) fn target(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let silence = input.rarely();
    let mut group = FuzzedGroup::new(&mut input);
    while !input.is_empty() && !group.station.is_over() {
        group.step(&mut input);
    }
    if silence {
        group.silence();
    }
}

struct FuzzedGroup {
    station: FuzzedStation,
    /// The first messages of members, which attackers replay.
    recorded: Vec<Vec<u8>>,
    sequence: u64,
}

impl FuzzedGroup {
    fn new(input: &mut Input<'_>) -> Self {
        let tolerance = Duration::from_millis(1 + input.magnitude() % 60_000);
        let clocks = Clocks::Synchronised { unix_at_epoch: UNIX, tolerance };
        let law = LawConfig::new(LawName::Airtime);
        let config = ControllerConfig {
            clocks: if input.flag() { clocks } else { Clocks::Free },
            peer_limit: 1 + usize::from(input.below(12)),
            accepted_keys: input.option(|_| NEXT_KEY).into_iter().collect(),
            reserve: input.option(|_| Rate::from_mbps(5)),
            max_rate: input.option(|_| Rate::from_mbps(20)),
            ..ControllerConfig::new(OWN, BSSID, KEY)
        };
        let common_law = Some(CommonLaw::new(Some(&law), &config));
        let config = ControllerConfig { common_law, ..config };
        Self { station: FuzzedStation::new(config, law), recorded: Vec::new(), sequence: 0 }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        // So the inputs that were kept before there were fleet messages keep their meaning.
        let step = match input.byte() {
            252.. => 15,
            more @ 240.. => 12 + more % 3,
            step => step % 12,
        };
        match step {
            12 => {
                let _ = self.station.controller.ask_fleet(self.station.now); // its number
            }
            13 => {
                let datagram = self.fleet_message(input);
                self.say(datagram);
            }
            14 => self.patched_fleet(input),
            15 => {
                let law = Some(law(input));
                let datagram = if input.flag() {
                    self.message_with(input, law)
                } else {
                    self.patch(input, law)
                };
                self.say(datagram);
            }
            0..=4 => {
                let datagram = self.message(input);
                self.say(datagram);
            }
            5 => self.patched(input),
            6 => self.replay(input),
            7 => self.noise(input),
            8 => {
                let keys = [KEY, NEXT_KEY];
                let signing = usize::from(input.below(2));
                let others: &[_] = if input.flag() { &[keys[1 - signing]] } else { &[] };
                self.station.controller.set_keys(&keys[signing], others);
            }
            9 => {
                let unix = UNIX.saturating_add(input.millis());
                self.station.controller.set_unix_at_epoch(unix);
            }
            _ => {
                let span = input.millis().min(Duration::from_secs(300));
                self.station.pass(span, None, Vec::new);
            }
        }
    }

    fn say(&mut self, datagram: Vec<u8>) {
        self.station.receive(&datagram);
        if self.recorded.len() < RECORDED {
            self.recorded.push(datagram);
        }
    }

    /// A message as a member writes it, with arbitrary content.
    fn message(&mut self, input: &mut Input<'_>) -> Vec<u8> {
        self.message_with(input, None)
    }

    fn message_with(&mut self, input: &mut Input<'_>, law: Option<CommonLaw>) -> Vec<u8> {
        let station = input.below(20);
        let boot = match input.below(8) {
            7 => OWN_BOOT,
            boot => BootId(std::array::from_fn(|at| if at == 0 { station } else { boot })),
        };
        self.sequence += 1;
        let message = Presence {
            bssid: if input.below(16) == 15 { [9; 6] } else { BSSID },
            station: StationId(u64::from(station)),
            boot,
            sequence: if input.flag() { input.magnitude() } else { self.sequence },
            interval: input.millis(),
            announced: announcement(input),
            unix_time: input.option(|input| self.unix_time(input)),
            challenge: Challenge(input.magnitude()),
            law,
            answers: (0..input.below(3)).map(|_| self.answer(input)).collect(),
        };
        let codec = Codec::new(if input.below(8) == 7 { &NEXT_KEY } else { &KEY });
        let datagram = codec.encode(&message);
        let read = codec.decode(&datagram);
        assert!(is_encodable(&message) == read.is_ok(), "{message:?}: {read:?}");
        datagram
    }

    /// A query or an answer as a member writes it, with arbitrary content.
    fn fleet_message(&mut self, input: &mut Input<'_>) -> Vec<u8> {
        let station = input.below(20);
        let boot = BootId(std::array::from_fn(|at| if at == 0 { station } else { 0 }));
        self.sequence += 1;
        let content = if input.flag() {
            FleetContent::Query(Challenge(input.magnitude()))
        } else {
            let queries = (0..input.below(5)).map(|_| (self.query(input), span(input)));
            let queries = queries.collect();
            FleetContent::Answer { queries, figures: Box::new(figures(input)) }
        };
        let message = FleetMessage {
            bssid: if input.below(16) == 15 { [9; 6] } else { BSSID },
            station: StationId(u64::from(station)),
            boot,
            sequence: if input.flag() { input.magnitude() } else { self.sequence },
            unix_time: input.option(|input| self.unix_time(input)),
            content,
        };
        FleetCodec::accepting(&KEY, &[]).encode(&message)
    }

    /// The number of one of the station's own queries, or an arbitrary number.
    fn query(&self, input: &mut Input<'_>) -> Challenge {
        let last = self.station.asked.last().copied();
        last.filter(|_| input.below(4) > 0).unwrap_or_else(|| Challenge(input.magnitude()))
    }

    /// A member sends an authentic query or answer with arbitrary changes.
    fn patched_fleet(&mut self, input: &mut Input<'_>) {
        let mut datagram = self.fleet_message(input);
        let body = datagram.len() - TAG_LEN;
        for _ in 0..=input.below(4) {
            let at = usize::from(input.byte()) + usize::from(input.byte());
            let value = input.byte();
            if let Some(byte) = datagram[..body].get_mut(at) {
                *byte = value;
            }
        }
        let key = blake3::derive_key("Wakeai fleet v1 authenticator", &KEY);
        let (body, tag) = datagram.split_at_mut(body);
        tag.copy_from_slice(&blake3::keyed_hash(&key, body).as_bytes()[..TAG_LEN]);
        let codec = FleetCodec::accepting(&KEY, &[]);
        if let Ok(message) = codec.decode(&datagram) {
            assert_eq!(codec.encode(&message), datagram, "one encoding");
        }
        self.say(datagram);
    }

    /// The time in a message: the right time plus or minus an arbitrary span.
    fn unix_time(&self, input: &mut Input<'_>) -> Duration {
        let right = UNIX.saturating_add(self.station.now.saturating_since(Instant::ZERO));
        let off = input.millis();
        if input.flag() { right.saturating_add(off) } else { right.saturating_sub(off) }
    }

    /// One of the station's own challenges (random numbers that a peer's message repeats), or an
    /// arbitrary number.
    fn answer(&self, input: &mut Input<'_>) -> Challenge {
        let challenges = &self.station.challenges;
        match input.below(4) {
            0 => Challenge(input.magnitude().max(1)),
            1 => {
                let at = usize::from(input.byte());
                challenges.get(at).copied().unwrap_or(Challenge(1))
            }
            _ => challenges.last().copied().unwrap_or(Challenge(1)),
        }
    }

    /// A member sends an authentic message with arbitrary changes.
    fn patched(&mut self, input: &mut Input<'_>) {
        let datagram = self.patch(input, None);
        self.say(datagram);
    }

    fn patch(&mut self, input: &mut Input<'_>, law: Option<CommonLaw>) -> Vec<u8> {
        let mut datagram = self.message_with(input, law);
        for _ in 0..=input.below(4) {
            let at = usize::from(input.byte());
            let value = input.byte();
            if let Some(byte) = datagram[..MESSAGE_LEN - TAG_LEN].get_mut(at) {
                *byte = value;
            }
        }
        authenticate(&mut datagram);
        if let Ok(message) = Codec::new(&KEY).decode(&datagram) {
            assert_eq!(Codec::new(&KEY).encode(&message), datagram, "one encoding");
        }
        datagram
    }

    /// An attacker without the key sends a recorded message again, whole or with a bit changed.
    fn replay(&mut self, input: &mut Input<'_>) {
        let at = usize::from(input.byte());
        let Some(recorded) = self.recorded.get(at % self.recorded.len().max(1)) else { return };
        let mut datagram = recorded.clone();
        let Some(bit) = input.option(|input| usize::from(input.byte()) * 8 + 7) else {
            self.station.receive(&datagram);
            return;
        };
        if let Some(byte) = datagram.get_mut(bit / 8) {
            *byte ^= 1 << (bit % 8);
            self.station.receive_forged(&datagram);
        }
    }

    /// An attacker without the key sends arbitrary bytes.
    fn noise(&mut self, input: &mut Input<'_>) {
        let length = usize::from(input.byte());
        let heads: [&[u8]; 4] = [b"", b"WKAI\x02", b"WKFL\x01\x01", b"WKFL\x01\x02"];
        let mut datagram = heads[usize::from(input.below(4))].to_vec();
        datagram.extend(input.bytes(length));
        if input.flag() {
            datagram.resize(MESSAGE_LEN, 0);
        }
        self.station.receive_forged(&datagram);
    }

    /// Lets all peers fall silent. After three times the longest interval between messages no peer
    /// may be live.
    fn silence(&mut self) {
        self.station.pass(Duration::from_secs(181), None, Vec::new);
        if !self.station.is_over() {
            assert_eq!(self.station.controller.peers().count(), 0, "after three minutes");
        }
    }
}

/// An announcement with arbitrary values.
pub(crate) fn announcement(input: &mut Input<'_>) -> Announcement {
    Announcement {
        up: traffic(input),
        down: input.option(traffic).unwrap_or_default(),
        link_rate: input.option(rate),
        reservation: input.option(reservation),
        turn: input.option(turn),
    }
}

/// Traffic in one direction with arbitrary values.
fn traffic(input: &mut Input<'_>) -> Traffic {
    Traffic {
        active: input.flag(),
        rate: rate(input),
        max_rate: input.option(rate),
        min_rtt: input.option(span),
        growth: span(input),
    }
}

/// A valid law with arbitrary values.
fn law(input: &mut Input<'_>) -> CommonLaw {
    let min = span(input);
    let queue = input.option(|input| QueueParameters {
        rounds_percent: u16::from(input.byte()) + 1,
        min,
        max: min.max(Duration::from_micros(1)).max(span(input)),
    });
    CommonLaw {
        law: LawNumber(input.byte() % 6),
        version: input.byte().max(1),
        queue,
        access_point_buffer: input.count().max(1),
        reservable: Share::from_ppm(input.count()).min(Share::WHOLE),
    }
}

fn turn(input: &mut Input<'_>) -> Turn {
    let states = [TurnState::Waiting, TurnState::Sending, TurnState::Additional, TurnState::Trying];
    Turn {
        ticket: input.count().max(1),
        state: states[input.count() as usize % states.len()],
        left: Duration::from_millis(u64::from(input.count() >> 8)),
    }
}

fn figures(input: &mut Input<'_>) -> StationFigures {
    let software = input.number().to_string();
    let agent = AgentFigures {
        software: Label::new(&software),
        uptime: input.millis(),
        faults: std::array::from_fn(|_| u32::from(input.byte())),
        ..AgentFigures::default()
    };
    let (up, share) = (Traffic { max_rate: None, ..traffic(input) }, input.option(rate));
    let announced = Announcement { up, ..Announcement::default() };
    let bounds = Bounds {
        ceiling: input.option(|input| Segments::new(input.count())).unwrap_or(Segments::MAX),
        pacing: input.option(rate),
        ..Bounds::NONE
    };
    StationFigures { agent, announced, share, bounds, ..StationFigures::default() }
}

pub(crate) fn rate(input: &mut Input<'_>) -> Rate {
    Rate::from_bps(input.magnitude())
}

pub(crate) fn span(input: &mut Input<'_>) -> Duration {
    Duration::from_micros(u64::from(input.count()))
}

fn reservation(input: &mut Input<'_>) -> Reservation {
    Reservation {
        rate: rate(input),
        share: Share::from_ppm(input.count()),
        ticket: input.magnitude(),
        claim: Share::from_ppm(input.count()),
        short: input.flag(),
    }
}

/// Whether the message is valid after it was encoded. A zero where zero is not allowed makes it
/// invalid. Values that are too large do not, because the encoder reduces them.
fn is_encodable(message: &Presence) -> bool {
    let named = |of: Reservation| of.rate > Rate::ZERO && of.ticket > 0 && of.share > Share::ZERO;
    let numbers = || message.answers.iter().chain([&message.challenge]);
    numbers().all(|number| number.0 > 0) && message.announced.reservation.is_none_or(named)
}

/// Writes the authenticator as `docs/concepts/presence.md` describes it.
fn authenticate(datagram: &mut [u8]) {
    let key = blake3::derive_key("Wakeai presence v2 authenticator", &KEY);
    let (body, tag) = datagram.split_at_mut(MESSAGE_LEN - TAG_LEN);
    tag.copy_from_slice(&blake3::keyed_hash(&key, body).as_bytes()[..TAG_LEN]);
}
