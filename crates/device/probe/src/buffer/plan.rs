//! Decides which bursts the sender sends, one after another, and joins their results.

use wakeai_units::{Bytes, Duration, Rate};

use super::burst::Burst;
use super::median;
use super::reading::{BurstReading, FEWEST_RUNS, read};
use super::report::{BufferReport, BurstResults, Sizes, isolation};
use super::schedule::{Beside, Shot};

/// The rate of the first burst.
const FIRST_RATE: Rate = Rate::from_mbps(10);
/// How many times faster than the air a burst should be. Such a burst soon fills the places that a
/// transmission has left in a full queue.
const FACTOR: u64 = 4;
/// How many times faster than the air a burst must at least be to keep a queue full.
const LEAST_FACTOR: f64 = 1.3;
/// A burst is made long enough to have this many runs (the accepted packets between two losses, see
/// [`super::read`]), whose median is its result.
const WANTED_RUNS: usize = 20;
/// The number of packets of the longest burst.
const LONGEST: u32 = 100_000;
/// The number of bursts of small packets.
const SMALL_BURSTS: u32 = 3;
/// The number of packets of the reference burst, which is too slow to make a queue.
const REFERENCE: u32 = 200;

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct PlanOptions {
    /// The number of bursts whose median and range are reported.
    pub runs: u32,
    /// The rate of the fastest burst, counted in IP packets. It must be below the rate of the wire.
    pub limit: Rate,
    /// The lengths of the large and the small IP packets. Two lengths are needed to find out
    /// whether the buffer's limit counts packets or bytes.
    pub packets: Sizes,
    /// Whether there is a second station.
    pub second: bool,
}

/// Why the buffer was not measured.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Unmeasured {
    /// The air carries all that the sender offers, so no queue builds up.
    #[error(
        "the air takes {drain:#}, and the sender offers {offered:#} at most: a queue at the access point does not \
         fill; raise --rate if the wire is faster than that"
    )]
    TooSlow {
        /// The rate that the sender can offer.
        offered: Rate,
        /// The rate that arrived.
        drain: Rate,
    },
    /// The longest burst did not fill the queue.
    #[error(
        "{packets} packets at {rate:#} were sent while the air took {drain:#}, and the queue was never seen full; the \
         most that it held were {most:.0} packets"
    )]
    NeverFull {
        /// The number of packets of the longest burst.
        packets: u32,
        /// The rate of that burst.
        rate: Rate,
        /// The rate of the air.
        drain: Rate,
        /// The largest number of packets that waited.
        most: f64,
    },
    /// Too few datagrams arrived.
    #[error(
        "only {arrived} of {sent} datagrams arrived; is the station in range, and does a firewall drop UDP?"
    )]
    Silent {
        /// The number of datagrams that arrived.
        arrived: usize,
        /// The number of datagrams of the burst.
        sent: usize,
    },
}

/// What is being measured at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The rate that the air carries.
    Pilot,
    /// The share of packets that the air loses when there is no queue.
    Reference,
    /// How long a burst has to be.
    Length,
    /// The buffer, with large packets.
    Buffer,
    /// The buffer, with small packets.
    Small,
    /// Whether another flow waits in the same queue.
    Flow,
    /// Whether another station's packets wait in the same queue.
    Station,
    /// Everything has been measured.
    Done,
}

/// The sender's decisions.
///
/// Order of calls: [`Plan::poll_shot`] describes a burst. The caller sends it, waits until the
/// queue is empty, and passes what arrived to [`Plan::handle_burst`]. Both are repeated until
/// `poll_shot` returns `None`; then [`Plan::report`] has the result.
#[derive(Clone, Debug)]
pub struct Plan {
    options: PlanOptions,
    stage: Stage,
    rate: Rate,
    count: u32,
    results: BurstResults,
}

impl Plan {
    /// A plan that begins with [`Stage::Pilot`].
    pub fn new(options: PlanOptions) -> Self {
        Self {
            options,
            stage: Stage::Pilot,
            rate: FIRST_RATE.min(options.limit),
            count: 300,
            results: BurstResults::default(),
        }
    }

    /// What is being measured.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// The next burst; `None` when everything has been measured.
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

    /// The rate at which the air carries large packets.
    fn drain(&self) -> Rate {
        let per_s = median(&self.results.large, |reading| reading.drain_per_s);
        rate_of(per_s.unwrap_or(1.0), self.options.packets.large)
    }

    /// A burst at twice the rate of the air, with a sparse flow beside it. The burst fills the
    /// queue, and then keeps it full for the time that a full queue takes to empty.
    fn beside(&self, to_second: bool) -> Shot {
        let packet = self.options.packets.large;
        let drain = self.drain();
        let rate = (drain * 2).min(self.options.limit);
        let full = median(&self.results.large, |one| one.most).unwrap_or(0.0);
        let per_s = drain.bits_per_second() as f64 / packet.bits() as f64;
        // The queue grows at the burst's rate minus the rate of the air.
        let fill_s = full / (rate.bits_per_second() as f64 / packet.bits() as f64 - per_s).max(1.0);
        let hold_s = (full / per_s).max(0.3);
        let offered_per_s = rate.bits_per_second() as f64 / packet.bits() as f64;
        let count = ((fill_s + hold_s) * offered_per_s) as u32;
        let every = Duration::from_nanos((hold_s / 30.0 * 1e9) as u64);
        let beside = Some(Beside { every, to_second });
        Shot { packet, rate, count: count.min(LONGEST), beside }
    }

    /// Takes what arrived of the last burst and of its sparse flow. `held_back` means that the
    /// sender's own interface was slower than the burst.
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
                self.results.air_loss = reading.lost as f64 / burst.sent.len() as f64;
                self.results.large.clear();
                self.to(Stage::Length, 500);
            }
            Stage::Length => return self.handle_length(&reading),
            Stage::Buffer => {
                self.results.large.push(reading);
                if self.results.large.len() >= self.options.runs as usize {
                    self.to(Stage::Small, self.count);
                }
            }
            Stage::Small => self.handle_small(reading),
            Stage::Flow => {
                self.results.per_flow = sparse.map(|sparse| isolation(&reading, burst, sparse));
                self.to(if self.options.second { Stage::Station } else { Stage::Done }, 0);
            }
            Stage::Station => {
                self.results.per_station = sparse.map(|sparse| isolation(&reading, burst, sparse));
                self.to(Stage::Done, 0);
            }
            Stage::Done => {}
        }
        Ok(())
    }

    fn to(&mut self, stage: Stage, count: u32) {
        (self.stage, self.count) = (stage, count);
    }

    /// Looks for a rate that the air does not carry: raises the rate until the air is saturated.
    fn handle_pilot(&mut self, reading: BurstReading, held_back: bool) -> Result<(), Unmeasured> {
        let drain = rate_of(reading.drain_per_s, self.options.packets.large);
        let offered = rate_of(reading.offered_per_s, self.options.packets.large);
        let is_saturated = reading.drain_per_s < reading.offered_per_s / LEAST_FACTOR;
        if held_back {
            // The bursts stay below the interface's rate, because the queue in front of the wire
            // must not fill.
            self.options.limit = self.options.limit.min(offered.mul_div(9, 10).unwrap_or(offered));
        }
        if is_saturated {
            self.results.large = vec![reading];
            self.rate = (drain * FACTOR).min(self.options.limit);
            self.to(Stage::Reference, 0);
        } else if self.rate >= self.options.limit {
            return Err(Unmeasured::TooSlow { offered, drain });
        } else {
            self.rate = (self.rate * 3).min(self.options.limit);
            self.count += self.count / 2; // a faster burst needs more packets to last as long
        }
        Ok(())
    }

    /// Makes bursts longer until they have enough runs.
    fn handle_length(&mut self, reading: &BurstReading) -> Result<(), Unmeasured> {
        let drain = rate_of(reading.drain_per_s, self.options.packets.large);
        if reading.runs >= WANTED_RUNS || self.shows_aqm(reading) {
            self.results.large.clear();
            self.stage = Stage::Buffer;
        } else if self.count >= LONGEST {
            let (packets, rate, most) = (self.count, self.rate, reading.most);
            return Err(Unmeasured::NeverFull { packets, rate, drain, most });
        } else {
            self.count = (self.count * 2).min(LONGEST);
        }
        // The rate of the air may be higher than the first, short bursts have shown, because a long
        // burst is sent in longer aggregates of frames.
        self.rate = self.rate.max((drain * FACTOR).min(self.options.limit));
        Ok(())
    }

    /// Whether the burst shows active queue management (AQM): single packets were dropped while the
    /// queue kept growing, for so long that it is no coincidence.
    fn shows_aqm(&self, reading: &BurstReading) -> bool {
        let Some(first) = reading.first_loss else { return false };
        let is_long = self.count as usize >= 3 * first.number && reading.runs >= FEWEST_RUNS;
        is_long && super::report::is_gradual(reading)
    }

    fn handle_small(&mut self, reading: BurstReading) {
        if reading.runs < WANTED_RUNS && self.results.small.is_empty() && self.count < LONGEST {
            self.count = (self.count * 2).min(LONGEST);
            return;
        }
        self.results.small.push(reading);
        if self.results.small.len() >= SMALL_BURSTS as usize {
            self.to(Stage::Flow, 0);
        }
    }

    /// The result of all bursts.
    pub fn report(&self) -> BufferReport {
        BufferReport::new(&self.results, self.options.packets)
    }
}

/// The rate of `per_s` packets per second.
fn rate_of(per_s: f64, packet: Bytes) -> Rate {
    Rate::from_bps((per_s * packet.bits() as f64) as u64)
}
