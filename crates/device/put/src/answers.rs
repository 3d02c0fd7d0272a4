//! What the answers of servers mean: one table for all protocols.
//!
//! `docs/reference/upload-answers.md` shows the table, and a test compares both.

/// A request of an upload.
/// It is shown as what the server was asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::VariantArray)]
pub enum Asked {
    /// OPTIONS, which shows the protocol.
    #[strum(to_string = "tell its protocol")]
    Protocol,
    /// CONNECT, a tunnel through a proxy.
    #[strum(to_string = "open a tunnel")]
    Tunnel,
    /// tus: POST, which creates the upload.
    #[strum(to_string = "create the upload")]
    Create,
    /// tus: HEAD, the offset of the upload.
    #[strum(to_string = "tell the offset")]
    Offset,
    /// tus: PATCH, a piece.
    #[strum(to_string = "take a piece")]
    Piece,
    /// PUT of the whole file.
    #[strum(to_string = "take the file")]
    Whole,
    /// PUT of a part with `Content-Range`.
    #[strum(to_string = "take a part of the file")]
    Part,
    /// HEAD of a file that is sent in parts, or that has been sent.
    #[strum(to_string = "tell the file's length")]
    Length,
    /// HEAD or PROPFIND of the name, before anything is sent.
    #[strum(to_string = "tell whether it has a file of this name")]
    Occupant,
    /// WebDAV: MOVE of the file to its name.
    #[strum(to_string = "give the file its name")]
    Move,
    /// GET of the file, or HEAD with `Want-Repr-Digest`.
    #[strum(to_string = "give the file back")]
    ReadBack,
}

/// The meaning of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The request did what was asked.
    Done,
    /// The same request may succeed later.
    Passes,
    /// No further attempt succeeds, until somebody changes something.
    Lasts,
    /// The upload goes on with smaller pieces.
    Smaller,
    /// The offset that the client assumed is wrong, or the piece was damaged: the upload goes on where the server says.
    AskOffset,
    /// The server no longer has the upload: it begins anew, once.
    Anew,
    /// The server takes no parts: the file is sent whole.
    Whole,
    /// The server cannot move files: the file is sent under its own name.
    Directly,
    /// The server does not say: the upload goes on without the answer.
    Unsaid,
    /// There is no such file.
    None,
}

/// The meaning of an answer, and what the user can do about it, for messages.
type AnswerRow = (Meaning, &'static str);

/// What a protocol says of the answer `status` to one of its requests (RFC 4918 sections 9.7, 9.9 and 11, and tus 1.0.0).
fn to_one(asked: Asked, status: u16) -> Option<AnswerRow> {
    use Asked::{Create, Length, Move, Occupant, Offset, Part, Piece, Protocol, ReadBack, Whole};
    use Meaning::{Anew, AskOffset, Directly, Lasts, Smaller, Unsaid};
    Some(match (asked, status) {
        (Whole | Part | Move, 202) => (Lasts, "the server has not stored it yet: look there later"),
        (Whole | Part | Move, 207) => (Lasts, "a part of the request failed"),
        (Offset | Piece, 403 | 404) => (Anew, "does the URL's path exist?"),
        (Offset | Piece, 410) => (Anew, "the upload has expired"),
        (Piece, 409) => (AskOffset, "another client writes to this upload"),
        (Piece, 460) => (AskOffset, "the piece arrived damaged: its checksum differs"),
        (Piece | Part, 413) => (Smaller, "give a smaller --chunk-size"),
        (Part, 400 | 405 | 411 | 415 | 416 | 501) => (Meaning::Whole, "it takes no parts of files"),
        (Length, 403 | 405 | 501) => (Meaning::Whole, "it does not say what it has"),
        (Length | Move, 404) | (Occupant | ReadBack, 404 | 410) => (Meaning::None, ""),
        (Move, 412) => (
            Lasts,
            "a file of this name appeared at the server meanwhile, or one whose name the server takes for the same",
        ),
        (Move, 400 | 403 | 405 | 501 | 502) => (Directly, "it cannot move files"),
        (Whole | Part, 404 | 409) | (Move, 409) => {
            (Lasts, "the directory does not exist at the server: make it there, or correct the URL")
        }
        (Whole, 405) => {
            (Lasts, "it takes no uploads at this URL; is it a directory that lacks its final /?")
        }
        (Create, 405) => (Lasts, "it takes no uploads at this URL"),
        (Protocol, 400 | 403..=406 | 409..=415 | 501) => (Unsaid, ""),
        _ => return None,
    })
}

/// What RFC 9110 (section 15), RFC 4918 and RFC 6585 say of the answer `status` to any request.
fn to_any(asked: Asked, status: u16) -> AnswerRow {
    use Meaning::{Done, Lasts, Passes, Unsaid};
    // These requests may be refused without an end of the upload.
    let is_question = matches!(asked, Asked::Occupant | Asked::ReadBack);
    match status {
        200..=299 => (Done, ""),
        300..=399 => (Lasts, "give the URL to which it leads"),
        401 => (Lasts, "give credentials with --token-file or --user-file, or in WAKEAI_TOKEN"),
        407 => (Lasts, "the proxy asks for credentials: http_proxy=http://USER:PASSWORD@HOST:PORT"),
        423 => (Passes, "somebody holds a lock"),
        408 | 421 | 425 | 429 => (Passes, ""),
        400..=499 | 501 if is_question => (Unsaid, ""),
        403 => (Lasts, "these credentials do not allow it"),
        404 => (Lasts, "does the URL's path exist?"),
        412 => (Lasts, "it has another version of the protocol, or the file there has changed"),
        413 => (Lasts, "it is larger than the server takes"),
        414 => (Lasts, "give a shorter --name"),
        501 => (Lasts, "it cannot do this: is the URL that of a server for uploads?"),
        507 => (Lasts, "the server's disk or quota is full"),
        400..=499 | 505 | 506 | 508 | 510 => (Lasts, ""),
        511 => (Passes, "log in to the network, for example with a browser"),
        500..=599 => (Passes, ""),
        _ => (Lasts, "this is no status code of HTTP"),
    }
}

fn find(asked: Asked, status: u16) -> AnswerRow {
    to_one(asked, status).unwrap_or_else(|| to_any(asked, status))
}

/// The meaning of an answer. With a `Retry-After` a refusal for size is one that passes (RFC 9110, section 15.5.14).
pub(super) fn meaning(asked: Asked, status: u16, asks_to_wait: bool) -> Meaning {
    if status == 413 && asks_to_wait { Meaning::Passes } else { find(asked, status).0 }
}

/// What the user can do about an answer. It may be empty.
pub(super) fn advice(asked: Asked, status: u16) -> &'static str {
    find(asked, status).1
}

impl Meaning {
    /// The words of the page.
    #[cfg(test)]
    fn shown(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Passes => "passes: again after a pause",
            Self::Lasts => "lasts: the upload ends",
            Self::Smaller => "asks for smaller pieces, down to 1 KiB; then it lasts",
            Self::AskOffset => "asks for another offset: after a pause the client asks which",
            Self::Anew => "the upload is gone: it begins anew, once; then it lasts",
            Self::Whole => "asks for the whole file in one request",
            Self::Directly => "asks for the file under its own name",
            Self::Unsaid => "does not say: the upload goes on without",
            Self::None => "there is no such file",
        }
    }
}

#[cfg(test)]
mod tests {

    use std::fmt::Write as _;

    use super::*;

    /// The rows of the page: for each request the ranges of status codes with one meaning and one advice.
    fn page() -> String {
        let mut text = String::new();
        for &asked in <Asked as strum::VariantArray>::VARIANTS {
            let _ = write!(text, "\n### The server is asked to {asked}\n\n");
            text.push_str("| answer | meaning | advice in the message |\n|---|---|---|\n");
            let mut from = 200;
            for status in 200..600 {
                let row @ (meaning, advice) = find(asked, status);
                if status < 599 && row == find(asked, status + 1) {
                    continue;
                }
                let codes = if from == status {
                    format!("{status}")
                } else {
                    format!("{from} to {status}")
                };
                let _ = writeln!(text, "| {codes} | {} | {advice} |", meaning.shown());
                from = status + 1;
            }
        }
        text
    }

    #[test]
    fn the_reference_page_has_the_table_that_the_client_uses() {
        let path =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/upload-answers.md");
        let found = std::fs::read_to_string(path).unwrap();
        let (head, table) = found.split_once("\n### ").unwrap();
        let expected = page();
        if std::env::var_os("WAKEAI_WRITE_TABLES").is_some() {
            std::fs::write(path, format!("{head}{expected}")).unwrap();
        } else {
            let is_same = format!("\n### {table}") == expected;
            assert!(is_same, "the page is old: WAKEAI_WRITE_TABLES=1 writes it");
        }
    }

    #[test]
    fn each_kind_of_answer_has_its_meaning() {
        for (asked, status, expected) in [
            (Asked::Whole, 409, Meaning::Lasts), // a directory is missing (RFC 4918, section 9.7.1)
            (Asked::Piece, 409, Meaning::AskOffset),
            (Asked::Piece, 413, Meaning::Smaller),
            (Asked::Part, 413, Meaning::Smaller),
            (Asked::Whole, 413, Meaning::Lasts),
            (Asked::Create, 413, Meaning::Lasts),
            (Asked::Piece, 507, Meaning::Lasts),
            (Asked::Piece, 503, Meaning::Passes),
            (Asked::Piece, 599, Meaning::Passes), // as 500 (RFC 9110, section 15)
            (Asked::Whole, 499, Meaning::Lasts),  // as 400
            (Asked::Whole, 201, Meaning::Done),
            (Asked::Whole, 202, Meaning::Lasts),
            (Asked::Move, 207, Meaning::Lasts),
            (Asked::ReadBack, 405, Meaning::Unsaid),
            (Asked::ReadBack, 503, Meaning::Passes),
            (Asked::Create, 307, Meaning::Lasts),
            (Asked::Protocol, 401, Meaning::Lasts),
        ] {
            assert_eq!(meaning(asked, status, false), expected, "{asked}: {status}");
        }
        assert_eq!(meaning(Asked::Whole, 413, true), Meaning::Passes);
    }
}
