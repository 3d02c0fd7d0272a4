//! The modules of a kernel that guests load.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::GuestError;

/// The modules that the lab needs on every kernel: its hosts' devices and links, the queries of connections, and the
/// port over which the guest answers. The first is here because other modules need it but do not list it among their
/// dependencies: before Linux 6.14 they request it by the name of its algorithm.
pub const LAB: &[&str] = &[
    "crc32c_generic",
    "virtio_pci",
    "virtio_console",
    "tun",
    "veth",
    "tcp_diag",
    "nft_ct",
    "nft_fib_inet",
    "nft_tproxy",
    "nft_socket",
];

/// The congestion controls that Debian's kernels have as modules.
pub const ALGORITHMS: &[&str] = &[
    "tcp_bbr",
    "tcp_bic",
    "tcp_cdg",
    "tcp_dctcp",
    "tcp_highspeed",
    "tcp_htcp",
    "tcp_hybla",
    "tcp_illinois",
    "tcp_lp",
    "tcp_nv",
    "tcp_scalable",
    "tcp_vegas",
    "tcp_veno",
    "tcp_westwood",
    "tcp_yeah",
];

/// The modules of a run whose hosts have radios, beside those of [`LAB`]: the radios, and the delay of the wire.
pub const RADIOS: &[&str] = &["mac80211_hwsim", "sch_netem"];

/// The modules that tests load in addition to those of [`LAB`].
pub(crate) const TESTS: &[&str] =
    &["bridge", "ifb", "tcp_bbr", "sch_tbf", "sch_fq_codel", "sch_fq"];

/// The modules of tests with an 802.11 interface. Other tests must not have radios.
/// Encryption is by CCMP, and by CMAC for management frames to groups. With AES in C the guest's processor is full at
/// 35 Mbit/s of CCMP.
pub(crate) const WIFI: &[&str] =
    &["mac80211_hwsim", "sch_netem", "aesni_intel", "ccm", "ctr", "cmac"];

/// The file in a directory of modules that lists each module and those that it needs.
const INDEX: &str = "index";

/// The modules that were taken out of a kernel's tree, uncompressed, in one directory.
#[derive(Clone, Debug)]
pub struct Modules {
    directory: PathBuf,
    /// Each module, with the modules that it needs directly.
    needs: BTreeMap<String, Vec<String>>,
}

impl Modules {
    /// Takes the modules that guests may load, and those that these need, out of `tree` into `directory`.
    pub(crate) fn take(tree: &Path, directory: &Path) -> Result<Self, GuestError> {
        let made = format!("make {}", directory.display());
        fs::create_dir_all(directory).map_err(GuestError::file(made))?;
        let mut all = BTreeMap::new();
        index(tree, &mut all)
            .map_err(GuestError::file(format!("list the modules in {}", tree.display())))?;
        let mut modules = Self { directory: directory.to_owned(), needs: BTreeMap::new() };
        for name in wanted() {
            modules.add(name, &all)?;
        }
        let lines = modules.needs.iter().map(|(name, needs)| {
            let words = std::iter::once(name).chain(needs).map(String::as_str);
            words.collect::<Vec<_>>().join(" ") + "\n"
        });
        let path = directory.join(INDEX);
        fs::write(&path, lines.collect::<String>())
            .map_err(GuestError::file(format!("write {}", path.display())))?;
        Ok(modules)
    }

    /// The modules that [`Self::take`] has put into `directory`.
    pub(crate) fn read(directory: &Path) -> Result<Self, GuestError> {
        let path = directory.join(INDEX);
        let text = fs::read_to_string(&path)
            .map_err(GuestError::file(format!("read {}", path.display())))?;
        let lines = text.lines().filter_map(|line| {
            let mut words = line.split(' ').map(str::to_owned);
            Some((words.next()?, words.collect()))
        });
        Ok(Self { directory: directory.to_owned(), needs: lines.collect() })
    }

    /// These modules and all that they need, in the order of loading. A module that the kernel does not have is left
    /// out: it may be built in. If it is not, what needs it fails in the guest.
    pub fn with_needs<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        let mut order = Vec::new();
        for name in names {
            self.order(name, &mut order);
        }
        order
    }

    /// The path of a module's file.
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.ko"))
    }

    fn order(&self, name: &str, order: &mut Vec<String>) {
        let Some(needs) = self.needs.get(name) else { return };
        if order.iter().any(|known| known == name) {
            return;
        }
        for need in needs {
            self.order(need, order);
        }
        order.push(name.to_owned());
    }

    fn add(&mut self, name: &str, all: &BTreeMap<String, PathBuf>) -> Result<(), GuestError> {
        let name = name.replace('-', "_");
        if self.needs.contains_key(&name) {
            return Ok(());
        }
        let Some(path) = all.get(&name) else { return Ok(()) };
        let module = uncompressed(path)?;
        let needs = depends(&module);
        let to = self.file(&name);
        fs::write(&to, module).map_err(GuestError::file(format!("write {}", to.display())))?;
        self.needs.insert(name, needs.clone());
        needs.iter().try_for_each(|need| self.add(need, all))
    }
}

/// All modules that some guest may load.
pub(crate) fn wanted() -> impl Iterator<Item = &'static str> {
    [LAB, ALGORITHMS, TESTS, WIFI].into_iter().flatten().copied()
}

/// Every module below `tree` by its name.
fn index(tree: &Path, all: &mut BTreeMap<String, PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(tree)? {
        let entry = entry?;
        let path = entry.path();
        // A link, such as `build`, leads out of the tree.
        if entry.file_type()?.is_dir() {
            index(&path, all)?;
        } else if let Some((name, _)) =
            path.file_name().and_then(|name| name.to_str()?.split_once(".ko"))
        {
            all.insert(name.replace('-', "_"), path);
        }
    }
    Ok(())
}

/// The contents of a module's file.
fn uncompressed(path: &Path) -> Result<Vec<u8>, GuestError> {
    let read = || GuestError::file(format!("read {}", path.display()));
    let (program, package) = match path.extension().and_then(|extension| extension.to_str()) {
        Some("xz") => ("xz", "xz-utils"),
        Some("zst") => ("zstd", "zstd"),
        Some("gz") => ("gzip", "gzip"),
        _ => return fs::read(path).map_err(read()),
    };
    let unpacked = Command::new(program)
        .arg("-dc")
        .arg(path)
        .stdin(Stdio::null())
        .output()
        .map_err(|_| GuestError::program(program, package))?;
    if !unpacked.status.success() {
        let said = String::from_utf8_lossy(&unpacked.stderr).trim().to_owned();
        return Err(read()(io::Error::other(said)));
    }
    Ok(unpacked.stdout)
}

/// The names of the modules that `module` needs, from its section `.modinfo`.
fn depends(module: &[u8]) -> Vec<String> {
    let key = b"\0depends=";
    let Some(at) = module.windows(key.len()).position(|window| window == key) else {
        return Vec::new();
    };
    let names = module[at + key.len()..].split(|byte| *byte == 0).next().unwrap_or_default();
    let names = String::from_utf8_lossy(names);
    let names = names.split(',').filter(|name| !name.is_empty());
    names.map(|name| name.replace('-', "_")).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops where something fails")]

    use super::*;

    fn module(depends: &str) -> String {
        format!("\x7fELF\0license=GPL\0depends={depends}\0name=x\0")
    }

    #[test]
    fn a_module_names_those_that_it_needs() {
        assert_eq!(depends(module("nf_tables,nf-nat").as_bytes()), ["nf_tables", "nf_nat"]);
        assert!(depends(module("").as_bytes()).is_empty());
    }

    #[test]
    fn modules_are_loaded_after_those_that_they_need_and_others_are_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let tree = directory.path().join("tree");
        for (name, depends) in [
            ("drivers/net/tun.ko", ""),
            ("net/nft_ct.ko", "nf_tables,nf-conntrack"),
            ("net/nf-conntrack.ko", "libcrc32c"),
            ("net/nf_tables.ko", ""),
            ("lib/libcrc32c.ko", ""),
            ("sound/snd.ko", ""),
        ] {
            let path = tree.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, module(depends)).unwrap();
        }
        let taken = Modules::take(&tree, &directory.path().join("taken")).unwrap();
        let read = Modules::read(&directory.path().join("taken")).unwrap();
        let order = read.with_needs(["nft_ct", "tun", "tun", "snd", "none"]);
        assert_eq!(order, ["nf_tables", "libcrc32c", "nf_conntrack", "nft_ct", "tun"]);
        assert!(taken.file("nf_conntrack").is_file() && !taken.file("snd").exists());
    }
}
