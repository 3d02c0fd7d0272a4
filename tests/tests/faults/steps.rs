//! Runs a program and ends it by `kill -9` after its n-th step. A step is a system call that changes something outside
//! of the program. ptrace(2) stops the program at each system call, so the program needs no code for the test.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// The step in which a program reads a BPF iterator.
pub(crate) const ITERATE: &str = "iterate";

/// What a step puts or deletes that asks for a queueing discipline.
pub(crate) const DISCIPLINE: &str = "a queueing discipline";

/// The end of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Exited(i32),
    Killed,
}

/// The steps of a run, in words, and its end.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) steps: Vec<String>,
    pub(crate) end: End,
}

/// When a command that does not end by itself gets SIGTERM: when it has written this text to a file or a socket, and has
/// read BPF iterators so many times since.
#[derive(Clone, Copy)]
pub(crate) struct Until<'a> {
    pub(crate) text: &'a str,
    pub(crate) iterations: usize,
}

/// The step of all processes of a command, counted from zero, after which its first process is killed, or all at once.
#[derive(Clone, Copy)]
pub(crate) struct Fatal {
    pub(crate) step: usize,
    pub(crate) kills_all: bool,
}

/// Runs the command, and kills it where `fatal` says. Without `until` it ends by itself.
///
/// The tracer is a thread that ends with the first process. Then the kernel lets go of the other processes, and they go
/// on as they would without a tracer, or kills them, too.
pub(crate) fn run(command: &[&str], until: Option<Until<'_>>, fatal: Option<Fatal>) -> Run {
    std::thread::scope(|scope| scope.spawn(|| trace(command, until, fatal)).join().unwrap())
}

#[expect(clippy::zombie_processes, reason = "the tracer waits for it")]
fn trace(command: &[&str], until: Option<Until<'_>>, fatal: Option<Fatal>) -> Run {
    // The shell waits until it is traced.
    let mut child = Command::new("sh")
        .args(["-c", "read -r _ && exec \"$@\" </dev/null", "sh"])
        .args(command)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let leader = Pid::from_raw(child.id().cast_signed());
    let kills_all = fatal.is_some_and(|fatal| fatal.kills_all);
    let on_exit = if kills_all { Options::PTRACE_O_EXITKILL } else { Options::empty() };
    let options = on_exit
        | Options::PTRACE_O_TRACESYSGOOD
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEFORK // an agent serves in a second process
        | Options::PTRACE_O_TRACEEXEC;
    ptrace::seize(leader, options).unwrap();
    ptrace::interrupt(leader).unwrap();
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    let (entered, steps) = (HashMap::new(), Vec::new());
    let mut tracer = Tracer { leader, until, is_up: false, fatal, entered, steps };
    let end = tracer.follow();
    Run { steps: tracer.steps, end }
}

struct Tracer<'a> {
    leader: Pid,
    /// `None` once the command has got SIGTERM.
    until: Option<Until<'a>>,
    /// Whether the text has been written.
    is_up: bool,
    fatal: Option<Fatal>,
    /// For each thread in a system call, the step that the call makes, if it makes one.
    entered: HashMap<Pid, Option<String>>,
    steps: Vec<String>,
}

impl Tracer<'_> {
    fn follow(&mut self) -> End {
        // Only this thread's children are waited for, because other tests have children of their own.
        let flags = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
        loop {
            let status = match waitpid(None, Some(flags)) {
                Err(Errno::EINTR) => continue,
                other => other.unwrap(),
            };
            let (thread, signal) = match status {
                WaitStatus::Exited(pid, code) if pid == self.leader => return End::Exited(code),
                WaitStatus::Signaled(pid, ..) if pid == self.leader => return End::Killed,
                WaitStatus::PtraceSyscall(pid) => {
                    self.at_syscall(pid);
                    (pid, None)
                }
                WaitStatus::PtraceEvent(pid, ..) => (pid, None),
                WaitStatus::Stopped(pid, signal) => (pid, Some(signal)),
                _ => continue,
            };
            match ptrace::syscall(thread, signal) {
                Ok(()) | Err(Errno::ESRCH) => {} // the thread was killed meanwhile
                Err(errno) => panic!("{errno}"),
            }
        }
    }

    fn at_syscall(&mut self, thread: Pid) {
        let Ok(info) = ptrace::syscall_info(thread) else { return };
        if info.op == libc::PTRACE_SYSCALL_INFO_ENTRY {
            let Some(call) = Call::of(thread) else { return };
            self.is_up |= self.until.is_some_and(|until| call.writes(until.text));
            self.end_where_due();
            self.entered.insert(thread, call.step());
        } else if let Some(step) = self.entered.remove(&thread).flatten() {
            if has_failed(&info) {
                return; // nothing was changed
            }
            if self.fatal.is_some_and(|fatal| fatal.step == self.steps.len()) {
                kill(self.leader, Signal::SIGKILL).unwrap();
            }
            if let Some(until) = self.until.as_mut().filter(|_| self.is_up && step == ITERATE) {
                until.iterations = until.iterations.saturating_sub(1);
            }
            self.steps.push(step);
            self.end_where_due();
        }
    }

    /// Sends SIGTERM where the command shall end.
    fn end_where_due(&mut self) {
        if self.is_up && self.until.is_some_and(|until| until.iterations == 0) {
            kill(self.leader, Signal::SIGTERM).unwrap();
            self.until = None;
        }
    }
}

fn has_failed(info: &libc::ptrace_syscall_info) -> bool {
    debug_assert_eq!(info.op, libc::PTRACE_SYSCALL_INFO_EXIT);
    #[allow(unsafe_code, reason = "the kernel gives a union, and `op` says which of its members")]
    // SAFETY: for the exit of a system call the kernel fills `exit`, which consists of integers.
    let exit = unsafe { info.u.exit };
    exit.is_error != 0
}

/// The step that clone(2) with these flags makes. A new process is a step, and a new thread is none.
fn started(flags: u64) -> Option<String> {
    (flags & libc::CLONE_THREAD as u64 == 0).then(|| "start a process".to_owned())
}

/// A system call that is about to be made.
struct Call {
    thread: Pid,
    number: i64,
    arguments: Vec<u64>,
}

impl Call {
    /// The call at which the thread is stopped, from `proc_pid_syscall(5)`.
    fn of(thread: Pid) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{thread}/syscall")).ok()?;
        let mut words = text.split_ascii_whitespace();
        let number = words.next()?.parse().ok()?;
        let hexadecimal = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok();
        Some(Self { thread, number, arguments: words.map_while(hexadecimal).collect() })
    }

    /// What the call changes outside of the program, in words; `None` if it has no lasting effect there.
    fn step(&self) -> Option<String> {
        let path = |argument: usize| self.text(self.arguments[argument]);
        let named = |call: &str, argument: usize| Some(format!("{call} {}", path(argument)));
        #[cfg(target_arch = "x86_64")]
        match self.number {
            libc::SYS_mkdir => return named("mkdir", 0),
            libc::SYS_rename => return named("rename to", 1),
            libc::SYS_unlink => return named("unlink", 0),
            libc::SYS_rmdir => return named("rmdir", 0),
            libc::SYS_chmod => return named("chmod", 0),
            _ => {}
        }
        match self.number {
            libc::SYS_mkdirat => named("mkdir", 1),
            libc::SYS_renameat | libc::SYS_renameat2 => named("rename to", 3),
            libc::SYS_unlinkat => named("unlink", 1),
            libc::SYS_fchmodat => named("chmod", 1),
            libc::SYS_mount => named("mount", 1),
            libc::SYS_umount2 => named("umount", 0),
            libc::SYS_bind => self.socket_path().map(|path| format!("bind {path}")),
            libc::SYS_openat => {
                let makes = self.arguments[2] & libc::O_CREAT as u64 != 0;
                (makes && !path(1).starts_with("/proc/")).then(|| format!("create {}", path(1)))
            }
            libc::SYS_write => {
                let file = self.file(0)?;
                file.starts_with("/proc/sys/").then(|| format!("write {file}"))
            }
            // A read of an iterator runs its BPF program, which may move connections.
            libc::SYS_read => (self.file(0)? == "anon_inode:bpf_iter").then(|| ITERATE.to_owned()),
            libc::SYS_sendto => self.of_discipline(),
            // The commands of `enum bpf_cmd` in <linux/bpf.h>.
            libc::SYS_bpf => match self.arguments[0] {
                6 => Some("bpf: pin".to_owned()),
                8 => Some("bpf: attach".to_owned()),
                28 => Some("bpf: create a link".to_owned()),
                34 => Some("bpf: detach a link".to_owned()),
                _ => None,
            },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_vfork => Some("start a process".to_owned()),
            libc::SYS_clone => started(self.arguments[0]),
            libc::SYS_clone3 => {
                let flags = self.bytes(self.arguments[0], 8);
                started(u64::from_ne_bytes(flags.try_into().ok()?))
            }
            _ => None,
        }
    }

    /// Whether the call writes or sends this text.
    fn writes(&self, text: &str) -> bool {
        let writes = self.number == libc::SYS_write || self.number == libc::SYS_sendto;
        writes && {
            let written = self.bytes(self.arguments[1], self.arguments[2].min(4096) as usize);
            written.windows(text.len()).any(|part| part == text.as_bytes())
        }
    }

    /// The step of a request of rtnetlink(7) that puts or deletes a queueing discipline. Whether the kernel grants it is
    /// in the answer. A request begins with its own length and its type.
    fn of_discipline(&self) -> Option<String> {
        let request = self.bytes(self.arguments[1], 6);
        let (length, kind) = request.split_first_chunk()?;
        if u64::from(u32::from_ne_bytes(*length)) != self.arguments[2] {
            return None;
        }
        match u16::from_ne_bytes(*kind.first_chunk()?) {
            libc::RTM_NEWQDISC => Some(format!("put {DISCIPLINE}")),
            libc::RTM_DELQDISC => Some(format!("delete {DISCIPLINE}")),
            _ => None,
        }
    }

    /// The path to which a Unix socket is bound; `None` for other addresses.
    fn socket_path(&self) -> Option<String> {
        let address = self.bytes(self.arguments[1], self.arguments[2].min(110) as usize);
        let (family, path) = address.split_first_chunk::<2>()?;
        let is_path = u16::from_ne_bytes(*family) == libc::AF_UNIX as u16 && path.first()? != &0;
        is_path.then(|| String::from_utf8_lossy(path).trim_end_matches('\0').to_owned())
    }

    fn file(&self, argument: usize) -> Option<String> {
        let link = fs::read_link(format!("/proc/{}/fd/{}", self.thread, self.arguments[argument]));
        link.ok().map(|link| link.display().to_string())
    }

    fn text(&self, address: u64) -> String {
        let bytes = self.bytes(address, 256);
        let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    /// The program's memory from this address on: at most `most` bytes, and only as far as they can be read.
    fn bytes(&self, address: u64, most: usize) -> Vec<u8> {
        let mut bytes = vec![0; most];
        let memory = File::open(format!("/proc/{}/mem", self.thread));
        let read = memory.and_then(|memory| memory.read_at(&mut bytes, address)).unwrap_or(0);
        bytes.truncate(read);
        bytes
    }
}
