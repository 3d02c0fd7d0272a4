//! A small sweep as a table. After a change read the difference as a whole. `cargo insta review`
//! accepts a new table.

mod common;

use std::fmt::Write as _;

use common::{UP, report, scenario};
use wakeai_world::Options;

const LAWS: &str = "[[conditions]]\nname = \"default\"\n\
    [[conditions]]\nname = \"shimada-after\"\nlaw = \"shimada-after\"\n\
    [[conditions]]\nname = \"airtime\"\nlaw = \"airtime\"";

#[test]
fn three_laws_over_stations_and_standards() {
    let mut table = String::from(
        "standard  stations  condition      Mbit/s   Jain  RTT p50   p95 ms  errors 1/2/3/4  rtx\n",
    );
    for standard in ["802.11g", "802.11n"] {
        for stations in [1, 4, 10] {
            let scenario = scenario(standard, stations, UP, LAWS);
            for run in report(&scenario, &Options::default()).runs {
                let errors = run.errors.unwrap();
                let errors = [
                    errors.reordering,
                    errors.local_overflow,
                    errors.duplicate_ack,
                    errors.timeout,
                ];
                let errors = errors.map(|count| count.to_string()).join("/");
                let retransmits: u64 = run.flows.iter().map(|flow| flow.retransmits.unwrap()).sum();
                writeln!(
                    table,
                    "{standard:8} {stations:9}  {:13} {:7.3}  {:.3}  {:7.1}  {:7.1}  {errors:>14} {retransmits:4}",
                    run.condition,
                    run.total_goodput_mbps,
                    run.jain.unwrap_or(0.0),
                    run.rtt_ms.p50.unwrap_or(0.0),
                    run.rtt_ms.p95.unwrap_or(0.0),
                )
                .unwrap();
            }
        }
    }
    insta::assert_snapshot!(table);
}
