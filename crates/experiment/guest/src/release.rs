//! The release of a kernel (`uname -r`), which is also the end of its package's name.

use std::cmp::Ordering;
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// The architecture of the kernels, at the end of their releases.
const ARCHITECTURE: &str = "-amd64";

/// The release of a kernel, such as `6.12.117+deb12-amd64`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release(String);

impl Release {
    /// The release of the package `linux-image-NAME`; `None` for a package that has no kernel of its own, and for
    /// kernels that are built for other uses (`cloud`, `rt`, `dbg`, `unsigned`).
    pub(crate) fn of_image(name: &str) -> Option<Self> {
        let number = name.strip_suffix(ARCHITECTURE)?;
        let is_own = number.split('.').take(3).count() == 3
            && number.starts_with(|c: char| c.is_ascii_digit());
        let is_plain = ["cloud", "rt", "dbg", "unsigned"]
            .iter()
            .all(|use_| !number.split('-').any(|part| part == *use_));
        (is_own && is_plain).then(|| Self(name.to_owned()))
    }

    /// The release that a kernel's image names (Documentation/arch/x86/boot.rst: `kernel_version`).
    pub(crate) fn in_image(image: &Path) -> std::io::Result<Option<Self>> {
        let mut start = Vec::new();
        File::open(image)?.take(1 << 16).read_to_end(&mut start)?;
        if start.get(0x202..0x206) != Some(b"HdrS") {
            return Ok(None);
        }
        let at = usize::from(u16::from_le_bytes([start[0x20e], start[0x20f]])) + 0x200;
        let text = start.get(at..).and_then(|rest| rest.split(|byte| *byte == 0).next());
        let text = text.and_then(|text| std::str::from_utf8(text).ok());
        Ok(text.and_then(|text| text.split(' ').next()).map(|release| Self(release.to_owned())))
    }

    /// Whether this is a release of `version`: `6.1` has `6.1.0-56-amd64`, and not `6.12.117+deb12-amd64`.
    pub(crate) fn is(&self, version: &str) -> bool {
        let rest = self.0.strip_prefix(version);
        !version.is_empty()
            && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-', '+']))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl PartialOrd for Release {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Release {
    /// The order of their numbers; the text decides among equal ones.
    fn cmp(&self, other: &Self) -> Ordering {
        numbers(&self.0).cmp(numbers(&other.0)).then_with(|| self.0.cmp(&other.0))
    }
}

fn numbers(release: &str) -> impl Iterator<Item = u64> + '_ {
    release
        .split(|c: char| !c.is_ascii_digit())
        .filter(|part| !part.is_empty())
        .map(|part| part.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops where something fails")]

    use super::*;

    #[test]
    fn kernels_are_told_from_other_packages() {
        for (name, is_one) in [
            ("6.1.0-56-amd64", true),
            ("6.12.117+deb12-amd64", true),
            ("6.12-amd64", false),
            ("amd64", false),
            ("6.1.0-56-cloud-amd64", false),
            ("6.12.117+deb12-rt-amd64", false),
            ("6.1.0-56-amd64-dbg", false),
            ("6.1.0-56-amd64-unsigned", false),
        ] {
            assert_eq!(Release::of_image(name).is_some(), is_one, "{name}");
        }
    }

    #[test]
    fn a_release_belongs_to_a_version_and_not_to_a_longer_number() {
        let release = |name| Release::of_image(name).unwrap();
        assert!(release("6.1.0-56-amd64").is("6.1"));
        assert!(release("6.1.0-56-amd64").is("6.1.0-56-amd64"));
        assert!(release("6.12.117+deb12-amd64").is("6.12.117"));
        assert!(!release("6.12.117+deb12-amd64").is("6.1"));
        assert!(!release("6.1.0-56-amd64").is(""));
    }

    #[test]
    fn the_highest_release_has_the_highest_numbers() {
        let names =
            ["6.1.0-9-amd64", "6.1.0-56-amd64", "6.12.9+deb12-amd64", "6.12.117+deb12-amd64"];
        let mut releases: Vec<_> =
            names.iter().rev().filter_map(|name| Release::of_image(name)).collect();
        releases.sort();
        assert_eq!(releases.iter().map(Release::as_str).collect::<Vec<_>>(), names);
    }
}
