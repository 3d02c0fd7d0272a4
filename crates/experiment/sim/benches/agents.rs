//! The time that agents add to a simulation: a hundred idle or sending stations for 5 s and a thousand
//! sending ones for 20 s, with the law `airtime` and without agents. Most of the agents' time is the run's
//! beginning, in which they find each other (156 s of virtual time for a hundred).

#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use wakeai_scenario::Scenario;
use wakeai_sim::{Job, simulate};
use wakeai_units::Duration;

/// Stations of which some send.
#[derive(Clone, Copy)]
struct Crowd {
    stations: u32,
    sending: u32,
    seconds: u64,
}

fn scenario(crowd: Crowd, condition: &str) -> Scenario {
    let Crowd { stations, sending, seconds } = crowd;
    let idle = stations - sending;
    let text = format!(
        "name = \"agents\"\nduration = \"{seconds}s\"\n[access_point]\nstandard = \"802.11n\"\n\
         [[stations]]\nname = \"tablet\"\ncount = {sending}\nmax = \"50Mbit/s\"\n\
         [[stations]]\nname = \"idle\"\ncount = {idle}\nmax = \"50Mbit/s\"\n\
         [[flows]]\nfrom = \"tablet\"\nto = \"server\"\n[[conditions]]\nname = \"it\"\n{condition}"
    );
    Scenario::parse(&text).expect("a valid scenario")
}

fn agents(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("agents");
    group.sample_size(10);
    let crowds = [(100, 1, 5), (100, 99, 5), (1_000, 999, 20)];
    for (stations, sending, seconds) in crowds {
        let crowd = Crowd { stations, sending, seconds };
        group.throughput(Throughput::Elements(seconds));
        for (name, condition) in [("none", ""), ("airtime", "law = \"airtime\"")] {
            let conditions = scenario(crowd, condition).conditions();
            let id = BenchmarkId::new(name, format!("{sending}_of_{stations}_send"));
            group.bench_function(id, |bencher| {
                bencher.iter(|| {
                    let (condition, facts) = (&conditions[0], &[][..]);
                    let progress = Duration::ZERO;
                    let job = Job { condition, seed: 1, facts, sink: None, progress };
                    simulate(&job, ()).expect("it runs")
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, agents);
criterion_main!(benches);
