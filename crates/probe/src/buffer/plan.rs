//! Which bursts the sender sends, one after another, and what they say together.

use wakeai_units::{Bytes, Duration, Rate};

use super::burst::Burst;
use super::reading::{FEWEST_RUNS, Reading, read};
use super::report::{Isolation, Report, Sizes, Verdict, isolation};
use super::schedule::{Beside, Shot};

/// The rate of the first burst.
const FIRST_RATE: Rate = Rate::from_mbps(10);
/// How many times faster than the air a burst should be, so that a full queue is full again soon after a transmission.
const FACTOR: u64 = 4;
/// A burst that is less faster than the air than this does not keep a queue full.
const LEAST_FACTOR: f64 = 1.3;
/// A burst has so many packets that its median is of this many runs.
const WANTED_RUNS: usize = 20;
/// The packets of the longest burst.
const LONGEST: u32 = 100_000;
/// The bursts of small packets.
const SMALL_BURSTS: u32 = 3;
/// The packets of a burst that is too slow to make a queue.
const REFERENCE: u32 = 200;

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The bursts whose spread is reported.
    pub runs: u32,
    /// The fastest burst, in IP packets: below the rate of the wire.
    pub limit: Rate,
    /// The length of the IP packets: large ones, and small ones to tell packets from bytes.
    pub packets: Sizes,
    /// Whether there is a second station.
    pub second: bool,
}

/// Why the buffer was not measured.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Unmeasured {
    /// The air takes what the wire gives.
    #[error(
        "the air takes {drain:#}, and the sender offers {offered:#} at most: a queue at the access point does not \
         fill; raise --rate if the wire is faster than that"
    )]
    TooSlow {
        /// What the sender can offer.
        offered: Rate,
        /// What arrived.
        drain: Rate,
    },
    /// Nothing was lost.
    #[error(
        "{packets} packets at {rate:#} were sent while the air took {drain:#}, and the queue was never seen full; the \
         most that it held were {most:.0} packets"
    )]
    NeverFull {
        /// Packets of the longest burst.
        packets: u32,
        /// Their rate.
        rate: Rate,
        /// The rate of the air.
        drain: Rate,
        /// The most packets that waited.
        most: f64,
    },
    /// Too little arrived.
    #[error(
        "only {arrived} of {sent} datagrams arrived; is the station in range, and does a firewall drop UDP?"
    )]
    Silent {
        /// Datagrams that arrived.
        arrived: usize,
        /// Datagrams of the burst.
        sent: usize,
    },
}

/// What is being measured at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// How much the air takes.
    Pilot,
    /// What the air loses without a queue.
    Reference,
    /// How long a burst has to be.
    Length,
    /// The buffer.
    Buffer,
    /// The same with small packets.
    Small,
    /// Whether another flow waits in the same queue.
    Flow,
    /// Whether another station's packets wait in the same queue.
    Station,
    /// Nothing any more.
    Done,
}

/// The sender's decisions.
///
/// Order of calls: [`Plan::poll_shot`]; send it, wait until the queue is empty, and give what arrived to
/// [`Plan::handle_burst`]; again until `poll_shot` returns `None`; then [`Plan::report`].
#[derive(Clone, Debug)]
pub struct Plan {
    options: Options,
    stage: Stage,
    rate: Rate,
    count: u32,
    air_loss: f64,
    large: Vec<Reading>,
    small: Vec<Reading>,
    per_flow: Option<Isolation>,
    per_station: Option<Isolation>,
}

impl Plan {
    /// A plan that begins with a pilot.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            stage: Stage::Pilot,
            rate: FIRST_RATE.min(options.limit),
            count: 300,
            air_loss: 0.0,
            large: Vec::new(),
            small: Vec::new(),
            per_flow: None,
            per_station: None,
        }
    }

    /// What is being measured.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// The next burst; `None` when all is measured.
    pub fn poll_shot(&self) -> Option<Shot> {
        let Sizes { large, small } = self.options.packets;
        let shot = Shot { packet: large, rate: self.rate, count: self.count, beside: None };
        Some(match self.stage {
            Stage::Pilot | Stage::Length | Stage::Buffer => shot,
            Stage::Reference => Shot { rate: self.drain() / 4, count: REFERENCE, ..shot },
            Stage::Small => Shot { packet: small, ..shot },
            Stage::Flow => self.beside(false),
            Stage::Station => self.beside(true),
            Stage::Done => return None,
        })
    }

    /// The rate at which the air takes large packets.
    fn drain(&self) -> Rate {
        let per_s: Vec<f64> = self.large.iter().map(|reading| reading.drain_per_s).collect();
        rate_of(super::quantile(&per_s, 0.5).unwrap_or(1.0), self.options.packets.large)
    }

    /// A burst at twice the rate of the air, long enough to fill the queue and to keep it full for as long as it takes to
    /// empty it, with a sparse flow beside it.
    fn beside(&self, to_second: bool) -> Shot {
        let packet = self.options.packets.large;
        let drain = self.drain();
        let rate = (drain * 2).min(self.options.limit);
        let full = super::quantile(&self.large.iter().map(|one| one.most).collect::<Vec<_>>(), 0.5);
        let (full, per_s) =
            (full.unwrap_or(0.0), drain.bits_per_second() as f64 / packet.bits() as f64);
        // The queue fills at the difference of the two rates.
        let fill_s = full / (rate.bits_per_second() as f64 / packet.bits() as f64 - per_s).max(1.0);
        let hold_s = (full / per_s).max(0.3);
        let offered_per_s = rate.bits_per_second() as f64 / packet.bits() as f64;
        let count = ((fill_s + hold_s) * offered_per_s) as u32;
        let every = Duration::from_nanos((hold_s / 30.0 * 1e9) as u64);
        let beside = Some(Beside { every, to_second });
        Shot { packet, rate, count: count.min(LONGEST), beside }
    }

    /// Takes what arrived of the last shot, and of its sparse flow. `held_back` says that the sender's own interface was
    /// slower than the shot.
    ///
    /// # Errors
    /// [`Unmeasured`]; the plan has ended.
    pub fn handle_burst(
        &mut self,
        burst: &Burst,
        sparse: Option<&Burst>,
        held_back: bool,
    ) -> Result<(), Unmeasured> {
        let Some(reading) = read(burst) else {
            return Err(Unmeasured::Silent {
                arrived: burst.arrivals.len(),
                sent: burst.sent.len(),
            });
        };
        match self.stage {
            Stage::Pilot => return self.handle_pilot(reading, held_back),
            Stage::Reference => {
                self.air_loss = reading.lost as f64 / burst.sent.len() as f64;
                self.large.clear();
                self.to(Stage::Length, 500);
            }
            Stage::Length => return self.handle_length(&reading),
            Stage::Buffer => {
                self.large.push(reading);
                if self.large.len() >= self.options.runs as usize {
                    self.to(Stage::Small, self.count);
                }
            }
            Stage::Small => self.handle_small(reading),
            Stage::Flow => {
                self.per_flow = sparse.map(|sparse| isolation(&reading, burst, sparse));
                self.to(if self.options.second { Stage::Station } else { Stage::Done }, 0);
            }
            Stage::Station => {
                self.per_station = sparse.map(|sparse| isolation(&reading, burst, sparse));
                self.to(Stage::Done, 0);
            }
            Stage::Done => {}
        }
        Ok(())
    }

    fn to(&mut self, stage: Stage, count: u32) {
        (self.stage, self.count) = (stage, count);
    }

    /// Finds a rate that the air does not take.
    fn handle_pilot(&mut self, reading: Reading, held_back: bool) -> Result<(), Unmeasured> {
        let drain = rate_of(reading.drain_per_s, self.options.packets.large);
        let offered = rate_of(reading.offered_per_s, self.options.packets.large);
        let is_saturated = reading.drain_per_s < reading.offered_per_s / LEAST_FACTOR;
        if held_back {
            // The wire's own queue must not fill.
            self.options.limit = self.options.limit.min(offered.mul_div(9, 10).unwrap_or(offered));
        }
        if is_saturated {
            self.large = vec![reading];
            self.rate = (drain * FACTOR).min(self.options.limit);
            self.to(Stage::Reference, 0);
        } else if self.rate >= self.options.limit {
            return Err(Unmeasured::TooSlow { offered, drain });
        } else {
            self.rate = (self.rate * 3).min(self.options.limit);
            self.count += self.count / 2; // a faster burst is to last, too
        }
        Ok(())
    }

    /// Makes bursts longer until they show enough runs.
    fn handle_length(&mut self, reading: &Reading) -> Result<(), Unmeasured> {
        let drain = rate_of(reading.drain_per_s, self.options.packets.large);
        if reading.runs >= WANTED_RUNS || self.shows_aqm(reading) {
            self.large.clear();
            self.stage = Stage::Buffer;
        } else if self.count >= LONGEST {
            let (packets, rate, most) = (self.count, self.rate, reading.most);
            return Err(Unmeasured::NeverFull { packets, rate, drain, most });
        } else {
            self.count = (self.count * 2).min(LONGEST);
        }
        // The first short bursts did not show how much the air takes in long aggregates.
        self.rate = self.rate.max((drain * FACTOR).min(self.options.limit));
        Ok(())
    }

    /// Whether packets were dropped while the queue kept growing, for so long that it is no coincidence.
    fn shows_aqm(&self, reading: &Reading) -> bool {
        let Some(first) = reading.first_loss else { return false };
        let is_long = self.count as usize >= 3 * first.number && reading.runs >= FEWEST_RUNS;
        is_long && super::report::is_gradual(reading)
    }

    fn handle_small(&mut self, reading: Reading) {
        if reading.runs < WANTED_RUNS && self.small.is_empty() && self.count < LONGEST {
            self.count = (self.count * 2).min(LONGEST);
            return;
        }
        self.small.push(reading);
        if self.small.len() >= SMALL_BURSTS as usize {
            self.to(Stage::Flow, 0);
        }
    }

    /// What all bursts say together.
    pub fn report(&self) -> Report {
        Report::new(&Verdict {
            packets: self.options.packets,
            large: &self.large,
            small: &self.small,
            air_loss: self.air_loss,
            per_flow: self.per_flow,
            per_station: self.per_station,
        })
    }
}

/// The rate of this many packets per second.
fn rate_of(per_s: f64, packet: Bytes) -> Rate {
    Rate::from_bps((per_s * packet.bits() as f64) as u64)
}
