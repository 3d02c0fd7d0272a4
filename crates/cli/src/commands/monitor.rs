//! `wakeai monitor`.

mod format;

use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::time::Instant;

use anyhow::Context as _;
use wakeai_kernel::{Filter, Monitor, MonitorConfig};

use crate::args::MonitorArguments;
use crate::failure::{Failure, note};
use crate::interrupt::Interrupt;
use crate::output::{self, OutputReader};

pub(crate) fn run(arguments: &MonitorArguments) -> Result<(), Failure> {
    let config = MonitorConfig {
        every_ack: arguments.every_ack,
        filter: filter(arguments)?,
        ..MonitorConfig::default()
    };
    let interrupt = Interrupt::install()?;
    let mut monitor = Monitor::open(&config)?;
    let deadline =
        arguments.duration.map(|duration| Instant::now() + std::time::Duration::from(duration));
    let watched = watch(&mut monitor, arguments.json, &interrupt, deadline);
    match monitor.lost() {
        0 => {}
        lost => note(format_args!(
            "{lost} records were lost: the buffer was full; watch less with a filter, or without \
             --every-ack"
        )),
    }
    watched
}

fn watch(
    monitor: &mut Monitor,
    json: bool,
    interrupt: &Interrupt,
    deadline: Option<Instant>,
) -> Result<(), Failure> {
    // Standard output is locked once, and written to once per poll.
    let mut out = std::io::stdout().lock();
    let mut text = Vec::with_capacity(1 << 16);
    while !interrupt.is_asked() && deadline.is_none_or(|end| Instant::now() < end) {
        text.clear();
        monitor.poll(Monitor::INTERVAL, &mut |record| {
            if json { format::json(&record, &mut text) } else { format::text(&record, &mut text) }
        })?;
        if !text.is_empty()
            && output::reader(out.write_all(&text).and_then(|()| out.flush()))?
                == OutputReader::Gone
        {
            return Ok(());
        }
    }
    Ok(())
}

fn filter(arguments: &MonitorArguments) -> Result<Filter, Failure> {
    let inodes = arguments.netns.iter().map(|name| netns(name));
    Ok(Filter {
        address: arguments.address,
        port: arguments.port,
        netns_inodes: inodes.collect::<Result<_, _>>().map_err(Failure::usage)?,
        ..Filter::default()
    })
}

/// Finds the inode of a network namespace by a name that `ip netns` lists; a number is the inode itself.
pub(super) fn netns(name: &str) -> anyhow::Result<u32> {
    if let Ok(inode) = name.parse() {
        return Ok(inode);
    }
    let path = std::path::Path::new("/run/netns").join(name);
    let found = std::fs::metadata(&path).with_context(|| {
        format!("--netns: found {name:?}, expected a name that `ip netns` lists, or an inode")
    })?;
    u32::try_from(found.ino()).with_context(|| {
        format!("--netns: {name} is not a network namespace (its inode is too large)")
    })
}
