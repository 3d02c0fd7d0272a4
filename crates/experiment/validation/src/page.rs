//! Writes the page from the results: the templates contain the words, and the results contain the
//! figures.
//!
//! The template engine is minijinja: its templates are plain text files with the loops and filters
//! of Jinja2, it reads every value that serde serialises, it depends only on serde, and it refuses
//! a name that the results do not have.

use std::path::Path;

use anyhow::Context as _;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use textwrap::WordSplitter;

use crate::sections::{Results, TEMPLATES};
use crate::statistics::{Interval, deviation, percent};

/// The path of the page, from the project's root.
pub const FILE: &str = "docs/reference/validation.md";

/// The largest number of columns in a line of prose.
const COLUMNS: usize = 100;

/// Renders the page.
///
/// # Errors
///
/// A template uses a name that the results do not have.
pub fn render(results: &Results) -> anyhow::Result<String> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    environment.add_filter("fixed", fixed);
    environment.add_filter("percent", percent);
    environment
        .add_filter("against", |found: f64, reference: f64| percent(deviation(found, reference)));
    environment.add_filter("interval", interval);
    environment.add_filter("held", |holds: bool| if holds { "yes" } else { "**no**" });
    // It marks the figures that were not measured here, see `tests/page.rs`.
    environment.add_filter("setup", |text: String| text);
    for &(name, text) in TEMPLATES {
        environment.add_template(name, text).with_context(|| name.to_owned())?;
    }
    Ok(layout(&environment.get_template("page.md")?.render(Serde(results))?))
}

/// Writes the page.
///
/// # Errors
///
/// The page cannot be rendered or written.
pub fn write(root: &Path, results: &Results) -> anyhow::Result<()> {
    let path = root.join(FILE);
    std::fs::write(&path, render(results)?).with_context(|| path.display().to_string())
}

/// A number with `decimals` decimals, or a dash for `None`.
fn fixed(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.decimals$}"))
}

fn interval(Serde(value): Serde<Interval>, decimals: usize) -> String {
    format!("{} ± {}", fixed(Some(value.mean), decimals), fixed(value.half, decimals))
}

/// Puts one blank line between blocks, and wraps paragraphs and points.
fn layout(text: &str) -> String {
    let mut out = String::new();
    for block in text.split("\n\n").map(|block| block.trim_matches('\n')) {
        if block.trim().is_empty() {
            continue;
        }
        if !out.is_empty() {
            out.push('\n');
        }
        if block.starts_with(['|', '#', '!']) || block.starts_with("```") {
            out.push_str(block);
            out.push('\n');
        } else {
            let mut points = block.split("\n- ");
            let first = points.next().unwrap_or_default();
            match first.strip_prefix("- ") {
                Some(first) => wrap(first, "- ", &mut out),
                None => wrap(first, "", &mut out),
            }
            points.for_each(|point| wrap(point, "- ", &mut out));
        }
    }
    out
}

/// Adds `text` after `mark`; further lines are indented by the width of `mark`.
fn wrap(text: &str, mark: &str, out: &mut String) {
    let words: Vec<&str> = text.split_whitespace().collect();
    let indent = " ".repeat(mark.len());
    let options = textwrap::Options::new(COLUMNS).break_words(false);
    let options = options.word_splitter(WordSplitter::NoHyphenation);
    let options = options.initial_indent(mark).subsequent_indent(&indent);
    out.push_str(&textwrap::fill(&words.join(" "), options));
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_and_points_are_wrapped_and_tables_are_not() {
        let (word, row) = ("word ".repeat(30), format!("| {} |", "cell ".repeat(40)));
        let text = layout(&format!("# A\n\n\n{word}\n\n- {word}\n- {word}\n\n{row}\n|---|\n"));
        let long: Vec<&str> = text.lines().filter(|line| line.chars().count() > COLUMNS).collect();
        assert_eq!(long, [row]);
        assert_eq!(text.lines().filter(|line| line.starts_with("- word")).count(), 2);
        assert_eq!(text.lines().filter(|line| line.starts_with("  word")).count(), 2);
        assert!(text.starts_with("# A\n\nword word") && !text.contains("\n\n\n"));
    }
}
