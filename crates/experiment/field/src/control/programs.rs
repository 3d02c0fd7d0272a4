//! Programs that are brought along: the static program of a release, sent to the machines of one experiment and removed after it.

use std::path::Path;
use std::process::Stdio;

use super::helper::{Helper, quoted, remote};
use super::measure::each;
use crate::error::FieldError;
use crate::station::BROUGHT;

/// The file of checksums in a release.
const SUMS: &str = "SHA256SUMS";

/// Brings to each remote machine the static program of its processor from the directory of a release, after its checksum was
/// verified.
pub(crate) fn bring(
    helpers: &mut [Helper<'_>],
    programs: &Path,
    interrupted: &(dyn Fn() -> bool + Sync),
) -> Result<(), FieldError> {
    let listed = checksums(programs)?;
    let results = each(helpers, |helper| {
        if helper.machine_is_local() || interrupted() {
            return Ok(());
        }
        bring_one(helper, programs, &listed)
    });
    let failed: Vec<String> = helpers
        .iter()
        .zip(results)
        .filter_map(|(helper, result)| Some(format!("{}: {}", helper.name(), result.err()?)))
        .collect();
    if failed.is_empty() { Ok(()) } else { Err(FieldError::NotReady(failed)) }
}

/// Brings the program once more to each machine that has lost it: where its directory is in memory, a boot does that. What is in
/// the way of that is also in the way of the next question, which tells it.
pub(crate) fn bring_again(
    helpers: &mut [Helper<'_>],
    programs: &Path,
    interrupted: &(dyn Fn() -> bool + Sync),
) -> Result<(), FieldError> {
    if helpers.iter().all(|helper| helper.is_connected() || helper.brought().is_none()) {
        return Ok(());
    }
    let listed = checksums(programs)?;
    each(helpers, |helper| {
        let brought = helper.brought().filter(|_| !helper.is_connected() && !interrupted());
        let Some(brought) = brought else { return };
        let question = format!("[ -x {} ] || echo gone", quoted(brought));
        let said = remote(&helper.machine.place, &question).stdin(Stdio::null()).output();
        if said.is_ok_and(|said| said.stdout.starts_with(b"gone")) {
            let _ = bring_one(helper, programs, &listed);
        }
    });
    Ok(())
}

/// The list of checksums of a release.
fn checksums(programs: &Path) -> Result<String, FieldError> {
    let sums = programs.join(SUMS);
    std::fs::read_to_string(&sums)
        .map_err(|source| FieldError::Unreadable { path: sums.clone(), source })
}

fn bring_one(helper: &mut Helper<'_>, programs: &Path, listed: &str) -> Result<(), String> {
    let place = helper.machine.place.clone();
    let say = |error: std::io::Error| error.to_string();
    let run = |script: &str| {
        let output = remote(&place, script).stdin(Stdio::null()).output().map_err(say)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
        }
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    };
    let processor = run("uname -m")?;
    let name = format!("wakeai-{}-linux-{processor}", wakeai_world::VERSION);
    let program = std::fs::read(programs.join(&name))
        .map_err(|error| format!("{}: {error}", programs.join(&name).display()))?;
    let sum = listed.lines().find_map(|line| {
        let (sum, file) = line.split_once(char::is_whitespace)?;
        (file.trim_start_matches([' ', '*']) == name).then_some(sum)
    });
    let sum = sum.ok_or_else(|| format!("{SUMS} has no line for {name}"))?;
    // The machine itself verifies what it got: sha256sum is in coreutils, busybox and toybox.
    let script = format!(
        "set -e; t=${{TMPDIR:-/tmp}}; [ -d \"$t\" ] || t=/data/local/tmp; d=$(mktemp -d \"$t/{BROUGHT}XXXXXX\"); \
         cat > \"$d/wakeai\"; \
         if [ \"$(sha256sum < \"$d/wakeai\" | cut -d ' ' -f 1)\" != {} ]; then rm -r \"$d\"; echo 'the checksum is not that of {SUMS}' >&2; \
         exit 1; fi; chmod 700 \"$d/wakeai\"; echo \"$d/wakeai\"",
        quoted(sum)
    );
    let mut child = remote(&place, &script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(say)?;
    let mut input = child.stdin.take().expect("it is piped");
    let written = std::io::Write::write_all(&mut input, &program);
    drop(input);
    let output = child.wait_with_output().map_err(say)?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    written.map_err(say)?;
    helper.use_program(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    Ok(())
}

/// Removes the program that was brought along, where no helper has done so at its end.
pub(crate) fn remove_program(helper: &mut Helper<'_>) {
    let Some(program) = helper.brought() else { return };
    let Some(directory) = Path::new(program).parent() else { return };
    let script = format!("rm -rf {}", quoted(&directory.display().to_string()));
    let _ = remote(&helper.machine.place, &script).stdin(Stdio::null()).output();
}
