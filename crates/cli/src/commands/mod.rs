//! One file per command.

pub(crate) mod agent;
pub(crate) mod completion;
pub(crate) mod doctor;
pub(crate) mod lab;
pub(crate) mod monitor;
pub(crate) mod status;
