//! The law `airtime` over a matrix of settings: what it was found by, and what it is judged by.

pub mod course;
pub mod courses;
pub mod figures;
pub mod matrix;
pub mod table;
pub mod verdict;

pub use figures::{Conditions, CourseFigures, Figures, Row};
pub use matrix::{Promise, Setting, matrix};
