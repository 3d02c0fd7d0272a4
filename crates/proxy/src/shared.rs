//! What all connections of a proxy share. One thread serves them all.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use wakeai_kernel::Control;

use crate::config::{Config, Leg};
use crate::counters::Counters;
use crate::pipes::Pipes;

/// What is copied goes through this, a chunk at a time.
const BUFFER_BYTES: usize = 1 << 16;

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) connect_timeout: Duration,
    pub(crate) idle_timeout: Duration,
    pub(crate) counters: Counters,
    /// What sets target rates, where some are asked for.
    pub(crate) targets: Option<Control>,
    pub(crate) pipes: Pipes,
    pub(crate) can_splice: Cell<bool>,
    pub(crate) buffer: RefCell<Box<[u8]>>,
}

impl Shared {
    pub(crate) fn new(config: Config, targets: Option<Control>) -> Self {
        Self {
            connect_timeout: config.connect_timeout.into(),
            idle_timeout: config.idle_timeout.into(),
            counters: Counters::default(),
            targets,
            pipes: Pipes::new(config.memory),
            can_splice: Cell::new(true),
            buffer: RefCell::new(vec![0; BUFFER_BYTES].into_boxed_slice()),
            config,
        }
    }

    /// The congestion control of the connection to the destination.
    pub(crate) fn destination_algorithm(&self) -> Option<&str> {
        let asked = self.config.leg != Leg::Client;
        self.config.algorithm.as_deref().filter(|_| asked)
    }

    /// The congestion control of the connection to the client.
    pub(crate) fn client_algorithm(&self) -> Option<&str> {
        let asked = self.config.leg != Leg::Destination;
        self.config.algorithm.as_deref().filter(|_| asked)
    }
}
