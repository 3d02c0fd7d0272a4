//! The modules of a kernel's package that the guests load.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The modules that Wakeai and its tests use. A guest loads all of them at its start, because it
/// has no modprobe. The first is here because other modules need it but do not list it among their
/// dependencies: before Linux 6.14 they request it by the name of its algorithm.
const WANTED: &[&str] = &[
    "crc32c_generic",
    "tun",
    "veth",
    "bridge",
    "tcp_bbr",
    "tcp_diag",
    "nft_ct",
    "nft_fib_inet",
    "nft_tproxy",
    "nft_socket",
    "sch_tbf",
    "sch_fq_codel",
    "sch_fq",
];

/// The modules that only tasks with an 802.11 interface load. Other tasks must not have radios.
const WIFI: &[&str] = &["mac80211_hwsim", "sch_netem"];

/// Unpacks the wanted modules of `tree`, and the modules that these need, into `directory`. The
/// file `order` in it lists the modules that every guest loads at its start, in the order of
/// loading. The file `wifi` lists those of [`WIFI`].
pub(crate) fn copy(tree: &Path, directory: &Path) {
    fs::create_dir_all(directory).unwrap();
    let mut all = BTreeMap::new();
    index(tree, &mut all);
    for (list, names) in [("order", WANTED), ("wifi", WIFI)] {
        let mut order = Vec::new();
        for name in names {
            take(name, &all, directory, &mut order);
        }
        fs::write(directory.join(list), order.join("\n") + "\n").unwrap();
    }
}

/// The names that [`copy`] looks for, as one text. If the text kept with an earlier copy differs,
/// that copy lacks modules.
pub(crate) fn wanted() -> String {
    [WANTED, WIFI].concat().join(" ")
}

/// Every module below `tree` by its name.
fn index(tree: &Path, all: &mut BTreeMap<String, PathBuf>) {
    for path in fs::read_dir(tree).unwrap().flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            index(&path, all);
        } else if let Some((name, _)) =
            path.file_name().and_then(|name| name.to_str()?.split_once(".ko"))
        {
            all.insert(name.replace('-', "_"), path);
        }
    }
}

/// Copies the module `name`, after the modules that it needs. A missing module is no error here: it
/// may be built into the kernel. If it is not, the checks in the guest fail.
fn take(name: &str, all: &BTreeMap<String, PathBuf>, directory: &Path, order: &mut Vec<String>) {
    let name = name.replace('-', "_");
    if order.contains(&name) {
        return;
    }
    let Some(path) = all.get(&name) else { return };
    let module = if path.extension().is_some_and(|extension| extension == "xz") {
        Command::new("xz").arg("-dc").arg(path).output().unwrap().stdout
    } else {
        fs::read(path).unwrap()
    };
    for needed in depends(&module) {
        take(&needed, all, directory, order);
    }
    fs::write(directory.join(format!("{name}.ko")), module).unwrap();
    order.push(name);
}

/// The names of the modules that `module` needs, from its section `.modinfo`.
fn depends(module: &[u8]) -> Vec<String> {
    let key = b"\0depends=";
    let Some(at) = module.windows(key.len()).position(|window| window == key) else {
        return Vec::new();
    };
    let names = module[at + key.len()..].split(|byte| *byte == 0).next().unwrap_or_default();
    let names = String::from_utf8_lossy(names);
    names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_names_those_that_it_needs() {
        let module = |depends: &str| format!("\x7fELF\0license=GPL\0depends={depends}\0name=x\0");
        assert_eq!(depends(module("nf_tables,nf-nat").as_bytes()), ["nf_tables", "nf-nat"]);
        assert!(depends(module("").as_bytes()).is_empty());
    }
}
