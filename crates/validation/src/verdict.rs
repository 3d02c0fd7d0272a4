//! What was promised, and whether it is held.

use crate::markdown::{Page, Table, held};

/// One promise and what was found.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// What is compared.
    pub what: String,
    /// How far it may be off.
    pub bound: String,
    /// The worst that was found.
    pub found: String,
    /// Whether that is within the bound.
    pub holds: bool,
}

impl Verdict {
    /// The worst of some deviations, each with its name, against a bound on the share; `None` where
    /// nothing was compared.
    pub fn worst(what: &str, bound: f64, deviations: &[(String, f64)]) -> Option<Self> {
        let (name, worst) = deviations.iter().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?;
        let outside = deviations.iter().filter(|(_, share)| share.abs() > bound).count();
        Some(Self {
            what: what.to_owned(),
            bound: format!("within {:.0} %", bound * 100.0),
            found: format!(
                "worst {:+.1} % ({name}); {outside} of {} outside",
                worst * 100.0,
                deviations.len()
            ),
            holds: outside == 0,
        })
    }
}

/// All of them as a table.
pub fn summarise(page: &mut Page, verdicts: &[Verdict]) {
    let mut table = Table::new(&["what", "bound", "found", "held"]);
    for verdict in verdicts {
        table.row([
            verdict.what.clone(),
            verdict.bound.clone(),
            verdict.found.clone(),
            held(verdict.holds),
        ]);
    }
    page.table(&table);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_deviation_decides() {
        let all = [("a".to_owned(), 0.02), ("b".to_owned(), -0.07)];
        assert!(Verdict::worst("x", 0.10, &all).unwrap().holds);
        let verdict = Verdict::worst("x", 0.05, &all).unwrap();
        assert_eq!(verdict.found, "worst -7.0 % (b); 1 of 2 outside");
        assert!(!verdict.holds);
        assert!(Verdict::worst("x", 0.05, &[]).is_none());
    }
}
