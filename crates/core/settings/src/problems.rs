//! The problems that are found while a tree is read.

use std::cell::RefCell;

use crate::error::Problem;
use crate::tree::Origin;

/// The largest number of problems that are kept.
const KEPT: usize = 1_000;

/// One problem, whose place is not yet converted into line and column.
pub type Finding = Problem<Origin>;

/// Collects problems, so that one reading finds all of them.
#[derive(Default)]
pub struct Problems {
    findings: RefCell<Vec<Finding>>,
    /// The condition that is read with its `set` applied, if one is.
    condition: Option<String>,
}

impl Problems {
    /// Collects the problems of a condition that is read with its `set` applied.
    pub fn of_condition(name: &str) -> Self {
        Self { condition: Some(name.to_owned()), ..Self::default() }
    }

    /// Adds a problem.
    pub fn add(
        &self,
        origin: Origin,
        key: impl Into<String>,
        found: impl Into<String>,
        allowed: impl Into<String>,
    ) {
        let mut findings = self.findings.borrow_mut();
        if findings.len() < KEPT {
            findings.push(Finding {
                place: origin,
                key: key.into(),
                found: found.into(),
                allowed: allowed.into(),
                condition: self.condition.clone(),
            });
        }
    }

    /// All problems in the order of the file.
    ///
    /// # Errors
    ///
    /// There are problems.
    pub fn check(self) -> Result<(), Vec<Finding>> {
        let mut findings = self.findings.into_inner();
        findings.sort();
        findings.dedup();
        if findings.is_empty() { Ok(()) } else { Err(findings) }
    }
}
