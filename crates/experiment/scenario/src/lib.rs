//! What an experiment is: reads it from TOML, and makes the conditions, stations and flows of its runs.
//!
//! [`Scenario::load`] or [`Scenario::parse`] reads a file, and [`Scenario::with_overrides`] applies
//! `--set`. [`Scenario::conditions`] returns the conditions to run. [`Experiment::expand`] returns
//! the single stations and flows of a run. [`solo_plan`] returns the runs that measure what each
//! station reaches alone. A world (the simulator or the lab) makes the runs; what comes of them is in
//! the crate `wakeai-results`.

mod expand;
mod experiment;
mod read;
mod scenario;
mod set;
mod solo;

pub use wakeai_settings::{Place, Problem};

pub use expand::{Direction, Expanded, Flow, Node, Station, StationDirection, repeat_seed};
pub use experiment::{
    AccessPoint, AnnouncedRate, Announces, BssSpec, Chunks, Condition, Endpoint, EventSpec,
    Experiment, FlowKind, FlowKnobs, FlowSpec, HostQueue, LawRule, Medium, Selector, Stack,
    StationGroup, TcpProfile,
};
pub use scenario::{ResolvedCondition, Scenario, ScenarioError};
pub use solo::{SoloRun, first_flows, solo_lengths, solo_plan};
