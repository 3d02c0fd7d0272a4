//! The same scenario and the same seed give the same run.

mod common;

use common::{DOWN, UP, report, report_on, scenario};
use wakeai_world::Options;

const CONDITIONS: &str = "size = \"500kB\"\njitter = \"100ms\"\n\
    [[conditions]]\nname = \"default\"\n\
    [[conditions]]\nname = \"airtime\"\nlaw = \"airtime\"\n\
    [[conditions]]\nname = \"far\"\nset = { \"stations.tablet.wired_delay\" = \"50ms\" }";

#[test]
fn a_run_is_repeated_bit_for_bit_whatever_runs_beside_it() {
    for flow in [UP, DOWN] {
        let scenario = scenario("802.11g", 5, flow, CONDITIONS);
        let options = Options { seed: 7, repeat: 3, ..Options::default() };
        let first = report(&scenario, &options);
        assert_eq!(first.runs.len(), 9);
        assert_eq!(report(&scenario, &options), first);
        for jobs in [2, 4, 16] {
            assert_eq!(report_on(jobs, &scenario, &options), first);
        }
    }
}

#[test]
fn another_seed_is_another_run_and_the_seed_of_a_later_repeat() {
    let scenario = scenario("802.11g", 5, UP, "");
    let of = |seed, repeat| report(&scenario, &Options { seed, repeat, ..Default::default() });
    let both = of(1, 2);
    let second = &of(2, 1).runs[0];
    assert_ne!(both.runs[0].flows, second.flows);
    assert_eq!(both.runs[1].flows, second.flows);
}
