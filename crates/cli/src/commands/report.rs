//! `wakeai report`.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use wakeai_report::Source;

use crate::args::ReportArguments;
use crate::failure::{Failure, note};
use crate::output;

/// The text that every report has near its start.
const MARK: &str = "<meta name=\"generator\" content=\"wakeai ";
/// The number of bytes at the start of a file that are searched for the mark.
const HEAD: u64 = 4096;

pub(crate) fn run(arguments: &ReportArguments) -> Result<(), Failure> {
    let path = &arguments.output;
    let to_stdout = path == Path::new("-");
    if !to_stdout && !arguments.force && !may_replace(path) {
        return Err(Failure::usage(anyhow::anyhow!(
            "{} is there and is no report: choose another name with -o, or replace it with --force",
            path.display()
        )));
    }
    let sources: Result<Vec<Source>, _> =
        arguments.results.iter().map(|result| Source::read(result)).collect();
    let page = wakeai_report::render(&sources.map_err(Failure::usage)?);
    if to_stdout {
        return output::write(&page).map(|_| ());
    }
    write(path, &page).map_err(|error| {
        Failure::failed(
            anyhow::Error::new(error).context(format!("cannot write {}", path.display())),
        )
    })?;
    note(format_args!("wrote {}", path.display()));
    Ok(())
}

/// Whether writing to `path` loses nothing: no file is there, or the file is an earlier report.
fn may_replace(path: &Path) -> bool {
    let Ok(metadata) = path.symlink_metadata() else { return true };
    let mut head = Vec::new();
    let read = |head: &mut Vec<u8>| File::open(path)?.take(HEAD).read_to_end(head);
    metadata.is_file() && read(&mut head).is_ok() && String::from_utf8_lossy(&head).contains(MARK)
}

/// Writes the whole file or nothing. If the disk is full, the earlier file stays.
fn write(path: &Path, page: &str) -> io::Result<()> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let written = || {
        let mut file = File::create(&partial)?;
        file.write_all(page.as_bytes())?;
        file.sync_all()?;
        fs::rename(&partial, path)
    };
    written().inspect_err(|_| {
        let _ = fs::remove_file(&partial); // it may not exist
    })
}
