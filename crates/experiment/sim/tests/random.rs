//! Tiny random scenarios run to their end, the same each time, and their figures are possible ones.

mod tiny;

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]
    #[test]
    fn every_tiny_scenario_runs_with_possible_figures(
        bytes in prop::collection::vec(any::<u8>(), 0..120),
        seed in any::<u64>(),
    ) {
        let ran = std::panic::catch_unwind(|| tiny::runs(&bytes, seed));
        let said = ran.err().map(|said| match said.downcast::<String>() {
            Ok(said) => *said,
            Err(said) => (*said.downcast::<&str>().expect("a text")).to_owned(),
        });
        prop_assert!(said.is_none(), "{}\nseed {}\n{}", said.unwrap(), seed, tiny::scenario(&bytes));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, ..ProptestConfig::default() })]
    #[test]
    fn most_of_the_scenarios_are_valid(
        all in prop::collection::vec(prop::collection::vec(any::<u8>(), 60..120), 200),
    ) {
        let read = all.iter().filter(|bytes| wakeai_scenario::Scenario::parse(&tiny::scenario(bytes)).is_ok());
        let valid = read.count();
        prop_assert!(valid > 120, "{} of 200", valid);
    }
}
