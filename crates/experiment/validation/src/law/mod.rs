//! The law `airtime` over a matrix of settings, each with a promise and a verdict.

mod channels;
mod downloads;
pub mod dynamics;
pub mod figures;
pub mod matrix;
mod setting;
pub mod table;
pub mod timeline;
pub mod verdict;

pub use figures::{LawFigures, LawRow, TimelineFigures};
pub use matrix::matrix;
pub use setting::{Promise, Receiving, Setting};
