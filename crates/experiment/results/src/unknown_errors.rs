//! Congestion events in JSON: an object with the count of each code, or null for each where nobody has counted.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::result::ErrorCounts;

/// The object. Either all counts are known or none is.
#[derive(Serialize, Deserialize)]
struct Codes {
    reordering: Option<u64>,
    local_overflow: Option<u64>,
    duplicate_ack: Option<u64>,
    timeout: Option<u64>,
}

#[allow(clippy::ref_option, reason = "serde calls it so")]
pub(crate) fn serialize<S: Serializer>(
    counts: &Option<ErrorCounts>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let of = |code: fn(&ErrorCounts) -> u64| counts.as_ref().map(code);
    Codes {
        reordering: of(|counts| counts.reordering),
        local_overflow: of(|counts| counts.local_overflow),
        duplicate_ack: of(|counts| counts.duplicate_ack),
        timeout: of(|counts| counts.timeout),
    }
    .serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<ErrorCounts>, D::Error> {
    let Codes { reordering, local_overflow, duplicate_ack, timeout } =
        Codes::deserialize(deserializer)?;
    Ok(reordering.zip(local_overflow).zip(duplicate_ack.zip(timeout)).map(
        |((reordering, local_overflow), (duplicate_ack, timeout))| ErrorCounts {
            reordering,
            local_overflow,
            duplicate_ack,
            timeout,
        },
    ))
}
