//! One file per command.

pub(crate) mod agent;
mod agents;
pub(crate) mod compare;
pub(crate) mod completion;
pub(crate) mod doctor;
mod experiment;
pub(crate) mod field;
pub(crate) mod grid;
pub(crate) mod lab;
pub(crate) mod man;
pub(crate) mod medium;
pub(crate) mod monitor;
pub(crate) mod probe;
pub(crate) mod proxy;
pub(crate) mod put;
pub(crate) mod report;
pub(crate) mod reserve;
pub(crate) mod serve;
pub(crate) mod sim;
pub(crate) mod status;
pub(crate) mod top;
pub(crate) mod use_algorithm;
