//! The quantities that every other crate computes with.
//!
//! All of them are unsigned integers behind a type. A run that is replayed must give the same bits
//! on every machine. So nothing here rounds through floating point, and a division keeps its
//! remainder where it matters (see [`Serializer`]). The operators `+`, `-` and `*` panic on
//! overflow in every build profile. The `checked_*` and `saturating_*` methods do not.

mod bytes;
mod operators;
mod parse;
mod rate;
mod segments;
pub mod text;
mod time;

pub use bytes::Bytes;
pub use parse::ParseQuantityError;
pub use rate::{Rate, Serializer};
pub use segments::Segments;
pub use time::{Duration, Instant};
