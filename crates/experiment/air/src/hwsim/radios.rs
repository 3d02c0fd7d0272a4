//! The radios as the ends of the medium: takes the frames that they send, and hands over those that have arrived.

use std::collections::{BTreeMap, VecDeque};
use std::io;

use nix::errno::Errno;
use wakeai_medium::{Destination, Medium, Node, Receivers, StationId};
use wakeai_units::{Duration, Instant};
use wakeai_world::Changes;

use super::Address;
use super::capture::Capture;
use super::counters::{NotCarried, RadioReport};
use super::frame::{AirFrame, Header};
use super::message::{Purpose, Received, SentFrame, TX_ACKNOWLEDGED, TX_NO_ACK, Writer, messages};
use super::rates;
use super::roles::Places;
use super::socket::HwsimSocket;
use crate::drive::{Clock, Ends};
use crate::lateness::{Host, Lateness};
use crate::poller::Poller;

/// The largest number of messages that are read before the loop handles what is due.
const READ_BURST: usize = 64;

/// The place of a radio, its channel, and what it waits with.
#[derive(Debug, Default)]
struct State {
    /// Frames for another channel than that of the frames before them, which are still in the medium.
    held: VecDeque<AirFrame>,
    /// The number of its last frame.
    last_cookie: Option<u64>,
    /// What it does with the frames that reach it.
    host: Host,
    report: RadioReport,
}

/// The radios.
pub struct Radios {
    socket: HwsimSocket,
    buffer: Vec<u8>,
    family: u16,
    readable: bool,
    places: Places,
    states: Vec<State>,
    /// The place of the radio that sends under an address.
    by_address: BTreeMap<Address, usize>,
    pub(crate) not_carried: NotCarried,
    pub(crate) lateness: Lateness,
    pub(crate) capture: Option<Capture>,
    /// What the user has to be told.
    pub(crate) notes: Vec<String>,
    /// Sees every frame that is handed over: when it is, how late that is, and its bytes.
    observer: Option<Observer>,
}

/// See [`Radios::observe`].
type Observer = Box<dyn FnMut(Instant, Duration, &[u8])>;

impl std::fmt::Debug for Radios {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Radios").field("places", &self.places).finish_non_exhaustive()
    }
}

impl Radios {
    pub(crate) fn new(mut socket: HwsimSocket, places: Places) -> Self {
        Self {
            buffer: socket.take_buffer(),
            family: socket.family_number(),
            socket,
            readable: true,
            states: places.0.iter().map(|_| State::default()).collect(),
            places,
            by_address: BTreeMap::new(),
            not_carried: NotCarried::default(),
            lateness: Lateness::default(),
            capture: None,
            notes: Vec::new(),
            observer: None,
        }
    }

    /// Calls `observer` for every frame that was handed over to radios: with the medium's time when it was, with its lateness, and
    /// with its bytes.
    pub fn observe(&mut self, observer: impl FnMut(Instant, Duration, &[u8]) + 'static) {
        self.observer = Some(Box::new(observer));
    }

    /// What was not carried until now.
    pub fn not_carried(&self) -> NotCarried {
        self.not_carried
    }

    /// The changes of the stations of a scenario as changes of their radios, without those that the kernel decides.
    pub fn changes(&self, changes: Changes) -> Changes {
        let access_points = self.places.0.iter().filter(|place| place.is_access_point).count();
        changes.filter_map(|one| super::air::change(access_points, one))
    }

    /// The receiver that answers nothing.
    fn nobody(&self) -> StationId {
        StationId(self.states.len() as u32)
    }

    /// The radios that have appeared.
    pub(crate) fn report(&self) -> Vec<RadioReport> {
        let all = self.places.0.iter().zip(&self.states);
        let known = all.filter_map(|(place, state)| {
            let address = place.radio?.to_string();
            Some(RadioReport { name: place.name.clone(), address, ..state.report.clone() })
        });
        known.collect()
    }

    fn take(&mut self, medium: &mut Medium<AirFrame>, clock: Clock, sent: &SentFrame<'_>) {
        let Some(header) = Header::of(sent.bytes) else {
            self.not_carried.malformed += 1;
            self.tell(sent.radio, sent.cookie, sent.flags, &[(-1, 0, 0); 4]);
            return;
        };
        let Some(place) = self.place(medium, sent.radio, header.of_access_point) else {
            if self.not_carried.unknown_radio == 0 {
                self.notes.push(format!(
                    "the radio {} is more than the scenario has: its frames are not carried",
                    sent.radio.of_first_interface()
                ));
            }
            self.not_carried.unknown_radio += 1;
            self.tell(sent.radio, sent.cookie, sent.flags, &[(-1, 0, 0); 4]);
            return;
        };
        self.by_address.insert(header.transmitter, place);
        let state = &mut self.states[place];
        // The driver counts a radio's frames, also those that it could not hand over.
        let lost = state.last_cookie.map_or(0, |last| sent.cookie.saturating_sub(last + 1));
        state.last_cookie = Some(sent.cookie);
        state.report.socket_full += lost;
        self.not_carried.socket_full += lost;
        state.report.sent += 1;
        let frame = AirFrame::new(sent, header);
        state.held.push_back(frame);
        self.send_held(medium, clock, place);
    }

    /// The place of a radio. One that turns out to be an access point after it has appeared as a station moves.
    fn place(
        &mut self,
        medium: &mut Medium<AirFrame>,
        radio: Address,
        is_access_point: bool,
    ) -> Option<usize> {
        let known = self.places.of(radio);
        match known {
            Some(place) if !is_access_point || self.places.0[place].is_access_point => Some(place),
            Some(place) => {
                let fixed = self.places.0[place].reserved.is_some()
                    || medium.kept_by(StationId(place as u32)) > 0;
                let other = if fixed { None } else { self.places.take(radio, true) };
                let Some(other) = other else { return Some(place) };
                self.places.0[place].radio = None;
                self.states[other] = std::mem::take(&mut self.states[place]);
                self.by_address.values_mut().filter(|of| **of == place).for_each(|of| *of = other);
                self.appeared(other);
                Some(other)
            }
            None => {
                let place = self.places.take(radio, is_access_point)?;
                self.by_address.insert(radio.of_first_interface(), place);
                self.appeared(place);
                Some(place)
            }
        }
    }

    fn appeared(&mut self, place: usize) {
        let taken = &self.places.0[place];
        if let Some(radio) = taken.radio {
            self.notes.push(format!("{} is {}", radio.of_first_interface(), taken.name));
        }
    }

    /// Puts a radio's frames into the medium. Those for another channel wait until the radio has none before them.
    fn send_held(&mut self, medium: &mut Medium<AirFrame>, clock: Clock, place: usize) {
        let radio = StationId(place as u32);
        while let Some(frame) = self.states[place].held.front() {
            let frequency = frame.frequency;
            if !medium.retune(radio, frequency) {
                if self.states[place].held.len() > super::MOST_KEPT as usize
                    && let Some(frame) = self.states[place].held.pop_back()
                {
                    self.settle(clock, radio, &frame, 0, false);
                }
                return;
            }
            let Some(frame) = self.states[place].held.pop_front() else { return };
            self.states[place].report.frequency_mhz = frequency;
            let to = frame.header.receiver;
            let is_here =
                |of: &usize| *of != place && self.states[*of].report.frequency_mhz == frequency;
            let to = if to.is_group() {
                Destination::Broadcast
            } else {
                let receiver = self.by_address.get(&to).copied().filter(is_here);
                let receiver = receiver.map_or(self.nobody(), |of| StationId(of as u32));
                Destination::Unicast(Node::Station(receiver))
            };
            medium.transmit(clock.now(), radio, to, frame);
        }
    }

    /// Tells a radio what became of its frame, and counts it.
    fn settle(
        &mut self,
        clock: Clock,
        radio: StationId,
        frame: &AirFrame,
        attempts: u8,
        carried: bool,
    ) {
        let report = &mut self.states[radio.index()].report;
        report.attempts += u64::from(attempts);
        match (carried, attempts) {
            (true, _) => report.carried += 1,
            (false, 0) => {
                report.queue_full += 1;
                self.not_carried.queue_full += 1;
            }
            (false, _) => {
                report.unanswered += 1;
                self.not_carried.unanswered += 1;
            }
        }
        if let Some(capture) = &mut self.capture
            && attempts > 0
        {
            capture.write(clock.now(), frame, attempts, carried);
        }
        let is_acknowledged = carried && frame.flags & TX_NO_ACK == 0;
        let flags = frame.flags | if is_acknowledged { TX_ACKNOWLEDGED } else { 0 };
        self.tell(frame.radio, frame.cookie, flags, &rates::tried(&frame.rates, attempts));
    }

    fn tell(
        &mut self,
        radio: Address,
        cookie: u64,
        flags: u32,
        rates: &super::message::TriedRates,
    ) {
        self.request(|writer| writer.status(radio, cookie, flags, rates));
    }

    /// Sends a request. The kernel handles it before the call returns, so nothing of it can be lost on the way.
    fn request(&mut self, write: impl FnOnce(&mut Writer) -> &[u8]) {
        if let Err(error) = self.socket.send(write)
            && self.notes.is_empty()
        {
            self.notes.push(format!("the driver took no message: {error}"));
        }
    }

    /// Hands a frame to a radio.
    fn deliver(&mut self, place: usize, frame: &AirFrame, purpose: Purpose) {
        let Some(radio) = self.places.0[place].radio else { return };
        let rate = rates::received_index(frame.chain.at(0).modulation, frame.frequency);
        let at = (rate, frame.frequency);
        self.request(|writer| writer.frame(radio, &frame.bytes, at, purpose));
        if purpose == Purpose::Unicast {
            self.states[place].report.received += 1;
        }
    }

    /// Declines a request for Block Ack in its receiver's place. The kernel holds back what it has for that receiver until
    /// the answer, or for a second where there is none.
    fn decline(&mut self, request: &AirFrame) {
        self.not_carried.declined_addba += 1;
        let rate = rates::received_index(request.chain.at(0).modulation, request.frequency);
        let (answer, at) = (request.declined(), (rate, request.frequency));
        self.request(|writer| writer.frame(request.radio, &answer, at, Purpose::Unicast));
    }

    /// Counts what the driver refused.
    fn answered(&mut self, sequence: u32, code: i32) {
        match Purpose::of(sequence) {
            _ if code == 0 => {}
            Some(Purpose::Unicast) => self.not_carried.refused_by_receiver += 1,
            Some(Purpose::Status) => self.not_carried.freed_by_driver += 1,
            // A radio of another channel refuses a frame for everybody, because it does not hear it.
            Some(Purpose::Group | Purpose::Family | Purpose::Register) | None => {}
        }
    }

    /// Carries what is still in the medium at once, and reports what waits for another channel. Without a report the
    /// kernel would keep a frame, and the socket that has sent it would wait for ever.
    pub fn end(&mut self, medium: &mut Medium<AirFrame>, clock: Clock) {
        while medium.packets_inside() > 0
            && let Some(due) = medium.next_timeout()
        {
            medium.handle_timeout(due);
            self.release(medium, clock);
        }
        self.release(medium, clock);
        for place in 0..self.states.len() {
            while let Some(frame) = self.states[place].held.pop_front() {
                self.settle(clock, StationId(place as u32), &frame, 0, false);
            }
        }
    }
}

impl Ends for Radios {
    type Packet = AirFrame;

    fn register(&self, poller: &Poller) -> io::Result<()> {
        poller.add(&self.socket, 0)
    }

    fn ready(&mut self, _token: u64) {
        self.readable = true;
    }

    /// The driver's frames are always read: where they find their queue full, their radio has to be told.
    fn is_unread(&self, _medium: &Medium<AirFrame>) -> bool {
        self.readable
    }

    fn read(&mut self, medium: &mut Medium<AirFrame>, clock: Clock) -> io::Result<()> {
        for _ in 0..READ_BURST {
            if !self.readable {
                break;
            }
            let mut buffer = std::mem::take(&mut self.buffer);
            match self.socket.read(&mut buffer) {
                Ok(None) => self.readable = false,
                Ok(Some(length)) => {
                    for message in messages(&buffer[..length], self.family) {
                        match message {
                            Some(Received::Frame(sent)) => self.take(medium, clock, &sent),
                            Some(Received::Answer(sequence, code)) => self.answered(sequence, code),
                            Some(Received::Family(_) | Received::Other) => {}
                            None => self.not_carried.malformed += 1,
                        }
                    }
                }
                // What was lost is counted by the gaps that it leaves.
                Err(error) if error.raw_os_error() == Some(Errno::ENOBUFS as i32) => {}
                Err(error) => return Err(error),
            }
            self.buffer = buffer;
        }
        Ok(())
    }

    fn release(&mut self, medium: &mut Medium<AirFrame>, clock: Clock) {
        while let Some(arrival) = medium.poll_arrival() {
            let (begun, frame) = (clock.now(), &arrival.packet);
            let receiver = match arrival.to {
                Receivers::Node(Node::Station(to)) if to != self.nobody() => Some(to),
                _ => None,
            };
            match arrival.to {
                Receivers::Node(Node::Server) => {}
                Receivers::Node(Node::Station(to)) if frame.header.is_addba_request => {
                    if to != self.nobody() {
                        self.decline(frame);
                    }
                }
                Receivers::Node(Node::Station(to)) => {
                    if to != self.nobody() {
                        self.deliver(to.index(), frame, Purpose::Unicast);
                    }
                }
                Receivers::Stations(stations) => {
                    let nobody = self.nobody();
                    for to in stations.iter().filter(|to| *to != nobody) {
                        self.deliver(to.index(), frame, Purpose::Group);
                    }
                }
            }
            let late = match receiver {
                Some(to) => self.states[to.index()].host.delay(arrival.at, begun, clock.now()),
                None => begun.saturating_since(arrival.at),
            };
            self.lateness.record(late);
            if let Some(observer) = &mut self.observer {
                observer(begun, late, &frame.bytes);
            }
        }
        while let Some(departure) = medium.poll_departure() {
            let (radio, frame) = (departure.station, &departure.packet);
            self.settle(clock, radio, frame, departure.attempts, departure.acknowledged);
            if !self.states[radio.index()].held.is_empty() {
                self.send_held(medium, clock, radio.index());
            }
        }
    }
}
