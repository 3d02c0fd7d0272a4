//! The running flows of a run: prepares, starts, watches and stops them.

use wakeai_scenario::{Expanded, Flow};
use wakeai_units::{Duration, Instant};
use wakeai_world::{ReceiverMeter, RunSink, Span};

use super::testbed::Testbed;
use crate::agents::Agents;
use crate::clock;
use crate::error::LabError;
use crate::host::Child;
use crate::shared::SharedResources;
use crate::traffic::iperf::{self, Receiver};
use crate::traffic::quic::{QuicTransfer, Sampled};
use crate::traffic::transfer::OwnTransfer;
use crate::traffic::{FlowPlan, TrafficKind};

/// The longest wait until all iperf3 servers listen.
const PATIENCE: Duration = Duration::from_secs(20);
/// The time that the lab takes to start one process.
const SPAWN_TIME: Duration = Duration::from_millis(2);
/// The time from the end of the run to the signal that ends the iperf3 clients. iperf3
/// counts bytes by intervals; thus its last interval covers the end of the run.
const TAIL: Duration = Duration::from_millis(20);

/// The flows of a run that has ended, in the order of the scenario.
pub(super) struct Stopped {
    pub(super) meters: Vec<ReceiverMeter>,
    /// The time at which the lab opened each flow's first connection.
    pub(super) opened: Vec<Option<Instant>>,
    /// What the senders of QUIC flows knew.
    pub(super) sampled: Vec<Sampled>,
}

/// All flows of a run.
pub(super) struct Traffic<'a> {
    shared: &'a SharedResources<'a>,
    plans: &'a [FlowPlan],
    testbed: &'a Testbed,
    flows: &'a [Flow],
    /// Where the goodput over time is recorded.
    sink: Option<RunSink>,
    /// Known once the traffic has started.
    span: Option<Span>,
    /// The clients that are still to be started, the latest first. Each has its start, in
    /// nanoseconds after the run's time zero (negative before it), and the index of its flow.
    launches: Vec<(i128, usize)>,
    senders: Vec<Child>,
    receivers: Vec<(usize, Receiver)>,
    transfers: Vec<(usize, OwnTransfer)>,
    quics: Vec<(usize, QuicTransfer)>,
}

impl<'a> Traffic<'a> {
    /// Starts the iperf3 servers, and waits until they listen.
    pub(super) fn prepare(
        shared: &'a SharedResources<'a>,
        expanded: &'a Expanded,
        plans: &'a [FlowPlan],
        testbed: &'a Testbed,
        sink: Option<RunSink>,
    ) -> Result<Self, LabError> {
        let mut traffic = Self {
            shared,
            plans,
            testbed,
            flows: &expanded.flows,
            sink,
            span: None,
            launches: Vec::new(),
            senders: Vec::new(),
            receivers: Vec::new(),
            transfers: Vec::new(),
            quics: Vec::new(),
        };
        let mut ports = Vec::new();
        let is_iperfs =
            |plan: &&FlowPlan| matches!(plan.kind, TrafficKind::Tcp | TrafficKind::Udp(_));
        for plan in plans.iter().filter(is_iperfs) {
            let sender = iperf::spawn_sender(plan, testbed.sender(plan), shared.lease)?;
            ports.push(plan.port);
            traffic.senders.push(sender);
            let spawns = SPAWN_TIME.saturating_mul(traffic.senders.len() as u64);
            let lead = iperf::lead(plan.round_trip) + spawns;
            let at = i128::from(plan.start.as_nanos()) - i128::from(lead.as_nanos());
            traffic.launches.push((at, plan.index));
        }
        traffic.launches.sort_unstable_by(|a, b| b.cmp(a));
        let deadline = clock::now() + PATIENCE;
        for (sender, port) in traffic.senders.iter_mut().zip(ports) {
            while !iperf::listens(sender, port) {
                if clock::now() > deadline || !matches!(sender.process.try_wait(), Ok(None)) {
                    let reason = format!("it does not listen on port {port}");
                    return Err(LabError::child("iperf3 --server", &sender.station, reason));
                }
                clock::sleep(Duration::from_millis(2));
            }
        }
        Ok(traffic)
    }

    /// How long before the run's time zero the first client has to start.
    pub(super) fn lead(&self) -> Duration {
        let first = self.launches.last().map_or(0, |(at, _)| (-*at).max(0));
        Duration::from_nanos(u64::try_from(first).unwrap_or(0)) + Duration::from_millis(10)
    }

    /// Sets the times of the run, prepares the lab's own connections, and starts all clients that
    /// are due before the run's time zero.
    pub(super) fn start(&mut self, span: Span, agents: &mut Agents) -> Result<(), LabError> {
        self.span = Some(span);
        for plan in self.plans {
            let (from, to) = (self.testbed.sender(plan), &self.testbed.hosts[plan.receiver]);
            match plan.kind {
                TrafficKind::Own(_) => {}
                TrafficKind::Quic(_) => {
                    let flow = QuicTransfer::start(plan, self.meter(plan.index), from, to)?;
                    self.quics.push((plan.index, flow));
                    continue;
                }
                TrafficKind::Tcp | TrafficKind::Udp(_) => continue,
            }
            let targets = self.shared.targets.clone();
            let station = plan.sender.checked_sub(1).filter(|_| plan.turns);
            let agent = station.and_then(|station| agents.api_on(station));
            let meter = self.meter(plan.index);
            let transfer = OwnTransfer::start(plan, meter, from, to, targets, agent)?;
            self.transfers.push((plan.index, transfer));
        }
        while let Some((at, _)) = self.launches.last().copied()
            && at <= 0
        {
            self.shared.check()?;
            clock::sleep_until(self.instant(at));
            self.launch_due()?;
        }
        Ok(())
    }

    /// Starts the clients that are due, and looks at those that run. Returns an error if one has ended.
    pub(super) fn check(&mut self) -> Result<(), LabError> {
        self.launch_due()?;
        for index in 0..self.receivers.len() {
            self.receivers[index].1.look();
            if !self.receivers[index].1.is_running() {
                let (_, receiver) = self.receivers.swap_remove(index);
                return Err(receiver.ended_early(self.shared.lease));
            }
        }
        Ok(())
    }

    /// Whether all flows have a size and have ended.
    pub(super) fn all_completed(&self) -> bool {
        let sized =
            |plan: &FlowPlan| matches!(plan.kind, TrafficKind::Own(_) | TrafficKind::Quic(Some(_)));
        self.plans.iter().all(sized)
            && self.transfers.iter().all(|(_, flow)| flow.is_finished())
            && self.quics.iter().all(|(_, flow)| flow.is_finished())
    }

    /// Ends all flows of a run that ended at `end`.
    pub(super) fn stop(mut self, end: Instant) -> Result<Stopped, LabError> {
        let mut meters: Vec<_> = (0..self.plans.len()).map(|index| self.meter(index)).collect();
        let mut opened = vec![None; self.plans.len()];
        self.receivers.iter_mut().for_each(|(_, receiver)| receiver.look());
        if !self.receivers.is_empty() {
            clock::sleep_until(end + TAIL);
        }
        let stopped: Vec<Instant> = self.receivers.iter().map(|(_, flow)| flow.stop()).collect();
        for ((index, receiver), stopped) in self.receivers.drain(..).zip(stopped) {
            opened[index] = receiver.opened;
            receiver.collect(stopped, &mut meters[index], self.shared.lease)?;
        }
        self.transfers.iter().for_each(|(_, transfer)| transfer.stop());
        for (index, transfer) in self.transfers.drain(..) {
            opened[index] = transfer.begun();
            meters[index] = transfer.collect()?;
        }
        self.quics.iter().for_each(|(_, flow)| flow.stop());
        let mut sampled = Vec::new();
        for (index, flow) in self.quics.drain(..) {
            opened[index] = flow.begun();
            let (meter, samples) = flow.collect()?;
            meters[index] = meter;
            sampled.push(samples);
        }
        for sender in self.senders.drain(..) {
            sender.end(self.shared.lease)?;
        }
        Ok(Stopped { meters, opened, sampled })
    }

    fn span(&self) -> Span {
        self.span.expect("the traffic has started")
    }

    fn meter(&self, flow: usize) -> ReceiverMeter {
        ReceiverMeter::new(self.span(), &self.flows[flow], Duration::ZERO)
            .recording(self.sink.clone(), flow as u32)
    }

    fn launch_due(&mut self) -> Result<(), LabError> {
        while let Some((at, index)) = self.launches.last().copied()
            && self.instant(at) <= clock::now()
        {
            self.launches.pop();
            let plan = &self.plans[index];
            let host = &self.testbed.hosts[plan.receiver];
            let receiver = Receiver::spawn(plan, self.span().length(), host, self.shared.lease)?;
            self.receivers.push((index, receiver));
        }
        Ok(())
    }

    fn instant(&self, from_origin: i128) -> Instant {
        let nanos = i128::from(self.span().origin.as_nanos()) + from_origin;
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(0))
    }
}
