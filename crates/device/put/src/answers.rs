//! What the answers of servers mean: one table for all protocols.
//!
//! `docs/reference/upload-answers.md` shows the table, and a test compares both.

use std::ops::RangeInclusive;

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

/// A row of the table. The first row that fits an answer counts.
struct AnswerRow {
    asked: &'static [Asked],
    status: RangeInclusive<u16>,
    meaning: Meaning,
    /// What the user can do, for messages.
    advice: &'static str,
}

const fn row(
    asked: &'static [Asked],
    status: RangeInclusive<u16>,
    meaning: Meaning,
    advice: &'static str,
) -> AnswerRow {
    AnswerRow { asked, status, meaning, advice }
}

/// Every request.
const ALL: &[Asked] = <Asked as strum::VariantArray>::VARIANTS;
/// The requests that may be refused without an end of the upload.
const QUESTIONS: &[Asked] = &[Asked::Occupant, Asked::ReadBack];

/// The table. The sources are RFC 9110 section 15, RFC 4918 sections 9.7, 9.9 and 11, RFC 6585, and tus 1.0.0.
const TABLE: &[AnswerRow] = &[
    // What a protocol says of one of its requests.
    row(
        &[Asked::Whole, Asked::Part, Asked::Move],
        202..=202,
        Meaning::Lasts,
        "the server has not stored it yet: look there later",
    ),
    row(
        &[Asked::Whole, Asked::Part, Asked::Move],
        207..=207,
        Meaning::Lasts,
        "a part of the request failed",
    ),
    row(&[Asked::Offset], 403..=404, Meaning::Anew, "does the URL's path exist?"),
    row(&[Asked::Offset, Asked::Piece], 410..=410, Meaning::Anew, "the upload has expired"),
    row(&[Asked::Piece], 403..=404, Meaning::Anew, "does the URL's path exist?"),
    row(&[Asked::Piece], 409..=409, Meaning::AskOffset, "another client writes to this upload"),
    row(
        &[Asked::Piece],
        460..=460,
        Meaning::AskOffset,
        "the piece arrived damaged: its checksum differs",
    ),
    row(&[Asked::Piece, Asked::Part], 413..=413, Meaning::Smaller, "give a smaller --chunk-size"),
    row(&[Asked::Part], 400..=400, Meaning::Whole, "it takes no parts of files"),
    row(&[Asked::Part], 405..=405, Meaning::Whole, "it takes no parts of files"),
    row(&[Asked::Part], 411..=411, Meaning::Whole, "it takes no parts of files"),
    row(&[Asked::Part], 415..=416, Meaning::Whole, "it takes no parts of files"),
    row(&[Asked::Part], 501..=501, Meaning::Whole, "it takes no parts of files"),
    row(&[Asked::Length], 404..=404, Meaning::None, ""),
    row(&[Asked::Length], 403..=403, Meaning::Whole, "it does not say what it has"),
    row(&[Asked::Length], 405..=405, Meaning::Whole, "it does not say what it has"),
    row(&[Asked::Length], 501..=501, Meaning::Whole, "it does not say what it has"),
    row(QUESTIONS, 404..=404, Meaning::None, ""),
    row(QUESTIONS, 410..=410, Meaning::None, ""),
    row(
        &[Asked::Move],
        412..=412,
        Meaning::Lasts,
        "a file of this name appeared at the server meanwhile, or one whose name the server takes for the same",
    ),
    row(&[Asked::Move], 400..=400, Meaning::Directly, "it cannot move files"),
    row(&[Asked::Move], 403..=403, Meaning::Directly, "it cannot move files"),
    row(&[Asked::Move], 404..=404, Meaning::None, ""),
    row(&[Asked::Move], 405..=405, Meaning::Directly, "it cannot move files"),
    row(&[Asked::Move], 501..=502, Meaning::Directly, "it cannot move files"),
    row(
        &[Asked::Whole, Asked::Part],
        404..=404,
        Meaning::Lasts,
        "the directory does not exist at the server: make it there, or correct the URL",
    ),
    row(
        &[Asked::Whole, Asked::Part, Asked::Move],
        409..=409,
        Meaning::Lasts,
        "the directory does not exist at the server: make it there, or correct the URL",
    ),
    row(
        &[Asked::Whole],
        405..=405,
        Meaning::Lasts,
        "it takes no uploads at this URL; is it a directory that lacks its final /?",
    ),
    row(&[Asked::Create], 405..=405, Meaning::Lasts, "it takes no uploads at this URL"),
    row(&[Asked::Protocol], 400..=400, Meaning::Unsaid, ""),
    row(&[Asked::Protocol], 403..=406, Meaning::Unsaid, ""),
    row(&[Asked::Protocol], 409..=415, Meaning::Unsaid, ""),
    row(&[Asked::Protocol], 501..=501, Meaning::Unsaid, ""),
    // What RFC 9110 says of every request.
    row(ALL, 200..=299, Meaning::Done, ""),
    row(ALL, 300..=399, Meaning::Lasts, "give the URL to which it leads"),
    row(
        ALL,
        401..=401,
        Meaning::Lasts,
        "give credentials with --token-file or --user-file, or in WAKEAI_TOKEN",
    ),
    row(
        ALL,
        407..=407,
        Meaning::Lasts,
        "the proxy asks for credentials: http_proxy=http://USER:PASSWORD@HOST:PORT",
    ),
    row(ALL, 408..=408, Meaning::Passes, ""),
    row(ALL, 421..=421, Meaning::Passes, ""),
    row(ALL, 423..=423, Meaning::Passes, "somebody holds a lock"),
    row(ALL, 425..=425, Meaning::Passes, ""),
    row(ALL, 429..=429, Meaning::Passes, ""),
    row(QUESTIONS, 400..=499, Meaning::Unsaid, ""),
    row(QUESTIONS, 501..=501, Meaning::Unsaid, ""),
    row(ALL, 403..=403, Meaning::Lasts, "these credentials do not allow it"),
    row(ALL, 404..=404, Meaning::Lasts, "does the URL's path exist?"),
    row(ALL, 409..=409, Meaning::Lasts, ""),
    row(
        ALL,
        412..=412,
        Meaning::Lasts,
        "it has another version of the protocol, or the file there has changed",
    ),
    row(ALL, 413..=413, Meaning::Lasts, "it is larger than the server takes"),
    row(ALL, 414..=414, Meaning::Lasts, "give a shorter --name"),
    row(ALL, 400..=499, Meaning::Lasts, ""),
    row(
        ALL,
        501..=501,
        Meaning::Lasts,
        "it cannot do this: is the URL that of a server for uploads?",
    ),
    row(ALL, 505..=506, Meaning::Lasts, ""),
    row(ALL, 507..=507, Meaning::Lasts, "the server's disk or quota is full"),
    row(ALL, 508..=508, Meaning::Lasts, ""),
    row(ALL, 510..=510, Meaning::Lasts, ""),
    row(ALL, 511..=511, Meaning::Passes, "log in to the network, for example with a browser"),
    row(ALL, 500..=599, Meaning::Passes, ""),
    row(ALL, 0..=u16::MAX, Meaning::Lasts, "this is no status code of HTTP"),
];

/// The row of the answer `status` to a request.
fn find(asked: Asked, status: u16) -> &'static AnswerRow {
    let fits = |row: &&AnswerRow| row.asked.contains(&asked) && row.status.contains(&status);
    TABLE.iter().find(fits).expect("the last row fits every answer")
}

/// The meaning of an answer. With a `Retry-After` a refusal for size is one that passes (RFC 9110, section 15.5.14).
pub(super) fn meaning(asked: Asked, status: u16, asks_to_wait: bool) -> Meaning {
    if status == 413 && asks_to_wait { Meaning::Passes } else { find(asked, status).meaning }
}

/// What the user can do about an answer. It may be empty.
pub(super) fn advice(asked: Asked, status: u16) -> &'static str {
    find(asked, status).advice
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
        for &asked in ALL {
            let _ = write!(text, "\n### The server is asked to {asked}\n\n");
            text.push_str("| answer | meaning | advice in the message |\n|---|---|---|\n");
            let mut from = 200;
            for status in 200..600 {
                let same = |row: &AnswerRow, other: &AnswerRow| {
                    (row.meaning, row.advice) == (other.meaning, other.advice)
                };
                let (row, next) = (find(asked, status), find(asked, status + 1));
                if status < 599 && same(row, next) {
                    continue;
                }
                let codes = if from == status {
                    format!("{status}")
                } else {
                    format!("{from} to {status}")
                };
                let _ = writeln!(text, "| {codes} | {} | {} |", row.meaning.shown(), row.advice);
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
