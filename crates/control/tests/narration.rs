//! What a controller tells about itself.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "the model is shared with tests that use more of it")]

mod harness;

use harness::{Scenario, World};
use wakeai_control::LawConfig;

/// The narration of station 0 of two that upload for some seconds.
fn narration(law: &str) -> String {
    let scenario = Scenario { seconds: 12.0, warmup: 5.0, ..Scenario::uplink(2, 65.0, 256.0) };
    let law = LawConfig::from_name(law).unwrap();
    let mut lines = Vec::new();
    World::new(&scenario, Some(&law), 1).run(&mut |line| {
        if line.contains("station 0 ") {
            lines.push(line.to_owned());
        }
    });
    lines.join("\n")
}

#[test]
fn shimada_after_says_which_candidate_bound() {
    insta::assert_snapshot!(narration("shimada-after"));
}

#[test]
fn airtime_says_its_phase_share_and_aim() {
    insta::assert_snapshot!(narration("airtime"));
}

#[test]
fn fixed_says_that_it_was_set_by_hand() {
    let text = narration("fixed");
    assert!(text.lines().filter(|line| line.contains("fixed: ")).count() >= 20, "{text}");
    let decided = text.lines().filter(|line| line.contains("fixed: "));
    assert!(decided.into_iter().all(|line| line.ends_with("0..unbounded (set by hand)")));
}
