//! Tests of the scenarios that are shipped with the project.

use std::path::PathBuf;

use wakeai_control::{LawConfig, LawName};
use wakeai_scenario::{ResolvedCondition, Scenario, solo_plan};
use wakeai_units::{Duration, Rate, Segments};

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../scenarios")
}

fn load(name: &str) -> Scenario {
    Scenario::load(&directory().join(name)).unwrap_or_else(|error| panic!("{error}"))
}

fn files() -> Vec<PathBuf> {
    let both = [directory(), directory().join("lab")];
    let entries =
        both.iter().flat_map(|directory| std::fs::read_dir(directory).into_iter().flatten());
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("the directory can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    files
}

#[test]
fn every_shipped_file_is_accepted_and_named_after_its_file() {
    assert!(files().len() >= 5);
    for path in files() {
        let scenario = Scenario::load(&path).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(Some(scenario.name.as_str()), path.file_stem().and_then(|stem| stem.to_str()));
    }
}

#[test]
fn every_shipped_file_reads_back_from_its_own_toml() {
    for path in files() {
        let scenario = Scenario::load(&path).unwrap();
        let again = Scenario::parse(&scenario.to_toml()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(*again, *scenario, "{}", path.display());
    }
}

#[test]
fn the_quickstart_has_six_uploads_at_100_ms_under_three_conditions() {
    let scenario = load("quickstart.toml");
    let expanded = scenario.expand(1);
    assert_eq!(expanded.stations.len(), 6);
    assert_eq!(expanded.stations[5].name, "tablet6");
    assert_eq!(expanded.flows.len(), 6);
    let group = &scenario.stations[0];
    assert_eq!(group.radio.unwrap().rate, Rate::from_mbps(65));
    assert_eq!((group.wired_delay + scenario.wired.delay) * 2, Duration::from_millis(100));
    let conditions = scenario.conditions();
    let laws: Vec<_> = conditions.iter().map(ResolvedCondition::law).collect();
    assert_eq!(laws, [None, Some(LawName::ShimadaAfter), Some(LawName::Airtime)]);
    assert_eq!(conditions[1].agents(), [true; 6]);
}

#[test]
fn the_quickstart_and_its_one_solo_run_last_less_than_two_minutes() {
    let conditions = load("quickstart.toml").conditions();
    let mut solo = std::collections::BTreeMap::new();
    for run in conditions.iter().flat_map(solo_plan) {
        assert_eq!(run.applies_to.len(), 6);
        solo.insert(run.key(), run.condition.experiment.duration);
    }
    assert_eq!(solo.len(), 1);
    let runs = conditions.iter().map(|condition| condition.experiment.duration);
    let total: Duration = runs.chain(solo.into_values()).sum();
    assert!(total <= Duration::from_secs(120), "{total}");
}

#[test]
fn matsunos_ceilings_bind_the_two_stations_that_the_paper_capped() {
    for (file, group, ceilings) in [
        ("matsuno-slow-capped.toml", 2..4, vec![10, 50, 100]),
        ("matsuno-fast-capped.toml", 0..2, vec![100, 500, 1000, 1500]),
    ] {
        let fixed: Vec<_> = load(file)
            .conditions()
            .into_iter()
            .filter(|condition| condition.law() == Some(LawName::Fixed))
            .collect();
        assert_eq!(fixed.len(), ceilings.len());
        for (condition, ceiling) in fixed.iter().zip(ceilings) {
            for (station, law) in condition.laws().into_iter().enumerate() {
                let bounds = LawConfig::by_hand(Segments::ZERO, Segments::new(ceiling));
                let expected = group.contains(&station).then_some(bounds);
                assert_eq!(law, expected, "{file} {} {station}", condition.name());
                assert_eq!(condition.agents()[station], group.contains(&station));
            }
        }
    }
}
