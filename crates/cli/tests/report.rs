//! `wakeai report` as a user runs it, and its page in a browser.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "the harness shows it where a test is skipped")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use wakeai_tests::{stderr, stdout, wakeai};

/// Text that would run a script or break the page if it were not shown as text.
const HOSTILE: &str = "</script><img src=x onerror=document.title='owned'>\u{2028}\u{202e}\"'&amp;";

/// Simulates two stations that upload for five seconds under two conditions. Returns the directory
/// of `--out`.
fn result(directory: &Path) -> PathBuf {
    let scenario = directory.join("scenario.toml");
    let text = "# <script>alert(1)</script>\nname = \"small\"\nduration = \"5s\"\n\
        [access_point]\nstandard = \"802.11g\"\n[[stations]]\nname = \"tablet\"\ncount = 2\n\
        [[flows]]\nfrom = \"tablet\"\nto = \"server\"\n\
        [[conditions]]\nname = \"default\"\n[[conditions]]\nname = \"airtime\"\nlaw = \"airtime\"\n";
    fs::write(&scenario, text).unwrap();
    let out = directory.join("out");
    let arguments = ["sim", scenario.to_str().unwrap(), "--repeat", "2", "--out"];
    let output = wakeai(&[&arguments[..], &[out.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    out
}

fn report(result: &Path, page: &Path) -> String {
    let output = wakeai(&["report", result.to_str().unwrap(), "-o", page.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    fs::read_to_string(page).unwrap()
}

/// Replaces the names in the result, and the scenario's text, with hostile text.
fn hostile(out: &Path) {
    let file = out.join("result.json");
    let escaped = serde_json::to_string(HOSTILE).unwrap();
    let text = fs::read_to_string(&file).unwrap();
    for name in ["\"small\"", "\"sim\"", "\"tablet1\"", "\"airtime\"", "\"up\"", "\"0.1.0\""] {
        assert!(text.contains(name), "{name}");
    }
    let text = ["\"small\"", "\"sim\"", "\"tablet1\"", "\"airtime\"", "\"up\"", "\"0.1.0\""]
        .iter()
        .fold(text, |text, name| text.replace(name, &escaped));
    fs::write(&file, text).unwrap();
    fs::write(out.join("scenario.toml"), format!("# {HOSTILE}\n")).unwrap();
}

#[test]
fn a_page_has_the_verdict_the_tables_and_how_to_repeat_it() {
    let directory = tempfile::tempdir().unwrap();
    let out = result(directory.path());
    let page = report(&out, &directory.path().join("report.html"));
    for expected in [
        "With “airtime” instead of “default”: the aggregate goodput is",
        "<th scope=\"row\">tablet2</th>",
        "wakeai sim scenario.toml --seed 1 --repeat 2",
        "Content-Security-Policy",
        "Goodput of each station",
        "Distribution of the round-trip time",
    ] {
        assert!(page.contains(expected), "{expected}");
    }
    // Nothing is loaded from elsewhere.
    for loads in ["src=", "href=", "url(", "@import", "fetch("] {
        assert!(!page.contains(loads), "{loads}");
    }
    // A bare result has no records, so it has no plots over time.
    let page = report(&out.join("result.json"), &directory.path().join("bare.html"));
    assert!(page.contains("airtime") && !page.contains("Goodput of each station"));
}

#[test]
fn hostile_text_is_escaped_everywhere() {
    let directory = tempfile::tempdir().unwrap();
    let out = result(directory.path());
    hostile(&out);
    let page = report(&out, &directory.path().join("report.html"));
    assert!(!page.contains("<img"));
    // There are no scripts but the page's own three, and each ends once.
    assert_eq!(page.matches("<script").count(), 3);
    assert_eq!(page.matches("</script>").count(), 3);
}

#[test]
fn only_an_earlier_report_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let out = result(directory.path());
    let page = directory.path().join("report.html");
    report(&out, &page);
    report(&out, &page);
    let (out, own) = (out.to_str().unwrap(), directory.path().join("notes.html"));
    fs::write(&own, "mine").unwrap();
    let own = own.to_str().unwrap();
    let refused = wakeai(&["report", out, "-o", own]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("is no report"), "{}", stderr(&refused));
    assert_eq!(fs::read_to_string(own).unwrap(), "mine");
    assert!(wakeai(&["report", out, "-o", own, "--force"]).status.success());
    assert!(stdout(&wakeai(&["report", out, "-o", "-"])).starts_with("<!DOCTYPE html>"));
    let none = wakeai(&["report", "/nowhere"]);
    assert_eq!(none.status.code(), Some(2));
    let full = wakeai(&["report", out, "-o", "/proc/report.html"]);
    assert_eq!(full.status.code(), Some(1), "{}", stderr(&full));
}

/// The page as Chromium shows it after its scripts have run, and what it wrote on its console.
fn browse(page: &Path) -> (String, String) {
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--dump-dom",
            "--window-size=390,900",
        ])
        .args(["--enable-logging=stderr", "--virtual-time-budget=5000"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    (stdout(&output), stderr(&output))
}

#[test]
#[ignore = "needs chromium: make test-release"]
fn a_browser_draws_the_plots_and_shows_hostile_text_as_text() {
    if Command::new("chromium").arg("--version").output().is_err() {
        let required = std::env::var_os("WAKEAI_REQUIRE_KERNEL").is_some_and(|value| value == "1");
        assert!(!required, "WAKEAI_REQUIRE_KERNEL=1, but there is no chromium");
        return println!("SKIPPED: there is no chromium");
    }
    let directory = tempfile::tempdir().unwrap();
    let out = result(directory.path());
    hostile(&out);
    let page = directory.path().join("report.html");
    let text = report(&out, &page);
    let (shown, said) = browse(&page);
    let plots = text.matches("data-plot=\"").count();
    // The records still have the name `airtime`, so only `default` has its distribution of the RTT
    // and its three plots over time.
    assert_eq!(plots, 4);
    assert_eq!(shown.matches("<canvas").count(), plots);
    assert!(shown.contains("aria-sort=\"none\""), "the tables can be sorted");
    assert!(!shown.contains("<img") && !shown.contains("<title>owned"), "hostile text did harm");
    let console: Vec<&str> = said.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(console.is_empty(), "{console:?}");
}
