//! The order of a command's runs, and the solo runs whose results each condition needs.

use std::collections::BTreeMap;

use wakeai_scenario::{ResolvedCondition, SoloRun, repeat_seed, solo_plan};

/// One run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A solo run: an index into [`Steps::solos`].
    Solo(usize),
    /// A repeat of a condition.
    Condition {
        /// The index of the condition.
        condition: usize,
        /// The number of the repeat, from 0.
        repeat: u32,
        /// The seed of this repeat.
        seed: u64,
        /// The solo runs whose results the condition needs: for each of its entries in
        /// [`Steps::alone`], an index into [`Steps::solos`].
        needs: Vec<usize>,
    },
}

/// A run of one station alone.
#[derive(Debug)]
pub(crate) struct Solo {
    pub(crate) condition: ResolvedCondition,
    pub(crate) seed: u64,
}

/// All runs.
#[derive(Debug)]
pub(crate) struct Steps {
    /// The runs in order; a solo run comes before the first condition that needs it.
    pub(crate) order: Vec<Step>,
    pub(crate) solos: Vec<Solo>,
    /// For each condition its solo runs, with the stations to which each result applies.
    pub(crate) alone: Vec<Vec<SoloRun>>,
}

impl Steps {
    /// Orders the runs by condition and then by repeat. The first repeat has the seed `seed`. Solo
    /// runs with the same scenario and the same seed are made only once.
    pub(crate) fn new(conditions: &[ResolvedCondition], seed: u64, repeats: u32) -> Self {
        let alone: Vec<Vec<SoloRun>> = conditions.iter().map(solo_plan).collect();
        let mut steps = Self { order: Vec::new(), solos: Vec::new(), alone: Vec::new() };
        let mut known = BTreeMap::<(String, u64), usize>::new();
        for (condition, runs) in alone.iter().enumerate() {
            let texts: Vec<String> = runs.iter().map(|run| run.scenario.to_toml()).collect();
            for repeat in 0..repeats {
                let seed = repeat_seed(seed, repeat);
                let mut needs = Vec::new();
                for (run, text) in runs.iter().zip(&texts) {
                    let solo = known.entry((text.clone(), seed));
                    needs.push(*solo.or_insert_with(|| steps.add_solo(run, seed)));
                }
                steps.order.push(Step::Condition { condition, repeat, seed, needs });
            }
        }
        steps.alone = alone;
        steps
    }

    fn add_solo(&mut self, run: &SoloRun, seed: u64) -> usize {
        let condition = run.scenario.conditions().swap_remove(0);
        self.order.push(Step::Solo(self.solos.len()));
        self.solos.push(Solo { condition, seed });
        self.solos.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use wakeai_scenario::Scenario;

    use super::*;

    fn scenario() -> Scenario {
        let text = "name = \"x\"\nduration = \"5s\"\n[access_point]\nstandard = \"802.11g\"\n\
                    [[stations]]\nname = \"a\"\n[[stations]]\nname = \"b\"\nmax = \"9Mbit/s\"\n\
                    [[stations]]\nname = \"c\"\nrate = \"6Mbit/s\"\n\
                    [[flows]]\nfrom = \"a\"\nto = \"server\"\n[[flows]]\nfrom = \"b\"\nto = \"server\"\n\
                    [[flows]]\nfrom = \"c\"\nto = \"server\"\n\
                    [[conditions]]\nname = \"one\"\n\
                    [[conditions]]\nname = \"two\"\nset = { \"stations.c.rate\" = \"9Mbit/s\" }\n";
        Scenario::parse(text).unwrap()
    }

    #[test]
    fn a_solo_run_is_made_once_and_before_the_conditions_that_need_it() {
        let steps = Steps::new(&scenario().conditions(), 7, 2);
        let condition = |condition, repeat, needs: [usize; 2]| Step::Condition {
            condition,
            repeat,
            seed: 7 + u64::from(repeat),
            needs: needs.to_vec(),
        };
        let expected = [
            Step::Solo(0),
            Step::Solo(1),
            condition(0, 0, [0, 1]),
            Step::Solo(2),
            Step::Solo(3),
            condition(0, 1, [2, 3]),
            Step::Solo(4), // c alone at its other rate; the solo run of a is not repeated
            condition(1, 0, [0, 4]),
            Step::Solo(5),
            condition(1, 1, [2, 5]),
        ];
        assert_eq!(steps.order, expected);
        assert_eq!(
            steps.solos.iter().map(|solo| solo.seed).collect::<Vec<_>>(),
            [7, 7, 8, 8, 7, 8]
        );
    }
}
