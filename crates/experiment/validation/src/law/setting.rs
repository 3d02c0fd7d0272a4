//! One setting of the matrix: a scenario, and the promise of the law in it.

use std::fmt::Write as _;

use wakeai_scenario::{Endpoint, FlowKind, FlowSpec, Scenario, Selector, StationGroup};
use wakeai_wifi::{QueueDiscipline, Standard};
use wakeai_world::agent::presence_interval;

use crate::statistics::mean;

/// What a setting promises of `airtime`, in most cases in comparison with `default`.
/// [`super::verdict`] has the bounds. Where [`Setting::has_frontier`] holds, only the index is judged
/// here, and all other figures beside fixed windows ([`crate::frontier`]).
#[derive(Clone, Debug, PartialEq)]
pub enum Promise {
    /// All stations have agents. The goodput is kept, the shares are equal, the queue is short, and
    /// there are few timeouts.
    All,
    /// All stations have agents, and some receive. [`Receiving`] says what else is asked.
    Receives(Receiving),
    /// The downloads of this group have a size, and others may be endless. The mean and the last completion
    /// of those that have one take at most 1.05 times as long as under `default`.
    Web,
    /// All n transfers have a size. The last one takes at most 1.05 · n · size / solo goodput.
    Ideal,
    /// Short transfers: the mean and the last completion take at most 1.05 times as long as under
    /// `default`.
    Short,
    /// The applications of this group each ask for this many Mbit/s, and get them.
    Limited(&'static str, f64),
    /// Only this group has agents: it gets at least 0.95 of its goodput without them. Where all stations are alike
    /// ([`Setting::has_like_stations`]), that is an equal part of the goodput of all.
    Beside(&'static str),
    /// A change happens at this second, or transfers end after it. Within 10 s or three presence
    /// intervals, all stations that still send have their new shares to within 10 %.
    Settles(f64),
    /// The goodput of each station is averaged over 5 s. The standard deviation of these means is
    /// at most 1.5 times that under `fixed` with the same mean windows.
    Steady,
    /// The station `new` begins to send at this second. It has half of its share within 2 s and
    /// nine tenths within 6 s, or within three presence intervals if those are longer.
    Newcomer(f64),
    /// The announcements of the agent of the station `liar` reduce the goodput of all others
    /// together by at most 10 %, compared with the same station without an agent.
    Lie,
    /// The same, where the station `liar` also reserves this part of the air. The reservation is admitted,
    /// so it is no lie, and the others keep nine tenths of the remaining part.
    LieWithReservation(f64),
}

/// What the stations of a setting with downloads move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiving {
    /// Downloads alone, of stations with equal rates.
    Down,
    /// Uploads and downloads.
    BothWays,
    /// Downloads alone, of slow stations beside fast ones.
    SlowAndFast,
}

impl Promise {
    /// Whether the promise concerns `airtime` alone, without a comparison with other conditions.
    pub fn is_of_the_law_alone(&self) -> bool {
        use Promise::{Lie, LieWithReservation, Newcomer, Settles, Steady};
        matches!(self, Settles(_) | Steady | Newcomer(_) | Lie | LieWithReservation(_))
    }
}

/// The condition in which the lying member has no agent.
pub(super) const WITHOUT: &str = "without";
/// The condition that fixes each window at its mean under `airtime`. It is made for each run.
pub(super) const FIXED: &str = "fixed";

/// One row of the matrix.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// The promise.
    pub promise: Promise,
    /// The scenario as it was read.
    pub scenario: Scenario,
    /// The scenario as TOML.
    pub toml: String,
    /// The group that alone has agents; `None` where all stations have them.
    pub agents: Option<&'static str>,
}

/// A key of `[[stations]]`: Linux's limit "TCP small queues" applies to the host queue.
pub(super) const TSQ: &str = "host_queue = 'tsq'";
/// A key of `[[flows]]`: the flows of a group begin at random times within half a second.
pub(super) const JITTER: &str = "jitter = '500ms'";

/// A scenario under construction. Durations are in seconds, round-trip times in ms.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    standard: &'static str,
    access_point: &'static str,
    wired: &'static str,
    wired_rtt_ms: f64,
    seconds: u32,
    warmup: u32,
    agents: Option<&'static str>,
    uploads_alone: Option<&'static str>,
    body: String,
}

/// A BSS whose stations all have this round-trip time.
pub(super) fn bss(standard: &'static str, rtt_ms: f64) -> Draft {
    Draft {
        standard,
        access_point: "",
        wired: "",
        wired_rtt_ms: rtt_ms,
        seconds: 35,
        warmup: 5,
        agents: None,
        uploads_alone: None,
        body: String::new(),
    }
}

impl Draft {
    /// Sets keys of `[access_point]`.
    pub(super) fn access_point(mut self, keys: &'static str) -> Self {
        self.access_point = keys;
        self
    }

    /// Sets keys of `[wired]`.
    pub(super) fn wired(mut self, keys: &'static str) -> Self {
        self.wired = keys;
        self
    }

    pub(super) fn lasting(mut self, seconds: u32, warmup: u32) -> Self {
        (self.seconds, self.warmup) = (seconds, warmup);
        self
    }

    /// Gives agents to this group only.
    pub(super) fn agents(mut self, group: &'static str) -> Self {
        self.agents = Some(group);
        self
    }

    /// Lets the agents of this group govern uploads alone, as those of earlier versions do.
    pub(super) fn uploads_alone(mut self, group: &'static str) -> Self {
        self.uploads_alone = Some(group);
        self
    }

    /// Adds an access point, with the additional keys `keys` of `[[bss]]`. All are on one channel.
    pub(super) fn access_point_named(mut self, name: &str, keys: &str) -> Self {
        let _ = write!(self.body, "\n[[bss]]\nname = '{name}'\n{keys}\n");
        self
    }

    /// Adds `count` stations with the additional keys `keys` of `[[stations]]`.
    pub(super) fn stations(mut self, name: &str, count: u32, keys: &str) -> Self {
        let _ = write!(self.body, "\n[[stations]]\nname = '{name}'\ncount = {count}\n{keys}\n");
        self
    }

    /// Adds `count` stations with an endless upload each. The round-trip time to their server is
    /// `more_ms` longer.
    pub(super) fn further(self, name: &str, count: u32, more_ms: f64) -> Self {
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

    /// Adds `count` stations with an endless upload each, which begins within half a second.
    pub(super) fn up(self, name: &str, count: u32, keys: &str) -> Self {
        self.stations(name, count, keys).flow(name, "server", JITTER)
    }

    /// Adds `count` stations with an endless download each, which begins within half a second.
    pub(super) fn down(self, name: &str, count: u32, keys: &str) -> Self {
        self.stations(name, count, keys).flow("server", name, JITTER)
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
            if let Some(group) = self.uploads_alone {
                let law = "{ name = 'airtime', downloads = false }";
                let _ = writeln!(toml, "laws = [{{ stations = '{group}', law = {law} }}]");
            }
        }
        let scenario = Scenario::parse(&toml).expect("every setting is a scenario");
        Setting { name, promise, scenario, toml, agents: self.agents }
    }
}

impl Setting {
    /// Whether fixed windows and the law can be compared here: all stations are under agents, their
    /// windows can be bounded, and nothing changes during the run. The command `frontier` judges
    /// these settings by goodput, queueing delay and timeouts.
    pub fn has_frontier(&self) -> bool {
        let is_one = matches!(self.promise, Promise::All | Promise::Receives(_));
        let has_quic = self.scenario.flows.iter().any(|flow| flow.kind == FlowKind::Quic);
        is_one && !has_quic && self.scenario.events.is_empty()
    }

    /// Whether some station's standard is 802.11ac, or a later one.
    pub fn has_ac(&self) -> bool {
        let mut radios = self.scenario.stations.iter().filter_map(|group| group.radio);
        radios.any(|radio| radio.standard >= Standard::Ac)
    }

    /// The number of packets that the access point's buffer holds, and whether each station has a queue
    /// of its own there.
    pub fn access_point_queue(&self) -> (u32, bool) {
        let access_point = &self.scenario.access_point;
        let is_fair = access_point.wifi().is_some_and(|bss| bss.queue == QueueDiscipline::Fq);
        (u32::try_from(access_point.buffer.room(0, 0)).unwrap_or(u32::MAX), is_fair)
    }

    /// Whether the stations do not aggregate frames.
    pub fn has_single_frames(&self) -> bool {
        let mut radios = self.scenario.stations.iter().filter_map(|group| group.radio);
        radios.all(|radio| radio.standard.longest_ampdu().get() == 0)
    }

    /// The number of transfers and their mean size in bytes, if all flows have a size.
    pub fn transfers(&self) -> Option<(u32, f64)> {
        let flows = self.scenario.expand(1).flows;
        let sizes = flows.iter().map(|flow| flow.size.map(|size| size.get() as f64));
        let sizes: Vec<f64> = sizes.collect::<Option<_>>()?;
        Some((u32::try_from(sizes.len()).ok()?, mean(&sizes)?))
    }

    /// The length of `intervals` presence intervals in a steady state with agents on all stations,
    /// seconds.
    pub fn intervals_s(&self, intervals: f64) -> f64 {
        let stations = self.scenario.station_count() as usize;
        presence_interval(&self.scenario, stations).as_secs_f64() * intervals
    }

    /// Whether the stations of all groups, and their traffic, are alike.
    pub fn has_like_stations(&self) -> bool {
        let (stations, flows) = (&self.scenario.stations, &self.scenario.flows);
        let host = |group: &StationGroup| {
            let (name, count) = (String::new(), 1);
            StationGroup { name, count, ..group.clone() }
        };
        let traffic = |of: usize| -> Vec<FlowSpec> {
            let here = Endpoint::Stations(Selector { group: of, number: None });
            let any = Endpoint::Stations(Selector { group: 0, number: None });
            let moves = flows.iter().filter(|flow| [flow.from, flow.to].contains(&here));
            let end = |end| if end == here { any } else { end };
            moves
                .map(|flow| FlowSpec { from: end(flow.from), to: end(flow.to), ..flow.clone() })
                .collect()
        };
        let first = (host(&stations[0]), traffic(0));
        stations.iter().enumerate().all(|(at, group)| (host(group), traffic(at)) == first)
    }

    /// The number of stations in a group.
    pub fn count_of(&self, group: &str) -> u32 {
        let groups = self.scenario.stations.iter().filter(|one| one.name == group);
        groups.map(|one| one.count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::matrix;

    fn settings_with_a_frontier() -> Vec<Setting> {
        matrix().into_iter().filter(Setting::has_frontier).collect()
    }

    #[test]
    fn settings_with_changes_transfers_or_strangers_have_no_frontier() {
        let names: Vec<&str> =
            settings_with_a_frontier().iter().map(|setting| setting.name).collect();
        for name in ["n-10", "n-1-tsq", "g-30", "n-20-tsq", "n-down", "n-3-and-3", "n-6-by-4"] {
            assert!(names.contains(&name), "{name}");
        }
        for name in ["n-rate-falls", "n-10-web", "n-half-old-down", "n-quic-and-tcp", "g-20-sized"]
        {
            assert!(!names.contains(&name), "{name}");
        }
    }

    #[test]
    fn stations_with_other_traffic_or_another_host_are_not_alike() {
        let all = matrix();
        let alike = |name| {
            let setting = all.iter().find(|setting| setting.name == name).expect("it exists");
            setting.has_like_stations()
        };
        for name in ["n-half-agents", "g-half-agents-down", "n-half-old-both", "n-one-agent"] {
            assert!(alike(name), "{name}");
        }
        for name in ["n-one-agent-tsq", "n-agents-down-others-up", "n-quic-beside-tcp-down"] {
            assert!(!alike(name), "{name}");
        }
    }

    #[test]
    fn only_a_and_g_may_carry_less_than_stock() {
        for setting in settings_with_a_frontier() {
            let single = setting.name.starts_with("a-") || setting.name.starts_with("g-");
            assert_eq!(setting.has_single_frames(), single, "{}", setting.name);
        }
    }
}
