//! The guest's file system: this program, the programs that the lab starts, and the kernel's modules. It is the same
//! for all runs of a command; the run itself is laid over it.

use std::fs;
use std::io;
use std::path::Path;

use wakeai_guest::{
    ALGORITHMS, Archive, GuestError, Kernel, LAB, Program, RADIOS, add_programs,
    library_directories, which,
};

use crate::inside::{MODULES, PROGRAM};

/// The programs that the lab starts, with Debian's packages of them.
const PROGRAMS: [(&str, &str); 3] =
    [("iperf3", "iperf3"), ("setpriv", "util-linux"), ("true", "coreutils")];
/// The programs of runs whose hosts have radios.
const OF_RADIOS: [(&str, &str); 4] =
    [("hostapd", "hostapd"), ("ip", "iproute2"), ("iw", "iw"), ("tc", "iproute2")];
/// The program that only proxies start. Without it a scenario with one fails in the guest, which names it.
const OF_PROXIES: &str = "nft";

/// The file system, and its digest.
pub(crate) fn build(
    kernel: &Kernel,
    wakeai: &Path,
    has_radios: bool,
) -> Result<(Archive, String), GuestError> {
    let mut archive = Archive::default();
    for directory in ["dev", "proc", "run", "sys", "tmp"] {
        archive.directory(directory);
    }
    let mut programs = vec![Program { from: wakeai.to_owned(), to: PROGRAM.into() }];
    let of_radios = if has_radios { &OF_RADIOS[..] } else { &[] };
    for &(name, package) in PROGRAMS.iter().chain(of_radios) {
        programs.push(Program::of(name, package)?);
    }
    let shell = Program::of("sh", "dash")?;
    programs.push(Program { to: "/bin/sh".into(), ..shell });
    if which(OF_PROXIES).is_some() {
        programs.push(Program::of(OF_PROXIES, "nftables")?);
    }
    add_programs(&mut archive, &programs, &library_directories())?;
    let radios = if has_radios { RADIOS } else { &[] };
    for name in kernel.modules.with_needs([LAB, ALGORITHMS, radios].concat()) {
        let file = kernel.modules.file(&name);
        let module =
            fs::read(&file).map_err(GuestError::file(format!("read {}", file.display())))?;
        archive.file(&format!("{MODULES}/{name}.ko"), module);
    }
    let digest =
        archive.write(&mut io::sink()).map_err(GuestError::file("pack the guest's file system"))?;
    Ok((archive, digest))
}
