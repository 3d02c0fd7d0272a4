//! Keeps the hosts' work off the processor of the driver (the thread that emulates the radio), with
//! receive packet steering (RPS).

use std::fs;
use std::io;
use std::path::Path;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, CpuSet, sched_getaffinity, sched_setaffinity, unshare};
use nix::unistd::Pid;

/// The processors of the machine, divided between the driver's thread and the hosts.
///
/// Without steering, the kernel handles a received packet (TCP, its ACK, the wake-up of an
/// application) inside the driver's write call, which takes some 8 us. The up to 64 packets of an
/// aggregate of frames (A-MPDU) are all due at the same instant, so the last one would be late by
/// some 500 us. On a kernel without preemption, a system call of an application would also keep the
/// driver from its processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Steering {
    /// The processor of the driver's thread.
    driver: usize,
    /// The processors of received packets and of applications, one bit each.
    hosts: u64,
}

impl Steering {
    /// Gives the last processor that this process may use to the driver, and the others to the
    /// hosts; `None` if there is only one processor.
    pub(crate) fn plan() -> Option<Self> {
        let allowed = sched_getaffinity(Pid::from_raw(0)).ok()?;
        let usable = |cpu: &usize| allowed.is_set(*cpu).unwrap_or(false);
        Self::divide(&(0..CpuSet::count().min(64)).filter(usable).collect::<Vec<_>>())
    }

    fn divide(usable: &[usize]) -> Option<Self> {
        let (driver, hosts) = usable.split_last()?;
        let hosts = hosts.iter().fold(0, |mask, cpu| mask | 1 << cpu);
        (hosts != 0).then_some(Self { driver: *driver, hosts })
    }

    /// Keeps the calling thread on the driver's processor.
    pub(crate) fn pin_driver(self) -> io::Result<()> {
        let mut own = CpuSet::new();
        own.set(self.driver)?;
        Ok(sched_setaffinity(Pid::from_raw(0), &own)?)
    }

    /// Keeps the calling thread, and every thread and process that it starts, off the driver's
    /// processor until the returned value is dropped.
    pub(crate) fn leave_driver_alone(self) -> io::Result<Away> {
        let before = sched_getaffinity(Pid::from_raw(0))?;
        let mut hosts = CpuSet::new();
        for cpu in (0..64).filter(|cpu| self.hosts >> cpu & 1 == 1) {
            hosts.set(cpu)?;
        }
        sched_setaffinity(Pid::from_raw(0), &hosts)?;
        Ok(Away { before })
    }

    /// Steers the packets received over the device `interface` in the calling thread's network
    /// namespace. The thread gets its own mount namespace, because sysfs shows the network devices
    /// of the namespace in which it was mounted.
    pub(super) fn apply(self, interface: &str) -> io::Result<()> {
        unshare(CloneFlags::CLONE_NEWNS)?;
        let none = None::<&Path>;
        // /sys becomes a slave mount, so that the new mount does not propagate to other namespaces.
        // It is not the root that becomes one, because in a chroot the root is no mount point.
        mount(none, "/sys", none, MsFlags::MS_SLAVE, none)?;
        mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), none)?;
        let path = format!("/sys/class/net/{interface}/queues/rx-0/rps_cpus");
        fs::write(path, self.mask())
    }

    /// The mask in the kernel's format: hexadecimal numbers of 32 bits, separated by commas.
    fn mask(self) -> String {
        match (self.hosts >> 32, self.hosts & 0xffff_ffff) {
            (0, low) => format!("{low:x}"),
            (high, low) => format!("{high:x},{low:08x}"),
        }
    }
}

/// A thread that keeps off the driver's processor until it drops this value.
#[derive(Debug)]
pub(crate) struct Away {
    before: CpuSet,
}

impl Drop for Away {
    fn drop(&mut self) {
        let _ = sched_setaffinity(Pid::from_raw(0), &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_gets_the_last_processor_and_the_hosts_the_others() {
        let steering = Steering::divide(&[0, 1, 40]).unwrap();
        assert_eq!((steering.driver, steering.mask()), (40, "3".to_owned()));
        assert_eq!(Steering::divide(&[0, 33, 34]).unwrap().mask(), "2,00000001");
        assert_eq!(Steering::divide(&[3]), None);
        assert_eq!(Steering::divide(&[]), None);
    }
}
