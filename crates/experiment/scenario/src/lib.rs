//! Reads an experiment from TOML, computes its figures, and writes its result and its records.
//!
//! [`Scenario::load`] or [`Scenario::parse`] reads a file, and [`Scenario::with_overrides`] applies
//! `--set`. [`Scenario::conditions`] returns the conditions to run. [`Experiment::expand`] returns
//! the single stations and flows of a run. [`solo_plan`] returns the runs that measure what each
//! station reaches alone. A world (the simulator or the lab) makes the runs. It computes a
//! [`result::Report`] with the help of [`figures`], prints it with [`table::render`] and keeps it
//! with [`records`]. [`compare`] compares two reports.

pub mod aggregate;
pub mod compare;
mod condition;
mod error;
mod expand;
mod experiment;
pub mod figures;
mod read;
pub mod records;
pub mod result;
mod scenario;
mod set;
mod solo;
mod stations;
pub mod table;
mod tree;

pub use condition::{BoundsRule, Condition, FixedBounds, Law, LawParameters, LawRule};
pub use error::{Place, Problem, ScenarioError};
pub use expand::{Direction, Expanded, Flow, Node, Station, StationDirection, repeat_seed};
pub use experiment::{Chunks, Endpoint, EventSpec, Experiment, FlowKind, FlowKnobs, FlowSpec};
pub use scenario::{ResolvedCondition, Scenario};
pub use solo::{SoloRun, given_maxima, is_settled, solo_lengths, solo_plan};
pub use stations::{
    AccessPoint, AnnouncedRate, Announces, HostQueue, Medium, Selector, StationGroup, TcpProfile,
};
