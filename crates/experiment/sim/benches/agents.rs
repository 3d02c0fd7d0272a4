//! The time that agents add to a simulation: a hundred idle or sending stations for 5 s, with the law
//! `airtime` and without agents. Most of the agents' time is the run's beginning, in which they find
//! each other (156 s of virtual time).

#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use wakeai_scenario::Scenario;
use wakeai_sim::{Job, simulate};
use wakeai_units::Duration;

fn scenario(sending: u32, condition: &str) -> Scenario {
    let idle = 100 - sending;
    let text = format!(
        "name = \"agents\"\nduration = \"5s\"\n[access_point]\nstandard = \"802.11n\"\n\
         [[stations]]\nname = \"tablet\"\ncount = {sending}\nmax = \"50Mbit/s\"\n\
         [[stations]]\nname = \"idle\"\ncount = {idle}\nmax = \"50Mbit/s\"\n\
         [[flows]]\nfrom = \"tablet\"\nto = \"server\"\n[[conditions]]\nname = \"it\"\n{condition}"
    );
    Scenario::parse(&text).expect("a valid scenario")
}

fn agents(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("agents");
    group.sample_size(10);
    for sending in [1, 99] {
        for (name, condition) in [("none", ""), ("airtime", "law = \"airtime\"")] {
            let conditions = scenario(sending, condition).conditions();
            group.bench_function(BenchmarkId::new(name, sending), |bencher| {
                bencher.iter(|| {
                    let (condition, facts) = (&conditions[0], &[][..]);
                    let progress = Duration::ZERO;
                    let job = Job { condition, seed: 1, facts, sink: None, progress };
                    simulate(&job, (), &mut |_| {}).expect("it runs")
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, agents);
criterion_main!(benches);
