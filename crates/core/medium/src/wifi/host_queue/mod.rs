//! A station's own queue as mac80211 has it: FQ-CoDel (RFC 8290), from which frames are taken when
//! an aggregate is built.
//!
//! Packets are sorted into queues by their flow. Queues that have just become busy are served
//! first, so that a sparse flow does not wait behind a bulk flow. The other queues are served by
//! deficit round robin. CoDel keeps each queue short. Where all queues together exceed the limit,
//! packets at the head of the queue with the most bytes are dropped. The sender of a dropped packet
//! is not notified.

mod codel;

use std::collections::{BTreeMap, VecDeque};

use codel::{Codel, Waiting};
use wakeai_units::Instant;
use wakeai_wifi::Standard;

/// The number of queues into which flows are hashed (mac80211's; RFC 8290 section 5.2.1 has 1024).
const QUEUES: u64 = 4_096;
/// The bytes of one turn. They are few, so that short packets come first (RFC 8290 section 5.2.4);
/// mac80211 has the same number.
const QUANTUM: i64 = 300;
/// The most packets that are dropped from the longest queue at once (RFC 8290 section 4.1);
/// mac80211 has the same number.
const MOST_DROPPED: usize = 32;

/// The limits of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) packets: usize,
    /// Memory of the host, in bytes.
    pub(crate) memory: u64,
}

impl Room {
    /// Room for `packets` packets, and for the memory that mac80211 grants: 4 MiB, or 16 MiB for a
    /// station of 802.11ac or later.
    pub(crate) fn of(standard: Standard, packets: usize) -> Self {
        let mebibytes = match standard {
            Standard::A | Standard::B | Standard::G | Standard::N => 4,
            Standard::Ac | Standard::Ax => 16,
        };
        Self { packets, memory: mebibytes << 20 }
    }
}

/// The memory that a packet takes on a Linux host. It is the packet's buffer with head and tail
/// room, whose size is a power of two, and the descriptor (`sk_buff`).
const fn memory_of(bytes: u32) -> u64 {
    (bytes as u64 + 512).next_power_of_two() + 256
}

/// A queue of flows.
///
/// Order of calls: [`HostQueue::push`] when a packet comes, and [`HostQueue::pop`] until an
/// aggregate is full. `now` never goes back.
#[derive(Clone, Debug)]
pub(crate) struct HostQueue<T> {
    /// By hash. An empty queue stays in the map because it keeps the state of CoDel.
    queues: BTreeMap<u16, QueuedFlow<T>>,
    /// The hashes of the queues that have just become busy, and of the other busy ones.
    new: VecDeque<u16>,
    old: VecDeque<u16>,
    pub(crate) packets: usize,
    memory: u64,
    room: Room,
}

/// The packets of one flow, or of several whose hash is the same.
#[derive(Clone, Debug)]
struct QueuedFlow<T> {
    packets: VecDeque<Waiting<T>>,
    bytes: u64,
    /// Bytes granted less bytes taken.
    deficit: i64,
    /// Whether the flow is in `new` or in `old`.
    is_listed: bool,
    codel: Codel,
}

impl<T> Default for QueuedFlow<T> {
    fn default() -> Self {
        let (packets, codel) = (VecDeque::new(), Codel::default());
        Self { packets, bytes: 0, deficit: 0, is_listed: false, codel }
    }
}

impl<T> HostQueue<T> {
    pub(crate) fn new(room: Room) -> Self {
        let (new, old) = (VecDeque::new(), VecDeque::new());
        Self { queues: BTreeMap::new(), new, old, packets: 0, memory: 0, room }
    }

    /// Packets of full length that still fit without a drop.
    pub(crate) fn room(&self) -> usize {
        let memory = self.room.memory.saturating_sub(self.memory) / memory_of(1_500);
        self.room.packets.saturating_sub(self.packets).min(memory as usize)
    }

    /// Adds a packet of the flow `flow`. `dropped` is called for each packet that is then dropped
    /// because of the limits. The new packet may be among them.
    pub(crate) fn push(
        &mut self,
        now: Instant,
        flow: u64,
        bytes: u32,
        item: T,
        dropped: impl FnMut(T),
    ) {
        let hash = hash(flow);
        let last = self.queues.get(&hash).and_then(|queue| queue.packets.back());
        debug_assert!(last.is_none_or(|last| last.since <= now), "the time went back");
        let queue = self.queues.entry(hash).or_default();
        queue.packets.push_back(Waiting { item, bytes, since: now });
        queue.bytes += u64::from(bytes);
        if !std::mem::replace(&mut queue.is_listed, true) {
            queue.deficit = QUANTUM;
            self.new.push_back(hash);
        }
        self.packets += 1;
        self.memory += memory_of(bytes);
        self.drop_excess(dropped);
        debug_assert!(self.packets == 1 || self.packets <= self.room.packets, "{}", self.packets);
        debug_assert!(self.packets == 1 || self.memory <= self.room.memory, "{} B", self.memory);
    }

    /// Enforces the limits (RFC 8290 section 4.1). One packet is always kept, whatever its size.
    fn drop_excess(&mut self, mut dropped: impl FnMut(T)) {
        while (self.packets > self.room.packets || self.memory > self.room.memory)
            && self.packets > 1
        {
            let Some(longest) = longest(&mut self.queues) else { return };
            let half = longest.packets.len().div_ceil(2).min(MOST_DROPPED).min(self.packets - 1);
            for packet in longest.packets.drain(..half) {
                longest.bytes -= u64::from(packet.bytes);
                self.packets -= 1;
                self.memory -= memory_of(packet.bytes);
                dropped(packet.item);
            }
        }
    }

    /// The packet that goes on the air next; `None` where the queue is empty. `dropped` is called
    /// for the packets that CoDel drops before it.
    pub(crate) fn pop(&mut self, now: Instant, mut dropped: impl FnMut(T)) -> Option<T> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let hash = *list.front()?;
            let Some(queue) = self.queues.get_mut(&hash) else { unreachable!("it is listed") };
            if queue.deficit <= 0 {
                queue.deficit += QUANTUM;
                list.pop_front();
                self.old.push_back(hash);
                continue;
            }
            let QueuedFlow { packets, codel, bytes, .. } = queue;
            let (gone, memory) = (&mut self.packets, &mut self.memory);
            let take = || {
                let packet = packets.pop_front()?;
                *bytes -= u64::from(packet.bytes);
                *gone -= 1;
                *memory -= memory_of(packet.bytes);
                Some((packet, !packets.is_empty()))
            };
            if let Some(packet) = codel.dequeue(now, take, |packet| dropped(packet.item)) {
                queue.deficit -= i64::from(packet.bytes);
                return Some(packet.item);
            }
            // The queue passes through the list of old queues once. Otherwise a flow could become
            // first again by pausing.
            list.pop_front();
            if is_new {
                self.old.push_back(hash);
            } else {
                queue.is_listed = false;
            }
        }
    }
}

/// The queue with the most bytes. Of several such queues it is the first.
fn longest<T>(queues: &mut BTreeMap<u16, QueuedFlow<T>>) -> Option<&mut QueuedFlow<T>> {
    let busy = queues.iter().filter(|(_, queue)| !queue.packets.is_empty());
    let busy = busy.map(|(hash, queue)| (queue.bytes, std::cmp::Reverse(*hash)));
    let (_, std::cmp::Reverse(hash)) = busy.max()?;
    queues.get_mut(&hash)
}

/// The queue of a flow: the finalizer of Steele, Lea and Flood's SplitMix64. (Linux has a keyed
/// hash, so that an attacker cannot choose flows that collide.)
fn hash(flow: u64) -> u16 {
    let mut word = flow;
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((word ^ (word >> 31)) % QUEUES) as u16
}

#[cfg(test)]
mod tests;
