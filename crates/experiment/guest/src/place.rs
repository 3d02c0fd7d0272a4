//! Keeps an emulator on one processor at a time.
//!
//! qemu has a thread for the guest's processor and one for its devices, of which only one works at a time. They wake
//! each other thousands of times in a second of the guest. On two processors each of these wakes an idle processor,
//! which costs more than the work; on one it is a switch of threads. Measured: 5.7 seconds of a processor for a second
//! of a guest with six stations on two processors, 4.0 on one.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The time between two looks at a place. Each process adds something of its own, so that two guests that share a
/// processor do not both leave it at once.
const LOOK: Duration = Duration::from_secs(1);
/// The part of a processor below which a guest leaves it, and the idle part of the processor to which it moves.
const ENOUGH: f64 = 0.8;
const IDLE: f64 = 0.5;

/// The processor of an emulator.
#[derive(Debug)]
pub(crate) struct Place {
    process: Pid,
    /// The processors that the emulator may use.
    usable: Vec<usize>,
    /// The index in `usable` of the processor that it uses.
    own: usize,
    every: Duration,
    looked: Instant,
    /// The processor time of the emulator, and the idle times of `usable`, at that time.
    used: Duration,
    idle: Vec<Duration>,
}

impl Place {
    /// Gives the emulator one of the processors that this thread may use; each guest of this process gets the next one.
    /// `None` where that is not possible. The guest then only takes longer.
    pub(crate) fn of(process: u32) -> Option<Self> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let process = Pid::from_raw(process.cast_signed())?;
        let allowed = sched_getaffinity(None).ok()?;
        let usable: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
        // Different commands begin at different processors.
        let first = std::process::id() as usize;
        let own = (first + NEXT.fetch_add(1, Ordering::Relaxed)) % usable.len().max(1);
        let every = LOOK
            + Duration::from_millis(u64::from(process.as_raw_nonzero().get() as u32 % 10) * 100);
        let idle = idle_times(&usable)?;
        let place = Self {
            process,
            usable,
            own,
            every,
            looked: Instant::now(),
            used: Duration::ZERO,
            idle,
        };
        place.take().then_some(place)
    }

    /// Moves the emulator where others use its processor and one of the other processors is idle. `used` is the
    /// emulator's processor time.
    pub(crate) fn look(&mut self, used: Duration) {
        let since = self.looked.elapsed();
        if since < self.every {
            return;
        }
        let Some(idle) = idle_times(&self.usable) else { return };
        let part = |now: Duration, before: Duration| {
            now.saturating_sub(before).as_secs_f64() / since.as_secs_f64()
        };
        let idle_parts: Vec<f64> =
            idle.iter().zip(&self.idle).map(|(now, before)| part(*now, *before)).collect();
        if let Some(better) = better(self.own, part(used, self.used), &idle_parts) {
            self.own = better;
            self.take();
        }
        (self.looked, self.used, self.idle) = (Instant::now(), used, idle);
    }

    /// Moves all threads of the emulator to its processor. Returns whether that was possible.
    fn take(&self) -> bool {
        let Some(cpu) = self.usable.get(self.own) else { return false };
        let mut only = CpuSet::new();
        only.set(*cpu);
        let threads = fs::read_dir(format!("/proc/{}/task", self.process.as_raw_nonzero()));
        let threads = threads.into_iter().flatten().flatten();
        let threads = threads.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        // Each is moved, also after one that could not be.
        let threads = threads.filter_map(Pid::from_raw);
        threads.filter(|thread| sched_setaffinity(Some(*thread), &only).is_err()).count() == 0
    }
}

/// The index of the processor to which a guest moves that got this part of its `own`. `idle` is the idle part of each.
fn better(own: usize, got: f64, idle: &[f64]) -> Option<usize> {
    if got >= ENOUGH {
        return None;
    }
    let others =
        idle.iter().copied().enumerate().filter(|(index, idle)| *index != own && *idle > IDLE);
    others.max_by(|one, other| one.1.total_cmp(&other.1)).map(|(index, _)| index)
}

/// The time for which each of these processors was idle since the machine's start (`proc_stat(5)`).
fn idle_times(cpus: &[usize]) -> Option<Vec<Duration>> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    cpus.iter().map(|cpu| idle_time(&stat, *cpu)).collect()
}

fn idle_time(stat: &str, cpu: usize) -> Option<Duration> {
    let name = format!("cpu{cpu} ");
    let line = stat.lines().find_map(|line| line.strip_prefix(&name))?;
    // The fields idle and iowait, in ticks of 10 ms.
    let ticks = line.split_ascii_whitespace().skip(3).take(2).map(str::parse::<u64>);
    let ticks: u64 = ticks.sum::<Result<_, _>>().ok()?;
    Some(Duration::from_millis(ticks * 10))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops where something fails")]

    use std::process::{Child, Command};

    use super::*;

    #[test]
    fn a_guest_moves_to_the_idlest_processor_where_it_has_to_share_its_own() {
        assert_eq!(better(0, 0.5, &[0.0, 0.6, 0.9]), Some(2));
        assert_eq!(better(0, 0.9, &[0.0, 0.6, 0.9]), None, "it has enough");
        assert_eq!(better(2, 0.5, &[0.0, 0.4, 0.9]), None, "the others are busy");
    }

    #[test]
    fn the_idle_time_of_a_processor_is_read() {
        let stat = "cpu  9 9 9 9 9 9\ncpu0 1 2 3 400 50 6 7\ncpu1 1 2 3 4 5 6 7\n";
        assert_eq!(idle_time(stat, 0), Some(Duration::from_millis(4500)));
        assert_eq!(idle_time(stat, 1), Some(Duration::from_millis(90)));
        assert_eq!(idle_time(stat, 2), None);
    }

    /// A process that ends with the test.
    struct Sleeper(Child);

    impl Drop for Sleeper {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    #[test]
    fn an_emulator_has_one_processor_and_the_next_one_the_next() {
        let sleepers: Vec<Sleeper> =
            (0..2).map(|_| Sleeper(Command::new("sleep").arg("60").spawn().unwrap())).collect();
        let places: Vec<Place> =
            sleepers.iter().map(|sleeper| Place::of(sleeper.0.id()).unwrap()).collect();
        for place in &places {
            let found = sched_getaffinity(Some(place.process)).unwrap();
            assert_eq!(found.count(), 1);
            assert!(found.is_set(place.usable[place.own]));
        }
        assert!(places[0].usable.len() == 1 || places[0].own != places[1].own);
    }
}
