//! The order of a command's runs, and the solo runs whose results each condition needs.

use std::collections::{BTreeMap, BTreeSet};

use wakeai_scenario::{ResolvedCondition, SoloRun, repeat_seed, solo_plan};

use crate::asked::Asked;

/// The name of a solo run in messages.
pub(crate) const ALONE: &str = "one station alone";

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
    /// The goodput in Mbit/s, if an earlier command has measured it. The run is not in the order then.
    pub(crate) known: Option<f64>,
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
    /// runs with the same key and the same seed are made only once, and those in `given` not at
    /// all.
    pub(crate) fn new(
        conditions: &[ResolvedCondition],
        seed: u64,
        repeats: u32,
        given: &KnownSolos,
    ) -> Self {
        let alone: Vec<Vec<SoloRun>> = conditions.iter().map(solo_plan).collect();
        let mut steps = Self { order: Vec::new(), solos: Vec::new(), alone: Vec::new() };
        let mut known = BTreeMap::<SoloKey, usize>::new();
        for (condition, runs) in alone.iter().enumerate() {
            let keys: Vec<String> = runs.iter().map(SoloRun::key).collect();
            for repeat in 0..repeats {
                let seed = repeat_seed(seed, repeat);
                let mut needs = Vec::new();
                for (run, key) in runs.iter().zip(&keys) {
                    let key = SoloKey { run: key.clone(), seed };
                    let mbps = given.get(&key).copied();
                    needs
                        .push(*known.entry(key).or_insert_with(|| steps.add_solo(run, seed, mbps)));
                }
                steps.order.push(Step::Condition { condition, repeat, seed, needs });
            }
        }
        steps.alone = alone;
        steps
    }

    /// The name of a run in messages.
    pub(crate) fn name(&self, number: usize, asked: &Asked<'_>) -> String {
        match &self.order[number] {
            Step::Solo(_) => ALONE.to_owned(),
            Step::Condition { condition, repeat, .. } => {
                format!("{} {}", asked.conditions[*condition].name(), repeat + 1)
            }
        }
    }

    fn add_solo(&mut self, run: &SoloRun, seed: u64, known: Option<f64>) -> usize {
        if known.is_none() {
            self.order.push(Step::Solo(self.solos.len()));
        }
        self.solos.push(Solo { condition: run.condition.clone(), seed, known });
        self.solos.len() - 1
    }
}

/// A solo run: what decides its result.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SoloKey {
    /// The run of one station alone (`SoloRun::key`).
    pub run: String,
    /// The seed.
    pub seed: u64,
}

/// Solo goodputs in Mbit/s.
pub type KnownSolos = BTreeMap<SoloKey, f64>;

impl Asked<'_> {
    /// The solo runs that these runs need, each once.
    pub fn solos(&self) -> BTreeSet<SoloKey> {
        let keys = self.conditions.iter().flat_map(solo_plan).map(|run| run.key());
        let with_seeds = keys.flat_map(|run| {
            (0..self.repeat).map(move |repeat| SoloKey {
                run: run.clone(),
                seed: repeat_seed(self.seed, repeat),
            })
        });
        with_seeds.collect()
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
        let steps = Steps::new(&scenario().conditions(), 7, 2, &KnownSolos::new());
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

    #[test]
    fn a_known_solo_run_is_not_made_and_its_goodput_is_used() {
        let conditions = scenario().conditions();
        let all = Steps::new(&conditions, 7, 1, &KnownSolos::new());
        let run = all.alone[0][0].key();
        let known = KnownSolos::from([(SoloKey { run, seed: 7 }, 12.5)]);
        let steps = Steps::new(&conditions, 7, 1, &known);
        assert!(!steps.order.contains(&Step::Solo(0)), "{:?}", steps.order);
        assert_eq!(steps.order.len(), all.order.len() - 1);
        assert_eq!(steps.solos[0].known, Some(12.5));
    }
}
