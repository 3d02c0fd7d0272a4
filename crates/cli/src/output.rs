//! Standard output. The command ends without an error when its reader has exited (`| head`).

use std::io::{self, Write as _};

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;

use crate::failure::Failure;

/// The state of the reader of standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputReader {
    /// The reader still runs.
    There,
    /// The reader has exited.
    Gone,
}

/// Writes `text` at once.
pub(crate) fn write(text: &str) -> Result<OutputReader, Failure> {
    let mut out = io::stdout().lock();
    reader(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Writes `value` as one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<OutputReader, Failure> {
    let mut line = serde_json::to_string(value).map_err(Failure::failed)?;
    line.push('\n');
    write(&line)
}

/// Writes the counters of a daemon, one per line.
pub(crate) fn counters(entries: &[(&'static str, u64)]) -> Result<(), Failure> {
    let lines = entries.iter().map(|(name, count)| format!("{name:<20} {count:>16}\n"));
    write(&lines.collect::<String>()).map(|_| ())
}

/// Formats a table as text, with `indent` before each line. The columns from `first_number` on are numbers.
pub(crate) fn table<const N: usize>(
    indent: &str,
    head: [&str; N],
    first_number: usize,
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(head).add_rows(rows);
    for column in table.column_iter_mut().skip(first_number) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.lines().fold(String::new(), |text, line| text + indent + line.trim_end() + "\n")
}

/// Turns the result of a write into the state of the reader.
pub(crate) fn reader(written: io::Result<()>) -> Result<OutputReader, Failure> {
    match written {
        Ok(()) => Ok(OutputReader::There),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(OutputReader::Gone),
        Err(error) => {
            Err(Failure::failed(anyhow::Error::new(error).context("cannot write the output")))
        }
    }
}
