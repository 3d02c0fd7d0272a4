//! Promises about the simulator's figures, and whether they are held.

use serde::{Deserialize, Serialize};

use crate::statistics::percent;

/// One promise (a bound on a deviation), and the worst deviation that was found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PromiseVerdict {
    /// The figures that are compared.
    pub what: String,
    /// The bound on the deviation.
    pub bound: String,
    /// The worst deviation.
    pub found: String,
    /// Whether the worst deviation is within the bound.
    pub holds: bool,
}

impl PromiseVerdict {
    /// The verdict on named deviations, as shares: the promise holds if none is larger than
    /// `bound`. The worst one is shown. `None` if there are no deviations.
    pub fn worst(
        what: &str,
        bound: f64,
        deviations: impl Iterator<Item = (String, f64)>,
    ) -> Option<Self> {
        let deviations: Vec<(String, f64)> = deviations.collect();
        let (name, worst) = deviations.iter().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?;
        let outside = deviations.iter().filter(|(_, share)| share.abs() > bound).count();
        Some(Self {
            what: what.to_owned(),
            bound: format!("within {:.0} %", bound * 100.0),
            found: format!(
                "worst {} ({name}); {outside} of {} outside",
                percent(*worst),
                deviations.len()
            ),
            holds: outside == 0,
        })
    }
}

/// A figure and its promised bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// The figure in words.
    pub what: String,
    /// The value.
    pub value: f64,
    /// The bound.
    pub bound: f64,
    /// Whether the value must be at least the bound; otherwise it must be at most that.
    pub is_least: bool,
}

impl Measure {
    /// Whether the value is within the bound.
    pub fn holds(&self) -> bool {
        if self.is_least { self.value >= self.bound } else { self.value <= self.bound }
    }
}

/// The figures of a setting that are judged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measures(pub Vec<Measure>);

impl Measures {
    /// Adds a figure that must not be below the bound.
    pub fn at_least(&mut self, what: impl Into<String>, value: f64, bound: f64) {
        self.0.push(Measure { what: what.into(), value, bound, is_least: true });
    }

    /// Adds a figure that must not be above the bound.
    pub fn at_most(&mut self, what: impl Into<String>, value: f64, bound: f64) {
        self.0.push(Measure { what: what.into(), value, bound, is_least: false });
    }

    /// The figures that are outside of their bounds, in words; empty if all promises are held.
    pub fn broken(&self) -> Vec<String> {
        let broken = self.0.iter().filter(|measure| !measure.holds());
        let words = broken.map(|Measure { what, value, bound, is_least }| {
            format!("{what} {value:.3} {} {bound:.3}", if *is_least { "<" } else { ">" })
        });
        words.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_deviation_decides() {
        let all = [("a".to_owned(), 0.02), ("b".to_owned(), -0.07)];
        assert!(PromiseVerdict::worst("x", 0.10, all.clone().into_iter()).unwrap().holds);
        let verdict = PromiseVerdict::worst("x", 0.05, all.into_iter()).unwrap();
        assert_eq!(verdict.found, "worst -7.0 % (b); 1 of 2 outside");
        assert!(!verdict.holds);
        assert!(PromiseVerdict::worst("x", 0.05, std::iter::empty()).is_none());
    }
}
