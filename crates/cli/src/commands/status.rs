//! `wakeai status`.

mod alone;
mod fleet;
mod table;

use std::path::PathBuf;
use std::time::Duration;

use wakeai_api::Answers;

use super::agents;
use crate::args::StatusArguments;
use crate::failure::{Failure, note};
use crate::output::{self, OutputReader};

pub(crate) fn run(arguments: &StatusArguments) -> Result<(), Failure> {
    loop {
        let sockets = match &arguments.socket {
            Some(socket) => vec![socket.clone()],
            None => agents::sockets(),
        };
        if sockets.is_empty() && !arguments.watch {
            return Err(agents::none());
        }
        let (reader, pause) = if arguments.all {
            (fleet::show(&sockets, arguments)?, fleet::PAUSE)
        } else {
            (show(&sockets, arguments)?, Duration::from_secs(1))
        };
        if !arguments.watch || reader == OutputReader::Gone {
            return Ok(());
        }
        std::thread::sleep(pause);
    }
}

fn show(sockets: &[PathBuf], arguments: &StatusArguments) -> Result<OutputReader, Failure> {
    let mut text = String::new();
    for socket in sockets {
        let said = match Answers::of(socket, agents::PATIENCE) {
            Ok(said) => said,
            // Each of several agents may end at any moment.
            Err(error) if sockets.len() > 1 || arguments.watch => {
                note(error);
                continue;
            }
            Err(error) => return Err(Failure::failed(error)),
        };
        if arguments.json {
            if output::json(&said)? == OutputReader::Gone {
                return Ok(OutputReader::Gone);
            }
        } else {
            text.push_str(&table::render(&said));
        }
    }
    if arguments.json {
        return Ok(OutputReader::There);
    }
    write(text, arguments)
}

/// Writes the text. If the text is repeated on a terminal, it replaces the previous text.
fn write(mut text: String, arguments: &StatusArguments) -> Result<OutputReader, Failure> {
    if arguments.watch && std::io::IsTerminal::is_terminal(&std::io::stdout()) {
        text.insert_str(0, "\x1b[H\x1b[2J"); // home, clear (ECMA-48)
    }
    output::write(&text)
}
