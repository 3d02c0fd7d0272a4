//! Why a kernel cannot be fetched, packed with programs, or booted.

use std::io;
use std::path::PathBuf;

/// A guest could not be made, or it did not do its task.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// A program, a library or a package of this machine is missing (exit status 77).
    #[error("{what} is missing: {remedy}")]
    Missing {
        /// The missing thing.
        what: String,
        /// What the user can do about it.
        remedy: String,
    },
    /// No kernel is known by that name (exit status 2).
    #[error("--kernel {asked}: {found}; {remedy}")]
    Kernel {
        /// The name or path.
        asked: String,
        /// What was found instead.
        found: String,
        /// What the user can do about it.
        remedy: String,
    },
    /// The package lists or a package could not be fetched, or were not signed by Debian.
    #[error("cannot fetch {what} from {from}: {reason}; {remedy}")]
    Fetch {
        /// The package or list.
        what: String,
        /// The archive.
        from: String,
        /// The first error of apt.
        reason: String,
        /// What the user can do about it.
        remedy: String,
    },
    /// A file of this machine could not be read or written.
    #[error("cannot {action}: {source}{}", remedy(source))]
    File {
        /// The action that was tried, with the file's path.
        action: String,
        /// The system's error.
        source: io::Error,
    },
    /// The emulator ended with an error of its own before the guest began.
    #[error("{program} ended with {status}: {said}")]
    Emulator {
        /// The emulator.
        program: String,
        /// Its exit status.
        status: String,
        /// The last line that it wrote.
        said: String,
    },
    /// The guest's kernel panicked.
    #[error("the guest's kernel panicked after {after}: {line}; the lines before are\n{console}")]
    Panic {
        /// The time of the guest's clock.
        after: String,
        /// The kernel's message.
        line: String,
        /// The end of the console.
        console: String,
    },
    /// The guest had too little memory.
    #[error("the guest's memory of {memory_mb} MB is full: {line}; give it more with --memory")]
    Memory {
        /// The guest's memory in MB (2^20 bytes).
        memory_mb: u32,
        /// The kernel's message.
        line: String,
    },
    /// The guest has given no sign of life for too long.
    #[error("the guest hangs: {patience}; the end of its console is\n{console}")]
    Hang {
        /// What was waited for, and how long.
        patience: String,
        /// The end of the console.
        console: String,
    },
    /// The guest ended without the result of its task.
    #[error("the guest ended without a result; the end of its console is\n{console}")]
    NoResult {
        /// The end of the console.
        console: String,
    },
}

impl GuestError {
    /// The exit status of a command: 77 for a missing program, 2 for an unknown kernel, 1 otherwise.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Missing { .. } => 77,
            Self::Kernel { .. } => 2,
            _ => 1,
        }
    }

    /// Converts an error of the file system, for `map_err`.
    pub fn file<E: Into<io::Error>>(action: impl Into<String>) -> impl FnOnce(E) -> Self {
        let action = action.into();
        move |source| Self::File { action, source: source.into() }
    }

    /// The error for a program of `package` that is missing.
    pub(crate) fn program(name: &str, package: &str) -> Self {
        Self::Missing {
            what: format!("the program {name}"),
            remedy: format!("install the package {package}"),
        }
    }
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; a kernel takes up to 600 MB while it is unpacked, and 30 MB afterwards: make room, or name another \
             directory in XDG_CACHE_HOME and TMPDIR"
        }
        _ => "",
    }
}

/// Where kernels are kept, or the reason why there is no such place.
pub(crate) type Place = Result<PathBuf, GuestError>;
