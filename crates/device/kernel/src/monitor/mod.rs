//! The monitor of TCP's activity, per connection and per ACK, in all network namespaces.

mod config;
mod record;

use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, MapImpl, RingBuffer, RingBufferBuilder};
use zerocopy::FromBytes as _;

pub use config::{Filter, MonitorConfig};
pub use record::Record;

use crate::error::Error;
use crate::features::{MONITOR, explain};
use crate::raw::RecordValue;
use crate::skeleton::monitor::MonitorSkelBuilder;
use crate::skeleton::quiet;

/// The running monitor. It ends when this value is dropped.
pub struct Monitor {
    ring: RingBuffer<'static>,
    /// The number of records that fit into the kernel's buffer.
    capacity: usize,
    received: Arc<Mutex<Vec<RecordValue>>>,
    counters: MapHandle,
    _programs: Vec<Link>,
}

const ASKED: &str = "watch TCP";

impl Monitor {
    /// A timeout for [`Monitor::poll`] that suits an interactive display. The kernel's buffer holds
    /// far more records than arrive in that time. A shorter timeout is cheap, too: polling every
    /// 10 ms takes a quarter of a percent of a core, with or without records.
    pub const INTERVAL: Duration = Duration::from_millis(50);

    /// Loads and attaches the programs.
    ///
    /// # Errors
    ///
    /// Where a privilege or feature is missing.
    pub fn open(config: &MonitorConfig) -> Result<Self, Error> {
        quiet();
        let failed = |error| explain(ASKED, MONITOR, error);
        let mut object = MaybeUninit::uninit();
        let mut open = MonitorSkelBuilder::default().open(&mut object).map_err(failed)?;
        open.maps.records.set_max_entries(config.buffer_bytes).map_err(failed)?;
        if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
            rodata.watch = config.to_watch();
        }
        let mut skel = open.load().map_err(failed)?;
        for key in config.filter.namespace_keys() {
            let watched = &skel.maps.watched_namespaces;
            watched.update(&key.to_ne_bytes(), &[0; 4], MapFlags::ANY).map_err(failed)?;
        }
        let received = Arc::new(Mutex::new(Vec::new()));
        let ring = ring_buffer(&skel.maps.records, Arc::clone(&received)).map_err(failed)?;
        let counters = MapHandle::try_from(&skel.maps.bss).map_err(failed)?;
        skel.attach().map_err(failed)?;
        let links = skel.links;
        let programs = [
            links.on_segment,
            links.on_congestion_state,
            links.on_retransmit,
            links.on_socket_state,
        ];
        let programs = programs.into_iter().flatten().collect();
        let capacity = config.buffer_bytes as usize / size_of::<RecordValue>();
        Ok(Self { ring, capacity, received, counters, _programs: programs })
    }

    /// Waits for `timeout`, and then passes every record to the callback. Records of the same CPU
    /// come in the order of their creation. A new record does not end the wait early, because a
    /// wake-up per record would cost ten times as much as the record. Meanwhile records wait in the
    /// kernel's buffer. At 1 Gbit/s with a record per ACK, a buffer of 8 MiB lasts for a second.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn poll(
        &mut self,
        timeout: Duration,
        on_record: &mut dyn FnMut(Record),
    ) -> Result<(), Error> {
        std::thread::sleep(timeout);
        // The limit ends the loop even if records arrive faster than they are read.
        let taken = self.ring.consume_raw_n(self.capacity);
        if taken < 0 {
            return Err(explain(ASKED, MONITOR, libbpf_rs::Error::from_raw_os_error(-taken)));
        }
        let mut received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        for value in received.drain(..) {
            record::expand(&value, on_record);
        }
        Ok(())
    }

    /// The number of records that were lost so far because the buffer was full.
    pub fn lost(&self) -> u64 {
        // An error is ignored, because reading an array map through an open descriptor does not
        // fail.
        let value = self.counters.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).ok().flatten();
        let counter = value.as_deref().and_then(|bytes| bytes.first_chunk());
        counter.copied().map(u64::from_ne_bytes).unwrap_or_default()
    }
}

impl std::fmt::Debug for Monitor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Monitor").finish_non_exhaustive()
    }
}

fn ring_buffer(
    records: &MapImpl<'_>,
    received: Arc<Mutex<Vec<RecordValue>>>,
) -> libbpf_rs::Result<RingBuffer<'static>> {
    let mut builder = RingBufferBuilder::new();
    builder.add(records, move |bytes| {
        if let Ok((value, _)) = RecordValue::read_from_prefix(bytes) {
            received.lock().unwrap_or_else(PoisonError::into_inner).push(value);
        }
        0
    })?;
    builder.build()
}
