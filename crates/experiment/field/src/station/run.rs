//! One run at this machine: everything is prepared, begins at the agreed time, and is undone.

use std::path::Path;
use std::sync::Arc;

use wakeai_host::{Lease, since_boot};
use wakeai_kernel::Control;
use wakeai_units::{Duration, Instant};

use super::agent::RunningAgent;
use super::flow::{self, Shared};
use super::watch::{Seen, Watch};
use super::{air, interface, sockets, udp};
use crate::protocol::{Air, Phase, RunPlan, StationData};

/// The time from the end of the run to the end of its flows. What was sent at the end arrives meanwhile, and does not count.
const TAIL: Duration = Duration::from_millis(30);
/// The time between two readings of the air.
const BETWEEN_READINGS: Duration = Duration::from_secs(1);
/// The time before the time zero at which the air is read once more.
const BEFORE_START: Duration = Duration::from_millis(100);
/// The time between two looks at the interface.
const LOOK: Duration = Duration::from_millis(250);

/// A run at this machine.
pub(super) struct Run {
    shared: Arc<Shared>,
    agent: Option<RunningAgent>,
    watch: Option<Watch>,
    /// Congestion controls of Wakeai, which flows name.
    _algorithms: Option<Control>,
    air_before: Option<Air>,
    air_at_start: Option<Air>,
    air_read: Instant,
    air_means: air::Means,
    looked: Instant,
    down: Duration,
    processors: Option<Vec<(u64, u64)>>,
    trouble: Vec<String>,
    data: Option<StationData>,
}

impl Run {
    /// Makes everything ready: algorithms, agent, monitor, listening sockets. An error says what is in the way; nothing is left then.
    pub(super) fn prepare(
        plan: RunPlan,
        program: &Path,
        directory: &Path,
        lease: Option<&Lease>,
    ) -> Result<Self, String> {
        let plan = RunPlan { way: interface::resolved(plan.way.clone()), ..plan };
        if plan.agent.is_some() && lease.is_none() {
            return Err("an agent needs root, and `sudo -n` does not give it".to_owned());
        }
        let algorithms = if plan.registers {
            Some(Control::open().map_err(|error| error.to_string())?)
        } else {
            None
        };
        let accepts =
            |udp| plan.flows.iter().any(|role| role.to.is_none() && role.udp_bps.is_some() == udp);
        let listens = |error: std::io::Error| error.to_string();
        let tcp = accepts(false).then(|| sockets::listen(&plan.way, plan.port));
        let tcp = tcp.transpose().map_err(listens)?;
        let datagrams = accepts(true).then(|| udp::listen(&plan.way, plan.port));
        let datagrams = datagrams.transpose().map_err(listens)?;
        let agent = match (&plan.agent, lease) {
            (Some(agent), Some(lease)) => {
                Some(RunningAgent::start(agent, program, directory, lease)?)
            }
            _ => None,
        };
        let air_before = air::read(&plan.way).ok();
        let shared = Shared::new(plan);
        let watch = Some(Watch::start(&shared));
        if let Some(listener) = tcp {
            shared.spawn(move |shared| flow::accept(shared, &listener));
        }
        if let Some(socket) = datagrams.map(Arc::new) {
            shared.spawn(move |shared| udp::serve(shared, &socket));
        }
        Ok(Self {
            shared,
            agent,
            watch,
            _algorithms: algorithms,
            air_before,
            air_at_start: None,
            air_read: Instant::ZERO,
            air_means: air::Means::default(),
            looked: Instant::ZERO,
            down: Duration::ZERO,
            processors: None,
            trouble: Vec::new(),
            data: None,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.shared.plan.run
    }

    /// Sets the run's time zero, and starts the flows that this machine opens.
    pub(super) fn go(&mut self, origin: Instant) {
        if self.shared.origin.set(origin).is_err() {
            return; // asked again, after the connection was lost
        }
        let late = since_boot().saturating_since(origin);
        if !late.is_zero() {
            self.trouble.push(format!("it was told the time zero of the run only {late} after it"));
        }
        let opens = self.shared.flows.values().filter(|flow| flow.role.to.is_some());
        let opens: Vec<(u32, bool)> =
            opens.map(|flow| (flow.role.flow, flow.role.udp_bps.is_some())).collect();
        for (number, is_udp) in opens {
            self.shared.spawn(move |shared| {
                let flow = &shared.flows[&number];
                if is_udp { udp::carry(shared, flow) } else { flow::carry(shared, flow) }
            });
        }
    }

    /// The end of the run, once its time zero is known.
    pub(super) fn end(&self) -> Option<Instant> {
        let length = Duration::from_nanos(self.shared.plan.duration_ns);
        self.shared.origin.get().map(|origin| *origin + length)
    }

    pub(super) fn phase(&self) -> Phase {
        match (&self.data, self.shared.origin.get()) {
            (Some(_), _) => Phase::Ended,
            (None, Some(_)) => Phase::Running,
            (None, None) => Phase::Prepared,
        }
    }

    /// The flows with a size whose data this machine has received completely.
    pub(super) fn complete(&self) -> Vec<u32> {
        let flows = self.shared.flows.values().filter(|flow| flow.is_complete());
        flows.map(|flow| flow.role.flow).collect()
    }

    /// What was measured, once the run is over; a run that is about to end is waited for.
    pub(super) fn fetch(&mut self, lease: Option<&Lease>) -> Option<&StationData> {
        if let Some(end) = self.end().filter(|end| since_boot() + LOOK >= *end) {
            let left = (end + TAIL).saturating_since(since_boot());
            std::thread::sleep(left.into());
            self.stop(lease);
        }
        self.data.as_ref()
    }

    /// Looks at the run: at its interface and its agent; ends it where its time is over, and returns `true` then.
    pub(super) fn look(&mut self, lease: Option<&Lease>) -> bool {
        let (now, Some(end)) = (since_boot(), self.end()) else { return false };
        if self.data.is_some() {
            return false;
        }
        if now >= end + TAIL {
            self.stop(lease);
            return true;
        }
        self.look_at_air(now);
        let begun = self.shared.origin.get().is_some_and(|origin| now >= *origin);
        if begun && self.processors.is_none() {
            self.processors = processors();
            self.looked = now;
        }
        if begun && now.saturating_since(self.looked) >= LOOK {
            let interface = self.shared.plan.way.interface.as_deref();
            if interface.is_some_and(|name| !interface::find(name).runs) {
                self.down += now.saturating_since(self.looked);
            }
            self.looked = now;
            if let Some(agent) = &mut self.agent
                && let Some(status) = agent.ended()
            {
                self.trouble
                    .push(format!("the agent ended during the run ({status}){}", agent.tail()));
                self.agent = None;
            }
        }
        false
    }

    /// Reads the air right before the time zero, and then every second, on a machine that could read it before.
    fn look_at_air(&mut self, now: Instant) {
        let due = self.air_before.is_some()
            && now.saturating_since(self.air_read) >= BETWEEN_READINGS
            && self.shared.origin.get().is_some_and(|origin| now + BEFORE_START >= *origin);
        if !due {
            return;
        }
        self.air_read = now;
        if let Ok(read) = air::read(&self.shared.plan.way) {
            if self.air_at_start.is_none() {
                self.air_at_start = Some(read);
            } else {
                self.air_means.add(&read);
            }
        }
    }

    /// Ends the run, and collects what was measured.
    pub(super) fn stop(&mut self, lease: Option<&Lease>) {
        if self.data.is_some() {
            return;
        }
        let busiest = self.processors.take().zip(processors()).and_then(|(a, b)| busiest(&a, &b));
        self.shared.join();
        let seen = self.watch.take().map_or_else(Seen::default, Watch::stop);
        let air_after = air::read(&self.shared.plan.way).ok();
        let peers = self.agent.as_ref().and_then(RunningAgent::peers);
        self.end_agent(lease);
        let flows = self.shared.flows.values();
        let mut trouble = std::mem::take(&mut self.trouble);
        for flow in flows.clone() {
            let own = flow.trouble.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            trouble.extend(own.clone());
        }
        self.data = Some(StationData {
            run: self.name().to_owned(),
            flows: flows.map(flow::FlowState::data).collect(),
            samples: seen.samples,
            events: seen.events,
            lost: seen.lost,
            monitored: seen.monitored,
            peers,
            air_before: self.air_before.take(),
            air_at_start: self.air_at_start.take(),
            air_during: std::mem::take(&mut self.air_means).get(),
            air_after,
            down_ns: self.down.as_nanos(),
            busiest_cpu: busiest,
            trouble,
        });
    }

    fn end_agent(&mut self, lease: Option<&Lease>) {
        if let Some((agent, lease)) = self.agent.take().zip(lease)
            && let Err(reason) = agent.stop(lease)
        {
            self.trouble.push(reason);
        }
    }

    /// Ends everything of the run.
    pub(super) fn undo(mut self, lease: Option<&Lease>) {
        self.shared.join();
        if let Some(watch) = self.watch.take() {
            watch.stop();
        }
        self.end_agent(lease);
    }
}

/// Of each processor, the time that it was busy and all its time, in ticks (`proc_stat(5)`).
fn processors() -> Option<Vec<(u64, u64)>> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let lines = text.lines().filter(|line| {
        line.strip_prefix("cpu")
            .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    });
    let times = lines.map(|line| {
        let ticks: Vec<u64> = line
            .split_ascii_whitespace()
            .skip(1)
            .take(8)
            .filter_map(|one| one.parse().ok())
            .collect();
        let all: u64 = ticks.iter().sum();
        let idle = ticks.get(3).unwrap_or(&0) + ticks.get(4).unwrap_or(&0);
        (all - idle, all)
    });
    Some(times.collect())
}

/// The busy share of the busiest processor between two readings.
fn busiest(before: &[(u64, u64)], after: &[(u64, u64)]) -> Option<f64> {
    let shares = before.iter().zip(after).filter_map(|(a, b)| {
        let (busy, all) = (b.0.saturating_sub(a.0), b.1.saturating_sub(a.1));
        (all > 0).then(|| busy as f64 / all as f64)
    });
    shares.reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_processor_counts() {
        let found = busiest(&[(10, 100), (0, 100)], &[(20, 200), (90, 200)]);
        assert_eq!(found, Some(0.9));
        assert_eq!(busiest(&[(1, 1)], &[(1, 1)]), None, "no time has passed");
        assert!(processors().is_some_and(|all| !all.is_empty()));
    }
}
