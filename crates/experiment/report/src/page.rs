//! Renders the page: verdict, tables of conditions and stations, plots, and the policy against foreign content.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use wakeai_results::aggregate::{Aggregate, FIGURES, Spread};
use wakeai_results::result::Run;
use wakeai_results::table;

use crate::curves::{self, Plot};
use crate::source::Source;
use crate::verdict;

const SCRIPT: &str = include_str!("../assets/report.js");
const STYLE: &str = include_str!("../assets/report.css");
const UPLOT: &str = include_str!("../vendor/uplot/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("../vendor/uplot/uPlot.min.css");
const UPLOT_LICENCE: &str = include_str!("../vendor/uplot/LICENSE");

/// Renders these results as one page.
pub fn render(sources: &[Source]) -> String {
    let mut plots = Vec::new();
    let sections: Vec<Markup> = sources.iter().map(|source| section(source, &mut plots)).collect();
    let title = match sources {
        [one] => one.report.scenario.clone(),
        _ => format!("{} results", sources.len()),
    };
    let policy = policy(&[UPLOT, SCRIPT], &[UPLOT_STYLE, STYLE]);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content=(concat!("wakeai ", env!("CARGO_PKG_VERSION")));
                title { (title) " - wakeai report" }
                style { (PreEscaped(UPLOT_STYLE)) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header { h1 { (title) } }
                main { @for section in &sections { (section) } }
                footer {
                    p { "Written by wakeai " (env!("CARGO_PKG_VERSION")) ". The page needs nothing from the network." }
                    details {
                        summary { "Licence of uPlot, which draws the plots" }
                        pre { (UPLOT_LICENCE) }
                    }
                }
                script type="application/json" id="plots" { (PreEscaped(data(&plots))) }
                script { (PreEscaped(UPLOT)) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

/// JSON in which no text can end the HTML element that contains it.
fn data(plots: &impl Serialize) -> String {
    let json = serde_json::to_string(plots).expect("strings, numbers and lists of them");
    let mut escaped = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(escaped, "\\u{:04x}", u32::from(character)); // never fails
            }
            other => escaped.push(other),
        }
    }
    escaped
}

fn section(source: &Source, plots: &mut Vec<Plot>) -> Markup {
    let report = &source.report;
    let late: Vec<&Run> =
        report.runs.iter().filter(|run| run.lateness.is_some_and(|late| !late.faithful)).collect();
    let mut plot = |one: &Plot| {
        plots.push(one.clone());
        figure(one, plots.len() - 1)
    };
    html! {
        section {
            h2 { (report.scenario) " in the " (report.world) }
            p.origin { (source.name) ", seed " (report.seed) ", wakeai " (report.version) }
            @for sentence in verdict::sentences(report) { p.verdict { (sentence) } }
            @if let Some(failed) = &report.failed {
                div.warning role="note" {
                    p {
                        "This result is incomplete: it has " (report.runs.len()) " of " (failed.asked)
                        " runs. The run " (failed.run) " failed: " (failed.reason)
                    }
                }
            }
            @if !late.is_empty() {
                div.warning role="note" {
                    p { "These runs were not faithful, so their figures are not valid. Repeat them on a quieter machine." }
                    ul { @for run in late { li { (unfaithful(run)) } } }
                }
            }
            @if report.runs.iter().any(|run| run.field.is_some()) { (machines(&report.runs)) }
            h3 { "Conditions" }
            (conditions(&Aggregate::of(&report.runs)))
            h3 { "Stations" }
            (stations(&report.runs))
            @if let Some(one) = curves::completions(report) { (plot(&one)) }
            @if let Some(one) = &source.curves.rtt { (plot(one)) }
            @for (condition, of_condition) in &source.curves.over_time {
                h3 { "Over time: " (condition) }
                p.note { "The first repeat, in steps of " (source.curves.step_s) " s." }
                @for one in of_condition { (plot(one)) }
            }
            @if let Some(command) = &source.command {
                h3 { "The same runs again" }
                pre { (command) }
            }
            @if let Some(scenario) = &source.scenario {
                details {
                    summary { "The scenario" }
                    pre { (scenario) }
                }
            }
        }
    }
}

/// What there is to say of runs on real machines: starts, runs that do not count, and what else may explain the figures.
fn machines(runs: &[Run]) -> Markup {
    let lines = table::field_lines(runs);
    html! {
        @if !lines.is_empty() {
            div.warning role="note" {
                p { "Of the machines and their air:" }
                ul { @for line in &lines { li { (line) } } }
            }
        }
    }
}

fn unfaithful(run: &Run) -> String {
    let Some(late) = run.lateness else { return run.condition.clone() };
    format!(
        "{}, repeat {}: packets up to {:.2} ms late, 99 % within {:.2} ms; 99 % of the waits for a processor within {:.2} ms",
        run.condition, run.repeat, late.max_ms, late.p99_ms, late.waits_p99_ms
    )
}

fn conditions(aggregates: &[Aggregate]) -> Markup {
    let has = |name: &str| {
        aggregates.iter().any(|one| one.figures.get(name).is_some_and(Option::is_some))
    };
    let figures: Vec<_> = FIGURES.iter().filter(|figure| has(figure.name)).collect();
    html! {
        div.scroll tabindex="0" role="region" aria-label="conditions" {
            table.sorts {
                caption { "Means over the repeats, ± half of the 95 % confidence interval (Student's t)" }
                thead { tr {
                    th.text scope="col" { "condition" }
                    @for figure in &figures { th scope="col" { (figure.title) } }
                } }
                tbody { @for one in aggregates { tr {
                    th scope="row" { (one.condition) }
                    @for figure in &figures {
                        (number(one.figures.get(figure.name).copied().flatten(), figure.decimals))
                    }
                } } }
            }
        }
    }
}

fn number(found: Option<Spread>, decimals: usize) -> Markup {
    let Some(Spread { interval, .. }) = found else { return html! { td { "-" } } };
    html! {
        td data-value=(interval.mean) {
            (format!("{:.decimals$}", interval.mean + 0.0))
            @if let Some(half) = interval.half { span.half { (format!(" ± {half:.decimals$}")) } }
        }
    }
}

fn stations(runs: &[Run]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="stations" {
            table.sorts {
                caption { "Every station of every run" }
                thead { tr {
                    th.text scope="col" { "condition" } th scope="col" { "repeat" } th.text scope="col" { "station" }
                    th.text scope="col" { "direction" } th scope="col" { "goodput, Mbit/s" } th scope="col" { "alone, Mbit/s" }
                } }
                tbody { @for run in runs { @for one in &run.stations { tr {
                    td { (run.condition) }
                    td data-value=(run.repeat) { (run.repeat) }
                    th scope="row" { (one.station) }
                    td { (one.direction) }
                    td data-value=(one.goodput_mbps) { (format!("{:.3}", one.goodput_mbps)) }
                    @match one.max_mbps {
                        Some(max) => td data-value=(max) { (format!("{max:.2}")) },
                        None => td { "-" },
                    }
                } } } }
            }
        }
    }
}

fn figure(plot: &Plot, index: usize) -> Markup {
    html! {
        figure {
            figcaption { (plot.title) }
            div.plot data-plot=(index) {
                noscript { "The plot needs JavaScript." }
            }
        }
    }
}

/// The Content-Security-Policy (W3C, CSP level 3) that lets these scripts and styles work, each by its hash, and nothing else.
fn policy(scripts: &[&str], styles: &[&str]) -> String {
    let hashes = |blocks: &[&str]| {
        let hash = |block: &&str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(block)));
        blocks.iter().map(hash).collect::<Vec<_>>().join(" ")
    };
    format!(
        "default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'",
        hashes(scripts),
        hashes(styles)
    )
}
