//! One setting of the matrix: a scenario, and what the law promises in it.

use std::fmt::Write as _;

use wakeai_scenario::Scenario;
use wakeai_world::agent::presence_interval;

use crate::statistics::mean;

/// What a setting promises of `airtime` beside `default`; see [`super::verdict`].
#[derive(Clone, Debug, PartialEq)]
pub enum Promise {
    /// All stations have agents: goodput, equal shares, a short queue, few timeouts.
    All,
    /// 802.11a and g send single frames: `default` then exceeds what one station reaches alone, because ACKs
    /// are lost.
    SingleFrames,
    /// A station alone.
    Alone,
    /// Uploads beside downloads.
    BothWays,
    /// Downloads only: there is nothing to bound.
    DownOnly,
    /// Hosts with small queues and 20 or more stations of 802.11n.
    SmallQueues,
    /// Fast stations beside slow ones: at least this multiple of `default`'s total, and at least this index.
    Unequal(f64, f64),
    /// All transfers have a size: the last is done within 5 % of n · size / solo.
    Ideal,
    /// Short transfers: mean and last completion at most 1.05 of `default`'s.
    Short,
    /// The application of this group asks for so many Mbit/s of each station, and gets them.
    Limited(&'static str, f64),
    /// This group has agents, the others have none: it gets 0.95 of what it has without.
    Beside(&'static str),
    /// At this second something changes, or the last of some transfers ends after it: 10 s or three
    /// presence intervals later all that still send have their new shares to within 10 %.
    Settles(f64),
    /// Means of 5 s deviate at most 1.5 times as much as under `fixed` at the same windows.
    Steady,
    /// At this second the station `new` begins to send: it has half of its share within 2 s and nine tenths
    /// within 6 s, or within three presence intervals where those are longer.
    Newcomer(f64),
    /// What the agent of the station `liar` announces costs all others together at most 10 %, against the
    /// same station without an agent.
    Lie,
}

impl Promise {
    /// Whether it concerns `airtime` alone, and is not a comparison with other conditions.
    pub fn is_of_the_law_alone(&self) -> bool {
        matches!(self, Self::Settles(_) | Self::Steady | Self::Newcomer(_) | Self::Lie)
    }
}

/// The condition in which a member that lies has no agent.
pub(super) const WITHOUT: &str = "without";
/// The condition of bounds by hand, at the windows that `airtime` held; made for each run.
pub(super) const FIXED: &str = "fixed";

/// One row of the matrix.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// The promise.
    pub promise: Promise,
    /// The longest round-trip time without load, ms.
    pub path_ms: f64,
    /// The scenario, as read and as text.
    pub scenario: Scenario,
    /// The same as TOML.
    pub toml: String,
}

/// A host queue that TCP small queues bounds, as a key of `[[stations]]`.
pub(super) const TSQ: &str = "host_queue = 'tsq'";
/// The flows of a group begin within half a second, as a key of `[[flows]]`.
pub(super) const JITTER: &str = "jitter = '500ms'";

/// A scenario under construction; spans in seconds, round-trip times in ms.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    standard: &'static str,
    access_point: &'static str,
    wired: &'static str,
    wired_rtt_ms: f64,
    longest_ms: f64,
    seconds: u32,
    warmup: u32,
    agents: Option<&'static str>,
    body: String,
}

/// A BSS whose stations all have this round-trip time.
pub(super) fn bss(standard: &'static str, rtt_ms: f64) -> Draft {
    Draft {
        standard,
        access_point: "",
        wired: "",
        wired_rtt_ms: rtt_ms,
        longest_ms: 0.0,
        seconds: 35,
        warmup: 5,
        agents: None,
        body: String::new(),
    }
}

impl Draft {
    /// Keys of `[access_point]`.
    pub(super) fn access_point(mut self, keys: &'static str) -> Self {
        self.access_point = keys;
        self
    }

    /// Keys of `[wired]`.
    pub(super) fn wired(mut self, keys: &'static str) -> Self {
        self.wired = keys;
        self
    }

    pub(super) fn lasting(mut self, seconds: u32, warmup: u32) -> Self {
        (self.seconds, self.warmup) = (seconds, warmup);
        self
    }

    /// Only this group has agents.
    pub(super) fn agents(mut self, group: &'static str) -> Self {
        self.agents = Some(group);
        self
    }

    /// `count` stations; `keys` are further ones of `[[stations]]`.
    pub(super) fn stations(mut self, name: &str, count: u32, keys: &str) -> Self {
        let _ = write!(self.body, "\n[[stations]]\nname = '{name}'\ncount = {count}\n{keys}\n");
        self
    }

    /// `count` stations with an endless upload each, whose path to the server is so many ms longer.
    pub(super) fn further(mut self, name: &str, count: u32, more_ms: f64) -> Self {
        self.longest_ms = self.longest_ms.max(more_ms);
        let keys = format!("wired_delay = '{}ms'", more_ms / 2.0);
        self.up(name, count, &keys)
    }

    pub(super) fn flow(mut self, from: &str, to: &str, keys: &str) -> Self {
        let _ = write!(self.body, "\n[[flows]]\nfrom = '{from}'\nto = '{to}'\n{keys}\n");
        self
    }

    pub(super) fn event(mut self, keys: &str) -> Self {
        let _ = write!(self.body, "\n[[events]]\n{keys}\n");
        self
    }

    /// `count` stations with an endless upload each, which begins within half a second.
    pub(super) fn up(self, name: &str, count: u32, keys: &str) -> Self {
        self.stations(name, count, keys).flow(name, "server", JITTER)
    }

    /// The same with downloads.
    pub(super) fn down(self, name: &str, count: u32) -> Self {
        self.stations(name, count, "").flow("server", name, JITTER)
    }

    pub(super) fn promises(self, name: &'static str, promise: Promise) -> Setting {
        let mut toml = format!(
            "name = '{name}'\nduration = '{}s'\nwarmup = '{}s'\n\n[access_point]\n\
             standard = '{}'\n{}\n\n[wired]\ndelay = '{}ms'\n{}\n",
            self.seconds,
            self.warmup,
            self.standard,
            self.access_point,
            self.wired_rtt_ms / 2.0,
            self.wired,
        );
        toml.push_str(&self.body);
        let agents = self.agents.map(|group| format!("agents = '{group}'\n"));
        let of_law = |name: &str, law: &str, agents: &str| {
            format!("\n[[conditions]]\nname = '{name}'\nlaw = '{law}'\n{agents}")
        };
        if promise.is_of_the_law_alone() {
            toml.push_str(&of_law("airtime", "airtime", ""));
            if let Some(agents) = agents {
                toml.push_str(&of_law(WITHOUT, "airtime", &agents));
            }
        } else {
            toml.push_str("\n[[conditions]]\nname = 'default'\n");
            for law in ["shimada-after", "airtime"] {
                toml.push_str(&of_law(law, law, agents.as_deref().unwrap_or_default()));
            }
        }
        let scenario = Scenario::parse(&toml).expect("every setting is a scenario");
        let path_ms = self.wired_rtt_ms + self.longest_ms;
        Setting { name, promise, path_ms, scenario, toml }
    }
}

impl Setting {
    /// How many transfers of how many bytes, where all have a size.
    pub fn transfers(&self) -> Option<(u32, f64)> {
        let flows = self.scenario.expand(1).flows;
        let sizes = flows.iter().map(|flow| flow.size.map(|size| size.get() as f64));
        let sizes: Vec<f64> = sizes.collect::<Option<_>>()?;
        Some((u32::try_from(sizes.len()).ok()?, mean(&sizes)?))
    }

    /// The length of so many presence intervals, seconds: of agents on all stations, in a steady state.
    pub fn intervals_s(&self, intervals: f64) -> f64 {
        let stations = self.scenario.station_count() as usize;
        presence_interval(&self.scenario, stations).as_secs_f64() * intervals
    }

    /// How many stations a group has.
    pub fn count_of(&self, group: &str) -> u32 {
        let groups = self.scenario.stations.iter().filter(|one| one.name == group);
        groups.map(|one| one.count).sum()
    }
}
