//! What an agent says of its reservation, over its local API.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use wakeai_control::{ReservationState as Standing, Share};

/// An agent answers within a millisecond; one that is held up is asked again, and must not hold the
/// run up.
const PATIENCE: Duration = Duration::from_millis(20);
const QUESTION: &[u8] = b"{\"version\":1,\"request\":\"status\"}\n";

/// Of an answer, `docs/reference/agent.md`.
#[derive(Deserialize)]
struct Answer {
    status: Status,
}

#[derive(Deserialize)]
struct Status {
    reservation: Option<Reservation>,
}

#[derive(Deserialize)]
struct Reservation {
    standing: Word,
    share: Option<f64>,
    taken: Option<f64>,
    limit: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Waiting,
    Admitted,
    Refused,
    Unmeasured,
}

/// How the reservation of the agent that listens at `socket` stands.
pub(super) fn standing(socket: &Path) -> io::Result<Standing> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(QUESTION)?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    Ok(understood(&line)?)
}

fn understood(line: &str) -> serde_json::Result<Standing> {
    let said: Answer = serde_json::from_str(line)?;
    Ok(said.status.reservation.map_or(Standing::None, |said| {
        let (own, taken, limit) = (share(said.share), share(said.taken), share(said.limit));
        match said.standing {
            Word::Waiting => Standing::Waiting,
            Word::Unmeasured => Standing::Unmeasured,
            Word::Admitted => Standing::Admitted { share: own },
            Word::Refused => Standing::Refused { share: own, taken, limit },
        }
    }))
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "to the nearest that there is"
)]
fn share(part: Option<f64>) -> Share {
    // More than the whole is asked for, too, and refused.
    Share::from_ppm((part.unwrap_or(0.0) * f64::from(Share::WHOLE.ppm())).round() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(reservation: &str) -> Standing {
        let answer = format!("{{\"version\":1,\"status\":{{\"reservation\":{reservation}}}}}");
        understood(&answer).unwrap()
    }

    #[test]
    fn every_standing_is_understood() {
        let percent = Share::from_percent;
        assert_eq!(said("null"), Standing::None);
        assert_eq!(said("{\"standing\":\"waiting\"}"), Standing::Waiting);
        assert_eq!(said("{\"standing\":\"unmeasured\",\"share\":null}"), Standing::Unmeasured);
        let admitted = said("{\"standing\":\"admitted\",\"share\":0.4}");
        assert_eq!(admitted, Standing::Admitted { share: percent(40) });
        assert_eq!(
            said("{\"standing\":\"refused\",\"share\":1.2,\"taken\":0.4,\"limit\":0.8}"),
            Standing::Refused { share: percent(120), taken: percent(40), limit: percent(80) }
        );
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        assert!(understood("").is_err());
        assert!(understood("{\"version\":1,\"error\":\"busy\"}").is_err());
    }
}
