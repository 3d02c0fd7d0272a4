//! An emulated machine: qemu, in software (TCG), with a clock that counts the guest's instructions.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::place::Place;
use crate::{Archive, GuestError, which};

/// The time between two looks at a guest.
const LOOK: Duration = Duration::from_millis(20);
/// The number of the console's last lines in a message.
const SHOWN_LINES: usize = 12;

/// The emulator of x86-64, and Debian's package of it.
const EMULATOR: &str = "qemu-system-x86_64";
const PACKAGE: &str = "qemu-system-x86";

/// The machine that is emulated: software emulation alone, because the kernel does not boot under every machine's KVM,
/// and because only there the clock can count instructions (`-icount`). Then the load of this machine does not look
/// like delay to the guest. While the guest sleeps, its clock jumps ahead.
///
/// qemu has two threads, and the one of the devices advances the clock of a guest that sleeps. It may find the processor
/// asleep before the instructions before that are counted, and the clock is then ahead by these, in one run and not in
/// another. Where qemu records its run (`rr=record`), neither thread goes on while the other has not counted. The
/// record itself is not kept.
///
/// With `erms` and `fsrm` the kernel copies memory by one instruction that the emulator repeats for each byte, and
/// each time counts on the guest's clock.
const X86_64: [&str; 6] = [
    "-M",
    "q35,accel=tcg",
    "-cpu",
    "max,-erms,-fsrm",
    "-icount",
    "shift=0,sleep=off,rr=record,rrfile=/dev/null",
];

/// The parameters of every guest's kernel. Those after the first line leave out work for each packet and each timer that no
/// protocol depends on: the zeroing of memory, checks of copies, auditing, the watchdogs of processors and of the clock,
/// security modules, the accounting of memory by group; and the tests of cryptography at the start, which take two seconds.
const PARAMETERS: &str = "quiet panic=-1 mitigations=off preempt=full \
                          init_on_alloc=0 hardened_usercopy=off audit=0 nowatchdog tsc=reliable \
                          lsm= cgroup_disable=memory cryptomgr.notests";

/// An emulated machine with a kernel.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The emulator.
    pub emulator: PathBuf,
    /// The first part of its command line: the emulated machine.
    pub emulated: Vec<String>,
    /// The kernel's name of the serial port that is its console.
    pub console: String,
    /// The memory in MB (2^20 bytes).
    pub memory_mb: u32,
    /// The kernel's image.
    pub kernel: PathBuf,
    /// Further parameters of the kernel, and after `--` those of its first program.
    pub parameters: String,
    /// Settles everything that the machine would choose at random; `None` leaves it to chance.
    pub seed: Option<u64>,
    /// Whether the guest has a port, `/dev/vport0p1`, on which it can answer.
    pub answers: bool,
}

impl Machine {
    /// A machine of this machine's own architecture, x86-64.
    ///
    /// # Errors
    ///
    /// [`GuestError::Missing`]: the emulator is not installed.
    pub fn x86_64(kernel: impl Into<PathBuf>) -> Result<Self, GuestError> {
        Ok(Self {
            emulator: which(EMULATOR).ok_or_else(|| GuestError::program(EMULATOR, PACKAGE))?,
            emulated: X86_64.map(str::to_owned).into(),
            console: "ttyS0".to_owned(),
            memory_mb: 1024,
            kernel: kernel.into(),
            parameters: String::new(),
            seed: None,
            answers: false,
        })
    }

    /// The emulator's version, such as `7.2.22`.
    ///
    /// # Errors
    ///
    /// The emulator cannot be started.
    pub fn version(&self) -> Result<String, GuestError> {
        let asked = Command::new(&self.emulator).arg("--version").output();
        let said = asked.map_err(GuestError::file(format!("run {}", self.emulator.display())))?;
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let version = said.split("version ").nth(1).and_then(|rest| rest.split([' ', '\n']).next());
        Ok(version.unwrap_or("unknown").to_owned())
    }

    /// Boots the machine with the file systems of `archives`, of which later ones are laid over earlier ones. The
    /// machine ends with the calling thread, also after `kill -9`, and leaves no file.
    ///
    /// # Errors
    ///
    /// The emulator cannot be started, or there is no room for its files.
    pub fn boot(&self, archives: &[&Archive]) -> Result<Guest, GuestError> {
        let temporary = std::env::temp_dir();
        let failed = |what: &str| GuestError::file(format!("{what} in {}", temporary.display()));
        let mut initial = tempfile::tempfile().map_err(failed("make a file"))?;
        {
            let mut buffered = io::BufWriter::new(&mut initial);
            for archive in archives {
                archive.write(&mut buffered).map_err(failed("write the guest's file system"))?;
            }
            buffered.flush().map_err(failed("write the guest's file system"))?;
        }
        let console = tempfile::tempfile().map_err(failed("make a file"))?;
        let errors = tempfile::tempfile().map_err(failed("make a file"))?;
        let answers = tempfile::tempfile().map_err(failed("make a file"))?;
        // These files have no name. qemu finds them among the open files of this process.
        let own = |file: &File| format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        // setpriv(1) lets the emulator end with the thread that has started it (PR_SET_PDEATHSIG).
        let mut qemu = Command::new("setpriv");
        qemu.args(["--pdeathsig", "KILL", "--"])
            .arg(&self.emulator)
            .args(&self.emulated)
            .args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"])
            .args(["-smp", "1", "-m", &self.memory_mb.to_string()])
            .args(["-chardev", &format!("file,id=console,path={}", own(&console))])
            .args(["-serial", "chardev:console"]);
        if let Some(seed) = self.seed {
            // qemu takes 64 bits.
            qemu.args(["-seed", &seed.to_string()]);
            qemu.args(["-rtc", "base=2025-01-01,clock=vm"]);
        }
        if self.answers {
            // Without `ioeventfd` the processor's thread writes what the guest sends before the guest goes on.
            // Otherwise another thread would do it, at a time that depends on this machine's load.
            qemu.args(["-device", "virtio-serial-pci,ioeventfd=off"])
                .args(["-chardev", &format!("file,id=answers,path={}", own(&answers))])
                .args(["-device", "virtserialport,chardev=answers,name=answers"]);
        }
        qemu.arg("-kernel")
            .arg(&self.kernel)
            .args(["-initrd", &own(&initial)])
            .args([
                "-append",
                &format!("console={} {PARAMETERS} {}", self.console, self.parameters),
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors.try_clone().map_err(failed("use a file"))?)
            // Ctrl-C at the terminal reaches this program alone, which then ends the guest.
            .process_group(0);
        let process =
            qemu.spawn().map_err(GuestError::file(format!("start {}", self.emulator.display())))?;
        let memory_mb = self.memory_mb;
        let place = Place::of(process.id());
        let (read, used) = (0, Duration::ZERO);
        Ok(Guest {
            process,
            place,
            _initial: initial,
            console,
            errors,
            answers,
            read,
            used,
            memory_mb,
        })
    }
}

/// A running guest. Dropping this value ends it.
#[derive(Debug)]
pub struct Guest {
    process: Child,
    /// Where the emulator runs, if it can be kept there.
    place: Option<Place>,
    /// The emulator reads it at its start.
    _initial: File,
    console: File,
    errors: File,
    answers: File,
    /// The number of bytes of `answers` that were taken.
    read: u64,
    /// The processor time that it had used at the last look.
    used: Duration,
    memory_mb: u32,
}

/// How long a guest may be silent.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// The processor time of this machine that the guest uses.
    pub busy: Duration,
    /// The time on this machine's clock, for a guest that uses no processor.
    pub idle: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { busy: Duration::from_mins(5), idle: Duration::from_mins(20) }
    }
}

impl Guest {
    /// Waits for the guest's end. `handle` is called with all bytes of the guest's answers that it has not taken yet,
    /// and returns the number of those that it takes. It ends the guest by returning an error. A guest that neither
    /// answers nor writes on its console for as long as `patience` says is ended, too.
    ///
    /// # Errors
    ///
    /// `handle`'s, or why the guest hangs.
    pub fn follow<E: From<GuestError>>(
        &mut self,
        patience: Patience,
        mut handle: impl FnMut(&[u8]) -> Result<usize, E>,
    ) -> Result<(), E> {
        let mut kept = Vec::new();
        let (mut seen, mut since, mut busy_since) = (0, Instant::now(), self.processor_time());
        loop {
            self.used = self.processor_time();
            if let Some(place) = &mut self.place {
                place.look(self.used);
            }
            let ended = self.ended()?;
            let failed = || GuestError::file("read what the guest has answered");
            self.answers.seek(SeekFrom::Start(self.read)).map_err(failed())?;
            self.read += self.answers.read_to_end(&mut kept).map_err(failed())? as u64;
            let taken = handle(&kept)?;
            kept.drain(..taken);
            if ended.is_some() {
                return Ok(());
            }
            let console = self.console.metadata().map_or(0, |found| found.len());
            let signs = self.read + console;
            if signs != seen {
                (seen, since, busy_since) = (signs, Instant::now(), self.processor_time());
            }
            self.is_alive(patience, since, busy_since)?;
            std::thread::sleep(LOOK);
        }
    }

    fn is_alive(
        &self,
        patience: Patience,
        since: Instant,
        busy_since: Duration,
    ) -> Result<(), GuestError> {
        let busy = self.processor_time().saturating_sub(busy_since);
        let waited = if busy > patience.busy {
            format!(
                "it gave no sign of life in {} s of this machine's processor time",
                busy.as_secs()
            )
        } else if since.elapsed() > patience.idle {
            format!("it gave no sign of life for {} s", since.elapsed().as_secs())
        } else {
            return Ok(());
        };
        Err(GuestError::Hang { patience: waited, console: self.last_lines() })
    }

    /// Why a guest that has ended did not do its task.
    pub fn failure(&mut self) -> GuestError {
        let console = self.console();
        let line = |words: &[&str]| {
            let mut lines = console.lines();
            lines.find(|line| words.iter().any(|word| line.contains(word))).map(str::trim)
        };
        let full = ["Out of memory", "deadlocked on memory", "out of memory", "write error"];
        if let Some(line) = line(&full) {
            return GuestError::Memory { memory_mb: self.memory_mb, line: line.to_owned() };
        }
        if let Some(found) = line(&["Kernel panic"]) {
            let (time, line) = found.split_once("] ").unwrap_or(("[ 0", found));
            let after = format!("{} s", time.trim_start_matches('[').trim());
            return GuestError::Panic { after, line: line.to_owned(), console: self.last_lines() };
        }
        // qemu drops what the guest sends where its file cannot grow.
        if rustix::fs::fstatvfs(&self.answers).is_ok_and(|found| found.f_bavail == 0) {
            return GuestError::File {
                action: format!(
                    "keep what the guest has sent in {}",
                    std::env::temp_dir().display()
                ),
                source: io::ErrorKind::StorageFull.into(),
            };
        }
        let said = contents(&self.errors);
        match (self.ended(), said.trim().lines().last()) {
            (Ok(Some(status)), Some(said)) if !status.success() => GuestError::Emulator {
                program: EMULATOR.to_owned(),
                status: status.to_string(),
                said: said.to_owned(),
            },
            _ => GuestError::NoResult { console: self.last_lines() },
        }
    }

    /// What the guest has written on its console.
    pub fn console(&self) -> String {
        contents(&self.console)
    }

    /// The processor time that the emulator has used (`proc_pid_stat(5)`); after its end, that of the last look.
    pub fn processor_time(&self) -> Duration {
        let Ok(stat) = fs::read_to_string(format!("/proc/{}/stat", self.process.id())) else {
            return self.used;
        };
        // The name, in parentheses, may have spaces. User and system time are fields 14 and 15, in ticks of 10 ms.
        let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_ascii_whitespace();
        let ticks: u64 =
            fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
        Duration::from_millis(ticks * 10)
    }

    fn ended(&mut self) -> Result<Option<ExitStatus>, GuestError> {
        self.process.try_wait().map_err(GuestError::file("wait for the emulator"))
    }

    fn last_lines(&self) -> String {
        let console = self.console();
        let lines: Vec<&str> = console.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn contents(mut file: &File) -> String {
    let mut bytes = Vec::new();
    let _ = file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops where something fails")]

    use super::*;

    /// A machine whose emulator is a shell script. In it `$console` and `$answers` are the files that the guest
    /// writes.
    fn machine(directory: &std::path::Path, script: &str) -> Machine {
        let emulator = directory.join("emulator");
        let arguments = "for argument; do case $argument in\n\
                         file,id=console,path=*) console=${argument#*path=} ;;\n\
                         file,id=answers,path=*) answers=${argument#*path=} ;;\n\
                         esac; done\n";
        let script = format!("#!/bin/sh\n{arguments}{script}\n");
        crate::testing::write_program(&emulator, script);
        Machine {
            emulator,
            emulated: Vec::new(),
            console: "ttyS0".to_owned(),
            memory_mb: 96,
            kernel: "vmlinuz".into(),
            parameters: String::new(),
            seed: Some(1),
            answers: true,
        }
    }

    /// Boots the script, and returns what it answers and why it ended without a result.
    fn booted(script: &str, patience: Patience) -> (Vec<u8>, GuestError) {
        let directory = tempfile::tempdir().unwrap();
        let mut guest = machine(directory.path(), script).boot(&[&Archive::default()]).unwrap();
        let mut answers = Vec::new();
        let followed = guest.follow(patience, |bytes| {
            answers.extend(bytes);
            Ok::<_, GuestError>(bytes.len())
        });
        let error = followed.err().unwrap_or_else(|| guest.failure());
        (answers, error)
    }

    #[test]
    fn answers_arrive_once_each() {
        let script = "printf one >$answers; sleep 0.1; printf two >>$answers";
        let (answers, error) = booted(script, Patience::default());
        assert_eq!(answers, b"onetwo");
        assert!(matches!(error, GuestError::NoResult { .. }), "{error}");
    }

    #[test]
    fn a_panic_is_told_with_its_time_and_its_reason() {
        let script = "echo '[    1.500000] VFS: Cannot open root device' >$console\n\
                      echo '[    1.504161] Kernel panic - not syncing: no init found' >>$console";
        let error = booted(script, Patience::default()).1;
        assert_eq!(
            error.to_string(),
            "the guest's kernel panicked after 1.504161 s: Kernel panic - not syncing: no init found; the lines before \
             are\n[    1.500000] VFS: Cannot open root device\n\
             [    1.504161] Kernel panic - not syncing: no init found"
        );
    }

    #[test]
    fn a_panic_for_want_of_memory_is_told_as_such() {
        let script = "echo '[    0.9] Initramfs unpacking failed: write error' >$console\n\
                      echo '[    1.0] Kernel panic - not syncing: No working init found.' >>$console";
        let error = booted(script, Patience::default()).1.to_string();
        assert!(error.contains("memory of 96 MB is full") && error.contains("--memory"), "{error}");
    }

    #[test]
    fn an_error_of_the_emulator_is_told_in_its_words() {
        let error = booted("echo 'qemu: no such machine' >&2; exit 3", Patience::default()).1;
        let error = error.to_string();
        assert!(error.contains("status: 3") && error.ends_with("qemu: no such machine"), "{error}");
    }

    #[test]
    fn a_guest_that_hangs_is_ended_whether_it_sleeps_or_computes() {
        let short = Duration::from_millis(300);
        let long = Duration::from_hours(1);
        for (script, patience) in [
            ("echo hello >$console; exec sleep 3600", Patience { busy: long, idle: short }),
            ("echo hello >$console; while :; do :; done", Patience { busy: short, idle: long }),
        ] {
            let error = booted(script, patience).1.to_string();
            assert!(error.starts_with("the guest hangs: it gave no sign of life"), "{error}");
            assert!(error.ends_with("hello"), "{error}");
        }
    }

    #[test]
    fn a_guest_that_goes_on_answering_does_not_hang() {
        let script = "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.1; printf x >>$answers; done";
        let idle = Duration::from_millis(800);
        let (answers, error) = booted(script, Patience { busy: idle, idle });
        assert_eq!(answers.len(), 10);
        assert!(matches!(error, GuestError::NoResult { .. }), "{error}");
    }
}
