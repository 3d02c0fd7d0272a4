//! The kernels that are tested in guests. A test compares README's list with this one.

use std::path::{Path, PathBuf};

/// Every kernel that is tested in a guest, with the expected verdict.
pub const KERNELS: &[Kernel] = &[
    Kernel { suite: "bullseye", version: "5.10", arm64: false, verdict: Verdict::Refused },
    Kernel { suite: "bookworm", version: "6.1", arm64: true, verdict: Verdict::Runs },
    Kernel { suite: "trixie", version: "6.12", arm64: false, verdict: Verdict::Runs },
];

/// The kernel of the package `linux-image-amd64` in a suite of Debian.
#[derive(Debug)]
pub struct Kernel {
    /// The suite's code name. The package may also come from the suite's security updates.
    pub suite: &'static str,
    /// The first two numbers of the kernel's version.
    pub version: &'static str,
    /// Whether `make test-arm64` boots the arm64 kernel of the suite.
    pub arm64: bool,
    /// The expected verdict.
    pub verdict: Verdict,
}

/// What is expected of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every command works.
    Runs,
    /// The kernel is too old: every command that needs BPF reports that and exits with status 77.
    Refused,
}

impl Kernel {
    /// Whether `release` (`uname -r`) is one of this version.
    pub fn is(&self, release: &str) -> bool {
        release.strip_prefix(self.version).is_some_and(|rest| rest.starts_with('.'))
    }

    /// The path of the kernel's image below `root`, the directory of its unpacked package.
    pub fn image(&self, root: &Path) -> Option<PathBuf> {
        let entries = std::fs::read_dir(root.join("boot")).ok()?.flatten();
        let mut paths = entries.map(|entry| entry.path());
        let name = |path: &Path| path.file_name()?.to_str().map(str::to_owned);
        paths.find(|path| {
            name(path).is_some_and(|name| {
                name.strip_prefix("vmlinuz-").is_some_and(|release| self.is(release))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The row of README's table for a kernel.
    fn row(kernel: &Kernel) -> String {
        let expected = match (kernel.verdict, kernel.arm64) {
            (Verdict::Runs, true) => "works; on arm64 too (`make test-arm64`)",
            (Verdict::Runs, false) => "works",
            (Verdict::Refused, _) => "too old: the commands end with 77 and name what is missing",
        };
        format!("| {} | {} | {expected} |", kernel.version, kernel.suite)
    }

    #[test]
    fn readme_names_these_kernels_and_no_others() {
        let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../README.md");
        let readme = std::fs::read_to_string(readme).unwrap();
        let section = readme.split("\n## ").find(|text| text.starts_with("What it needs\n"));
        let rows = section.unwrap().lines().filter(|line| line.starts_with('|')).skip(2);
        let expected: Vec<_> = KERNELS.iter().map(row).collect();
        assert_eq!(rows.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_release_belongs_to_a_version_and_not_to_a_longer_number() {
        let old = Kernel { suite: "", version: "6.1", arm64: false, verdict: Verdict::Runs };
        assert!(old.is("6.1.0-56-amd64"));
        assert!(!old.is("6.12.117+deb13-amd64"));
    }
}
