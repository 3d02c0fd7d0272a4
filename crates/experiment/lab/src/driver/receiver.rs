//! A thread that writes due packets to the hosts, for machines with one processor.

use std::io;
use std::sync::mpsc::{Receiver as Inbox, Sender, channel};
use std::thread::JoinHandle;

use wakeai_air::{BEHIND_THE_MEDIUM, enter_realtime};

use crate::host::tun::Tun;

/// A packet and the index of the device to which it is written.
type Due = (usize, Box<[u8]>);

/// The thread, which writes the packets in the order in which they were due.
///
/// The kernel handles a packet (TCP, its ACK, the segments that the ACK releases) inside the call that writes it, and nothing
/// interrupts it until it is done. The priority of this thread is above that of applications, as the kernel's own handling of
/// packets is, and below the driver's. So the driver waits for one packet at most, and not for all of an aggregate.
#[derive(Debug)]
pub(super) struct Receiver {
    /// `None` only while the value is dropped.
    due: Option<Sender<Due>>,
    thread: Option<JoinHandle<u64>>,
}

impl Receiver {
    /// Starts the thread, with real-time scheduling if the process has it.
    pub(super) fn start(devices: Vec<Tun>, realtime: bool) -> io::Result<Self> {
        let (due, inbox) = channel();
        let write = move || {
            if realtime {
                let _ = enter_realtime(BEHIND_THE_MEDIUM); // the driver has noted why it is refused
            }
            write_all(&devices, &inbox)
        };
        let thread = std::thread::Builder::new().name("receiver".to_owned()).spawn(write)?;
        Ok(Self { due: Some(due), thread: Some(thread) })
    }

    /// Has a packet written to the device with this index.
    pub(super) fn hand_over(&self, device: usize, packet: &[u8]) {
        // The thread ends only after this value. Where it has panicked, `end` says so.
        let _ = self.due.as_ref().expect("taken in drop only").send((device, packet.into()));
    }

    /// Waits until every packet is written. Returns the number of packets that a device refused.
    pub(super) fn end(mut self) -> u64 {
        drop(self.due.take());
        let thread = self.thread.take().expect("taken here and in drop only");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        drop(self.due.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn write_all(devices: &[Tun], inbox: &Inbox<Due>) -> u64 {
    let written = inbox.iter().map(|(device, packet)| devices[device].write(&packet));
    written.filter(Result::is_err).count() as u64
}
