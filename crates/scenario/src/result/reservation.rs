//! The outcome of a flow's `reserve`.

use serde::{Deserialize, Serialize};

use super::{rounded, rounded_or_null};

/// The outcome of a flow's request to leave a rate free.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowReservation {
    /// `admitted` if it ever was; else the last state.
    pub standing: ReservationStanding,
    /// The share of airtime of all reservations of its station; null where unknown.
    #[serde(serialize_with = "rounded_or_null")]
    pub share: Option<f64>,
    /// Where it was refused: the share of the earlier requests.
    #[serde(serialize_with = "rounded_or_null")]
    pub taken: Option<f64>,
    /// Where it was refused: the most that may be reserved in all.
    #[serde(serialize_with = "rounded_or_null")]
    pub limit: Option<f64>,
    /// How long it was admitted, seconds.
    #[serde(serialize_with = "rounded")]
    pub admitted_s: f64,
}

/// The last state of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReservationStanding {
    /// The peers left it free.
    Admitted,
    /// It did not fit.
    Refused,
    /// The solo goodput of its station is not known.
    Unmeasured,
    /// Its station sent nothing.
    Waiting,
    /// Its sender runs no agent in this condition.
    NoAgent,
}

impl FlowReservation {
    /// The outcome of a flow without an admitted reservation.
    pub fn without(standing: ReservationStanding) -> Self {
        Self { standing, share: None, taken: None, limit: None, admitted_s: 0.0 }
    }

    /// In words.
    pub fn words(&self) -> String {
        let percent = |share: Option<f64>| {
            share.map_or("an unknown part".to_owned(), |share| format!("{:.1} %", share * 100.0))
        };
        match self.standing {
            ReservationStanding::Admitted => {
                format!("{} of the air for {:.0} s", percent(self.share), self.admitted_s)
            }
            ReservationStanding::Refused => format!(
                "refused: {} asked, {} taken, {} in all",
                percent(self.share),
                percent(self.taken),
                percent(self.limit)
            ),
            ReservationStanding::Unmeasured => "refused: neither max nor PHY rate known".to_owned(),
            ReservationStanding::Waiting => "nothing was sent".to_owned(),
            ReservationStanding::NoAgent => "not asked for: no agent".to_owned(),
        }
    }
}
