//! `wakeai use`.

mod algorithm;
mod control;
mod hold;
mod in_force;
mod reign;
mod scope;
mod table;
mod wait;

use crate::args::UseArguments;
use crate::failure::Failure;

pub(crate) fn run(arguments: &UseArguments) -> Result<(), Failure> {
    if let Some(algorithm) = &arguments.algorithm {
        algorithm::check_rate(algorithm, arguments.rate)?;
    }
    if !nix::unistd::geteuid().is_root() {
        let missing = "`wakeai use` needs CAP_NET_ADMIN, CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN: \
                       run as root";
        return Err(Failure::missing_if(true, anyhow::anyhow!(missing)));
    }
    match (&arguments.algorithm, arguments.undo, arguments.set, arguments.rate) {
        (Some(algorithm), ..) => hold::run(algorithm, arguments),
        (_, Some(which), ..) => in_force::undo(which),
        (_, _, Some(id), Some(rate)) => in_force::set_rate(id, rate),
        _ if arguments.rate.is_some() => {
            Err(Failure::usage(anyhow::anyhow!("--rate goes with an algorithm or with --set")))
        }
        _ => in_force::list(arguments.json),
    }
}
