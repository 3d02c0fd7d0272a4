//! An experiment as TOML, its fairness figures, its result and its records.
//!
//! [`Scenario::load`] or [`Scenario::parse`] reads a file, [`Scenario::with_overrides`] applies
//! `--set`, [`Scenario::conditions`] gives the conditions to run, [`Experiment::expand`] the single stations
//! and flows of one run, [`solo_plan`] the runs that measure the stations' solo goodput. A world
//! then fills a [`result::Report`] by means of [`figures`], prints it with [`table::render`] and
//! keeps it with [`records`].

pub mod condition;
pub mod error;
pub mod expand;
pub mod experiment;
pub mod figures;
pub mod radio;
mod read;
pub mod records;
pub mod result;
mod scenario;
mod set;
pub mod solo;
pub mod table;
mod tree;

pub use condition::{BoundsRule, Condition, Law, ResolvedCondition};
pub use error::{Place, Problem, ScenarioError};
pub use expand::{Direction, Expanded, Flow, Node, Station, repeat_seed};
pub use experiment::{
    Announces, Endpoint, EventSpec, Experiment, FlowKind, FlowKnobs, FlowSpec, HostQueue, Selector,
    StationGroup, TcpProfile, Told,
};
pub use radio::{AccessPoint, Medium};
pub use scenario::Scenario;
pub use solo::{SoloRun, StationDirection, given_maxima, solo_plan};
