//! `wakeai status`.

mod alone;
mod fleet;
mod table;

use std::io::IsTerminal as _;
use std::time::Duration;

use serde::Serialize;
use wakeai_api::{Answers, AskError};

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
            let render = |view: &fleet::View<'_>| fleet::render(&view.fleet);
            (show(fleet::ask_all(&sockets), render, arguments)?, fleet::PAUSE)
        } else {
            let answers = sockets.iter().map(|socket| Answers::of(socket, agents::PATIENCE));
            (show(answers, table::render, arguments)?, Duration::from_secs(1))
        };
        if !arguments.watch || reader == OutputReader::Gone {
            return Ok(());
        }
        std::thread::sleep(pause);
    }
}

/// Shows what each agent has answered, as JSON or as the text of `render`. Text that is repeated on a terminal replaces the
/// previous text.
fn show<T: Serialize>(
    answers: impl ExactSizeIterator<Item = Result<T, AskError>>,
    render: impl Fn(&T) -> String,
    arguments: &StatusArguments,
) -> Result<OutputReader, Failure> {
    let others_count = answers.len() > 1 || arguments.watch;
    let mut text = String::new();
    for answer in answers {
        match answer {
            Ok(answer) if !arguments.json => text += &render(&answer),
            Ok(answer) if output::json(&answer)? == OutputReader::There => {}
            Ok(_) => return Ok(OutputReader::Gone),
            // Each of several agents may end at any moment, or have no access point.
            Err(error) if others_count => note(error),
            Err(error) => return Err(Failure::failed(error)),
        }
    }
    if arguments.json {
        return Ok(OutputReader::There);
    }
    if arguments.watch && std::io::stdout().is_terminal() {
        text.insert_str(0, "\x1b[H\x1b[2J"); // home, clear (ECMA-48)
    }
    output::write(&text)
}
