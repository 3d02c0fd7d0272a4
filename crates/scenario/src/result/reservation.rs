//! What became of a flow's `reserve`.

use serde::{Deserialize, Serialize};

use super::{rounded, rounded_or_null};

/// What became of the rate that a flow asked to be left free.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowReservation {
    /// `admitted` where it ever was; else what came last.
    pub standing: ReservationStanding,
    /// The part of the air that it takes, with all that its station reserves; null where unknown.
    #[serde(serialize_with = "rounded_or_null")]
    pub share: Option<f64>,
    /// Where it was refused: what those before it had.
    #[serde(serialize_with = "rounded_or_null")]
    pub taken: Option<f64>,
    /// Where it was refused: the most that may be reserved in all.
    #[serde(serialize_with = "rounded_or_null")]
    pub limit: Option<f64>,
    /// For how long the peers were to leave it free, seconds.
    #[serde(serialize_with = "rounded")]
    pub admitted_s: f64,
}

/// What became of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReservationStanding {
    /// The peers left it free.
    Admitted,
    /// It did not fit.
    Refused,
    /// What its station reaches alone is not known.
    Unmeasured,
    /// Nothing was sent.
    Waiting,
    /// Nobody asked: its sender runs no agent in this condition.
    NoAgent,
}

impl FlowReservation {
    /// Of a flow that has not got it.
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
