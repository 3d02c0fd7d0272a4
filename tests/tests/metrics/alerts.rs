//! The alert rules: promtool reads them, fires each once, and fires none in a healthy fleet.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::page::{has, repository};
use wakeai_tests::{stderr, stdout};

fn promtool(arguments: &[&str]) {
    let mut command = Command::new("promtool");
    command.current_dir(repository("packaging/prometheus")).args(arguments);
    let found = command.output().unwrap();
    assert!(found.status.success(), "{}{}", stdout(&found), stderr(&found));
}

#[test]
fn promtool_fires_each_alert_once_and_none_in_a_healthy_fleet() {
    if has("promtool") {
        promtool(&["check", "rules", "alerts.yml"]);
        promtool(&["test", "rules", "alerts_test.yml"]);
    }
}

#[test]
fn the_test_of_the_rules_expects_each_alert() {
    let read = |name: &str| {
        fs::read_to_string(repository(&format!("packaging/prometheus/{name}"))).unwrap()
    };
    let (rules, test) = (read("alerts.yml"), read("alerts_test.yml"));
    let after = |text: &str, key: &str| -> BTreeSet<String> {
        text.lines().filter_map(|line| line.trim().strip_prefix(key)).map(str::to_owned).collect()
    };
    let alerts = after(&rules, "- alert: ");
    assert!(alerts.len() >= 17, "{}", alerts.len());
    // Where an alert is expected, its name stands in a line of its own.
    assert_eq!(after(&test, "- alertname: "), alerts);
    for alert in alerts {
        let quiet = format!("alertname: {alert}, eval_time: 110m, exp_alerts: [] }}");
        assert!(test.contains(&quiet), "{alert} in a healthy fleet");
    }
}
