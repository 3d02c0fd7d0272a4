//! The settings that judge the law, as one table.
//!
//! Each is a complete scenario, so `wakeai sim` and `wakeai lab` can run it (`wakeai-validation law
//! --write DIR` writes them as files). All of them judge a change of the law.

use std::fmt::Write as _;

use super::dynamics;

/// What a setting promises of `airtime` beside `default`; see [`super::verdict`].
#[derive(Clone, Debug, PartialEq)]
pub enum Promise {
    /// All stations have agents: goodput, equal shares, a short queue, few timeouts.
    All,
    /// 802.11a and g send single frames, where stock is above what one station alone reaches,
    /// because it loses ACKs.
    SingleFrames,
    /// A station alone.
    Alone,
    /// Uploads beside downloads.
    BothWays,
    /// Downloads only: nothing to bound.
    DownOnly,
    /// Hosts with small queues and 20 or more stations of 802.11n.
    SmallQueues,
    /// Fast stations beside slow ones: at least so many times the total, and this index.
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
    /// Whether it is about `airtime` alone, and not beside what others reach.
    pub fn is_of_the_law_alone(&self) -> bool {
        matches!(self, Self::Settles(_) | Self::Steady | Self::Newcomer(_) | Self::Lie)
    }
}

/// The condition in which a member that lies has no agent.
pub const WITHOUT: &str = "without";
/// The condition of bounds by hand, at the windows that `airtime` held; made for each run.
pub const FIXED: &str = "fixed";

/// One row of the matrix.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Names it.
    pub name: &'static str,
    /// What is promised.
    pub promise: Promise,
    /// The longest round-trip time without load, ms.
    pub path_ms: f64,
    /// The scenario.
    pub toml: String,
}

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
        let _ = write!(self.body, "\n[[stations]]\nname = \"{name}\"\ncount = {count}\n{keys}\n");
        self
    }

    /// The same, so many ms further from the server.
    pub(super) fn further(mut self, name: &str, count: u32, more_ms: f64) -> Self {
        self.longest_ms = self.longest_ms.max(more_ms);
        let keys = format!("wired_delay = \"{}ms\"", more_ms / 2.0);
        self.stations(name, count, &keys)
    }

    pub(super) fn flow(mut self, from: &str, to: &str, keys: &str) -> Self {
        let _ = write!(self.body, "\n[[flows]]\nfrom = \"{from}\"\nto = \"{to}\"\n{keys}\n");
        self
    }

    pub(super) fn event(mut self, keys: &str) -> Self {
        let _ = write!(self.body, "\n[[events]]\n{keys}\n");
        self
    }

    /// Of each station an endless upload that begins within half a second.
    pub(super) fn up(self, name: &str, count: u32, keys: &str) -> Self {
        self.stations(name, count, keys).flow(name, "server", "jitter = \"500ms\"")
    }

    pub(super) fn promises(self, name: &'static str, promise: Promise) -> Setting {
        let mut toml = format!(
            "name = \"{name}\"\nduration = \"{}s\"\nwarmup = \"{}s\"\n\n[access_point]\n\
             standard = \"{}\"\n{}\n\n[wired]\ndelay = \"{}ms\"\n{}\n",
            self.seconds,
            self.warmup,
            self.standard,
            self.access_point,
            self.wired_rtt_ms / 2.0,
            self.wired,
        );
        toml.push_str(&self.body);
        let agents = self.agents.map(|group| format!("agents = \"{group}\"\n"));
        let of_law = |name: &str, law: &str, agents: &str| {
            format!("\n[[conditions]]\nname = \"{name}\"\nlaw = \"{law}\"\n{agents}")
        };
        if promise.is_of_the_law_alone() {
            toml.push_str(&of_law("airtime", "airtime", ""));
            if let Some(agents) = agents {
                toml.push_str(&of_law(WITHOUT, "airtime", &agents));
            }
        } else {
            toml.push_str("\n[[conditions]]\nname = \"default\"\n");
            for law in ["shimada-after", "airtime"] {
                toml.push_str(&of_law(law, law, agents.as_deref().unwrap_or_default()));
            }
        }
        Setting { name, promise, path_ms: self.wired_rtt_ms + self.longest_ms, toml }
    }
}

pub(super) const TSQ: &str = "host_queue = \"tsq\"";
const MAC80211: &str = "host_queue = \"mac80211\"";
const LIMITED: &str = "limit = \"800kbit/s\"\njitter = \"500ms\"";

/// All of them.
pub fn matrix() -> Vec<Setting> {
    let mut all = uploads();
    all.extend(hosts());
    all.extend(unequal());
    all.extend(paths());
    all.extend(directions());
    all.extend(transfers());
    all.extend(neighbours());
    all.extend(dynamics::all());
    all
}

/// Equal stations that upload without end; plain FIFO hosts.
fn uploads() -> Vec<Setting> {
    use Promise::{All, Alone, SingleFrames};
    vec![
        bss("802.11a", 20.0).up("s", 1, "").promises("a-1", Alone),
        bss("802.11a", 10.0).up("s", 6, "").promises("a-6", SingleFrames),
        bss("802.11g", 40.0).up("s", 10, "").promises("g-10", SingleFrames),
        bss("802.11g", 5.0).up("s", 20, "").promises("g-20", SingleFrames),
        bss("802.11g", 100.0).up("s", 30, "").promises("g-30", SingleFrames),
        bss("802.11n", 25.0).up("s", 1, "").promises("n-1", Alone),
        bss("802.11n", 60.0).up("s", 2, "").promises("n-2", All),
        bss("802.11n", 5.0).up("s", 4, "").promises("n-4", All),
        bss("802.11n", 20.0).up("s", 10, "").promises("n-10", All),
        bss("802.11n", 80.0).up("s", 16, "").promises("n-16", All),
        bss("802.11n", 8.0).up("s", 20, "").promises("n-20", All),
        bss("802.11n", 30.0).up("s", 30, "").promises("n-30", All),
        bss("802.11n", 3.0).up("s", 40, "").promises("n-40", All),
        bss("802.11n", 15.0).lasting(30, 5).up("s", 100, "").promises("n-100", All),
        bss("802.11n", 10.0)
            .access_point("width = \"40MHz\"\nstreams = 2")
            .up("s", 12, "rate = \"270Mbit/s\"")
            .promises("n-wide", All),
        bss("802.11ac", 25.0).up("s", 1, "").promises("ac-1", Alone),
        bss("802.11ac", 15.0).up("s", 4, "").promises("ac-4", All),
        bss("802.11ac", 25.0).up("s", 12, "").promises("ac-12", All),
        bss("802.11ac", 8.0).lasting(25, 5).up("s", 30, "").promises("ac-30", All),
        bss("802.11ax", 10.0).up("s", 6, "").promises("ax-6", All),
        bss("802.11ax", 40.0).lasting(25, 5).up("s", 20, "").promises("ax-20", All),
        bss("802.11n", 20.0).access_point("queue = \"fq\"").up("s", 8, "").promises("n-8-fq", All),
        bss("802.11n", 20.0)
            .access_point("buffer = 50")
            .up("s", 12, "")
            .promises("n-12-buffer-50", All),
        bss("802.11n", 20.0)
            .access_point("buffer = 1000")
            .up("s", 12, "")
            .promises("n-12-buffer-1000", All),
    ]
}

/// Hosts with small queues.
fn hosts() -> Vec<Setting> {
    use Promise::{All, Alone, SingleFrames, SmallQueues};
    vec![
        bss("802.11n", 20.0).up("s", 1, TSQ).promises("n-1-tsq", Alone),
        bss("802.11n", 25.0).up("s", 10, TSQ).promises("n-10-tsq", All),
        bss("802.11n", 15.0).up("s", 20, TSQ).promises("n-20-tsq", SmallQueues),
        bss("802.11n", 6.0).up("s", 40, TSQ).promises("n-40-tsq", SmallQueues),
        bss("802.11g", 20.0).up("s", 10, TSQ).promises("g-10-tsq", SingleFrames),
        bss("802.11ac", 30.0).up("s", 8, TSQ).promises("ac-8-tsq", All),
        bss("802.11ax", 20.0).up("s", 8, TSQ).promises("ax-8-tsq", All),
        bss("802.11n", 20.0).up("s", 8, MAC80211).promises("n-8-mac80211", All),
        bss("802.11n", 10.0).up("s", 24, MAC80211).promises("n-24-mac80211", SmallQueues),
        bss("802.11ac", 15.0).up("s", 10, MAC80211).promises("ac-10-mac80211", All),
    ]
}

/// Stations of unequal rates and paths.
fn unequal() -> Vec<Setting> {
    use Promise::{All, Unequal};
    vec![
        bss("802.11n", 25.0)
            .up("slow", 1, "rate = \"13Mbit/s\"")
            .up("fast", 5, "")
            .promises("n-slow", All),
        bss("802.11g", 30.0)
            .up("slow", 2, "rate = \"6Mbit/s\"")
            .up("fast", 4, "")
            .promises("g-slow", All),
        bss("802.11ac", 25.0)
            .up("ac", 3, "")
            .up("n", 3, "standard = \"802.11n\"")
            .promises("ac-beside-n", Unequal(1.4, 0.98)),
        bss("802.11ac", 50.0)
            .up("ac", 4, "")
            .up("n", 2, "standard = \"802.11n\"")
            .promises("ac-beside-n-50", Unequal(1.4, 0.98)),
        bss("802.11ac", 2.0)
            .access_point("streams = 2")
            .up("fast", 1, "rate = \"780Mbit/s\"")
            .up("phone", 1, "rate = \"585Mbit/s\"")
            .up("tablet", 2, "standard = \"802.11n\"\nrate = \"52Mbit/s\"")
            .promises("matsuno-1000", Unequal(0.98, 0.95)),
        bss("802.11ac", 2.0)
            .access_point("streams = 2")
            .wired("rate = \"100Mbit/s\"")
            .up("fast", 1, "rate = \"780Mbit/s\"")
            .up("phone", 1, "rate = \"585Mbit/s\"")
            .up("tablet", 2, "standard = \"802.11n\"\nrate = \"52Mbit/s\"")
            .promises("matsuno-100", Unequal(0.98, 0.97)),
        bss("802.11n", 10.0)
            .further("near", 4, 0.0)
            .further("far", 4, 90.0)
            .flow("near", "server", "jitter = \"500ms\"")
            .flow("far", "server", "jitter = \"500ms\"")
            .promises("n-near-and-far", All),
        bss("802.11n", 5.0)
            .lasting(60, 20)
            .further("near", 5, 0.0)
            .further("far", 1, 300.0)
            .flow("near", "server", "jitter = \"500ms\"")
            .flow("far", "server", "jitter = \"500ms\"")
            .promises("n-one-far", All),
    ]
}

/// Long paths, lossy air, a bottleneck in the wire.
fn paths() -> Vec<Setting> {
    use Promise::All;
    vec![
        bss("802.11n", 250.0).lasting(60, 20).up("s", 6, "").promises("n-6-250ms", All),
        bss("802.11n", 500.0).lasting(90, 30).up("s", 8, "").promises("n-8-500ms", All),
        bss("802.11ac", 120.0).lasting(60, 20).up("s", 6, "").promises("ac-6-120ms", All),
        bss("802.11n", 40.0).up("s", 8, "frame_error_rate = 0.3").promises("n-8-lossy", All),
        bss("802.11n", 20.0)
            .wired("rate = \"20Mbit/s\"\nqueue = 200")
            .up("s", 8, "")
            .promises("wire-20", All),
        bss("802.11ac", 30.0)
            .wired("rate = \"50Mbit/s\"\nqueue = 1000")
            .up("s", 6, "")
            .promises("wire-50", All),
    ]
}

/// Up, down and both.
fn directions() -> Vec<Setting> {
    use Promise::{BothWays, DownOnly};
    vec![
        bss("802.11n", 20.0)
            .stations("down", 8, "")
            .flow("server", "down", "jitter = \"500ms\"")
            .promises("n-down", DownOnly),
        bss("802.11n", 20.0)
            .up("up", 3, "")
            .stations("down", 3, "")
            .flow("server", "down", "jitter = \"500ms\"")
            .promises("n-3-and-3", BothWays),
        bss("802.11n", 40.0)
            .up("up", 6, "")
            .stations("down", 4, "")
            .flow("server", "down", "jitter = \"500ms\"")
            .promises("n-6-and-4", BothWays),
        bss("802.11ac", 20.0)
            .up("up", 4, "")
            .stations("down", 4, "")
            .flow("server", "down", "jitter = \"500ms\"")
            .promises("ac-4-and-4", BothWays),
    ]
}

/// Transfers of a size, several connections, applications that ask for little.
fn transfers() -> Vec<Setting> {
    use Promise::{All, Ideal, Limited, Short};
    let sized = |standard, rtt, count, size: &str, jitter: &str| {
        let keys = format!("size = \"{size}\"\njitter = \"{jitter}\"");
        bss(standard, rtt).lasting(600, 0).stations("s", count, "").flow("s", "server", &keys)
    };
    vec![
        sized("802.11g", 10.0, 20, "8MB", "500ms").promises("g-20-sized", Ideal),
        sized("802.11g", 25.0, 30, "6MB", "500ms").promises("g-30-sized", Ideal),
        sized("802.11n", 15.0, 24, "3MB", "10s").promises("n-24-short", Short),
        sized("802.11n", 40.0, 40, "1MB", "8s").promises("n-40-short", Short),
        bss("802.11n", 20.0)
            .stations("s", 6, "")
            .flow("s", "server", "jitter = \"500ms\"")
            .flow("s", "server", "jitter = \"500ms\"")
            .flow("s", "server", "jitter = \"500ms\"")
            .flow("s", "server", "jitter = \"500ms\"")
            .promises("n-6-by-4", All),
        bss("802.11n", 20.0)
            .stations("little", 5, "")
            .flow("little", "server", LIMITED)
            .up("much", 5, "")
            .promises("n-half-limited", Limited("little", 0.8)),
    ]
}

/// Stations without agents, other traffic, changes.
fn neighbours() -> Vec<Setting> {
    use Promise::{All, Beside};
    vec![
        bss("802.11n", 20.0)
            .lasting(65, 5)
            .agents("with")
            .up("with", 4, "")
            .up("without", 4, "")
            .promises("n-half-agents", Beside("with")),
        bss("802.11n", 15.0)
            .lasting(65, 5)
            .agents("with")
            .up("with", 1, "")
            .up("without", 7, "")
            .promises("n-one-agent", Beside("with")),
        bss("802.11g", 25.0)
            .lasting(65, 5)
            .agents("with")
            .up("with", 5, "")
            .up("without", 5, "")
            .promises("g-half-agents", Beside("with")),
        bss("802.11n", 20.0)
            .lasting(65, 5)
            .agents("with")
            .up("with", 1, "")
            .up("without", 5, TSQ)
            .promises("n-one-agent-tsq", Beside("with")),
        bss("802.11n", 30.0)
            .up("s", 6, "")
            .stations("radio", 1, "")
            .flow("radio", "server", "kind = \"udp\"\nrate = \"4Mbit/s\"")
            .promises("n-udp", All),
        bss("802.11n", 20.0)
            .up("s", 6, "")
            .event("at = \"15s\"\nstation = \"s2\"\nrate = \"13Mbit/s\"")
            .promises("n-rate-falls", All),
        bss("802.11n", 10.0)
            .up("s", 6, "")
            .event("at = \"15s\"\nstation = \"s1\"\nwired_delay = \"60ms\"")
            .promises("n-delay-grows", All),
    ]
}

impl Setting {
    /// Whether its flows have no size.
    pub fn is_endless(&self) -> bool {
        self.transfers().is_none()
    }

    /// How many transfers of how many bytes, where all have a size.
    pub fn transfers(&self) -> Option<(u32, f64)> {
        let scenario = wakeai_scenario::Scenario::parse(&self.toml).ok()?;
        let flows = scenario.expand(1).flows;
        let sizes: Option<Vec<f64>> =
            flows.iter().map(|flow| flow.size.map(|size| size.get() as f64)).collect();
        let sizes = sizes?;
        Some((u32::try_from(sizes.len()).ok()?, sizes.iter().sum::<f64>() / sizes.len() as f64))
    }

    /// So many presence intervals, seconds: with all stations' agents, and nothing new to say.
    pub fn intervals_s(&self, intervals: f64) -> f64 {
        let scenario = wakeai_scenario::Scenario::parse(&self.toml).ok();
        let interval = scenario.map_or(f64::NAN, |scenario| {
            let stations = scenario.station_count() as usize;
            wakeai_world::agent::presence_interval(&scenario, stations).as_secs_f64()
        });
        interval * intervals
    }

    /// How many stations a group has.
    pub fn count_of(&self, group: &str) -> u32 {
        let scenario = wakeai_scenario::Scenario::parse(&self.toml).ok();
        let groups = scenario.iter().flat_map(|scenario| &scenario.stations);
        groups.filter(|one| one.name == group).map(|one| one.count).sum()
    }
}
