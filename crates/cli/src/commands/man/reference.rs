//! The manual pages of the files, made from the reference pages. Only the reference pages list the keys, and tests
//! compare them with the program.
//!
//! This module reads only the Markdown that our reference pages use: headings, paragraphs, lists, tables and blocks of
//! code. Within these it reads code, links and emphasis.

use std::fmt::Write as _;

use super::{Page, roff};

const AGENT: &str = include_str!("../../../../../docs/reference/agent.md");
const SCENARIO: &str = include_str!("../../../../../docs/reference/scenario.md");

/// `wakeai-agent.toml(5)` and `wakeai-scenario(5)`.
pub(super) fn pages() -> Vec<Page> {
    let see = |pages: &[&str]| pages.iter().map(|page| ((*page).to_owned(), 1)).collect::<Vec<_>>();
    vec![
        page(
            "wakeai-agent.toml",
            "the configuration of the Wakeai agent",
            &section(AGENT, "## Configuration\n"),
            &see(&["wakeai-agent", "wakeai-reserve", "wakeai-status"]),
        ),
        page(
            "wakeai-scenario",
            "an experiment for wakeai sim and wakeai lab",
            SCENARIO.split_once('\n').map_or(SCENARIO, |(_, text)| text),
            &see(&["wakeai-grid", "wakeai-lab", "wakeai-sim"]),
        ),
    ]
}

fn page(name: &str, about: &str, markdown: &str, see: &[(String, u8)]) -> Page {
    let text = format!(
        "{}.SH NAME\n{} \\- {about}\n.SH DESCRIPTION\n{}{}",
        roff::title(name, 5),
        name.replace('-', "\\-"),
        body(markdown),
        roff::see_also(see),
    );
    Page { name: name.to_owned(), section: 5, text }
}

/// The text below a heading, up to the next heading of the same level. Its subheadings become headings.
fn section(page: &str, heading: &str) -> String {
    let (_, rest) = page.split_once(heading).expect("the reference page has this section");
    let text = rest.split("\n## ").next().unwrap_or(rest);
    text.replace("\n### ", "\n## ")
}

/// The kind of block to which the previous lines belong.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    None,
    Paragraph,
    Item,
}

fn body(markdown: &str) -> String {
    let mut page = String::new();
    let mut block = Block::None;
    let mut lines = markdown.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            let code: Vec<&str> =
                lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
            page.push_str(&roff::example(code));
            block = Block::None;
        } else if line.starts_with('|') {
            let mut rows = vec![cells(line)];
            while let Some(row) = lines.next_if(|line| line.starts_with('|')) {
                rows.push(cells(row));
            }
            page.push_str(&table(&rows));
            block = Block::None;
        } else if let Some((request, words)) = heading(line) {
            let words = words.replace(['`', '[', ']'], "");
            let words = if request == "SH" { words.to_uppercase() } else { words };
            let _ = writeln!(page, ".{request} {}", roff::plain(&words));
            block = Block::None;
        } else if let Some(item) = line.strip_prefix("- ") {
            let _ = write!(page, ".IP \\(bu 2\n{}\n", inline(item));
            block = Block::Item;
        } else if line.trim().is_empty() {
            block = Block::None;
        } else {
            if block == Block::None {
                page.push_str(".PP\n");
                block = Block::Paragraph;
            }
            // Emphasis or a link in a paragraph may continue on the next line.
            let mut text = line.trim().to_owned();
            while let Some(next) = lines.next_if(|next| goes_on(next)) {
                text = text + " " + next.trim();
            }
            let _ = writeln!(page, "{}", inline(&text));
        }
    }
    page
}

/// Whether a line belongs to the paragraph before it.
fn goes_on(line: &str) -> bool {
    !line.trim().is_empty() && !["- ", "|", "#", "```"].iter().any(|start| line.starts_with(start))
}

fn heading(line: &str) -> Option<(&'static str, &str)> {
    let ranks = [("## ", "SH"), ("### ", "SS")];
    ranks.iter().find_map(|(mark, request)| Some((*request, line.strip_prefix(mark)?)))
}

fn cells(row: &str) -> Vec<String> {
    let row = row.trim().trim_start_matches('|');
    let row = row.strip_suffix('|').unwrap_or(row);
    row.split('|').map(|cell| cell.trim().to_owned()).collect()
}

/// Each row becomes a tagged paragraph. Its first cell is the tag. The cell whose column has no heading comes next, and
/// then each other cell with its heading.
fn table(rows: &[Vec<String>]) -> String {
    let mut text = String::new();
    let (head, rows) = rows.split_first().expect("a table has a first row");
    for row in rows.iter().skip(1) {
        let (tag, rest) = row.split_first().expect("a row has a cell");
        let _ = write!(text, ".TP\n{}\n", inline(tag));
        let told = || head.iter().skip(1).zip(rest).filter(|(_, cell)| !cell.is_empty());
        let two = head.len() == 2;
        let described = told().filter(|(title, _)| title.is_empty() || two);
        let labelled = told().filter(|(title, _)| !title.is_empty() && !two);
        let mut parts: Vec<String> = described.map(|(_, cell)| inline(cell)).collect();
        parts.extend(labelled.map(|(title, cell)| format!("\\fI{title}\\fR: {}", inline(cell))));
        text.push_str(&parts.join("\n.br\n"));
        text.push('\n');
    }
    text
}

/// Code becomes bold, and emphasis becomes italic or bold. A link becomes its text.
fn inline(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['`', '[', '*']) {
        let (before, marked) = rest.split_at(at);
        out.push_str(&escaped(before, out.is_empty()));
        let span = ["`", "**", "*"].iter().find_map(|mark| {
            let (inner, after) = marked.strip_prefix(mark)?.split_once(mark)?;
            let is_span = !inner.is_empty() && (*mark == "`" || !inner.starts_with(' '));
            is_span.then_some((*mark, inner, after))
        });
        rest = if let Some((mark, inner, after)) = span {
            let font = if mark == "*" { 'I' } else { 'B' };
            let inner = if mark == "`" { roff::literal(inner) } else { inline(inner) };
            let _ = write!(out, "\\f{font}{inner}\\fR");
            after
        } else if let Some((words, after)) = link(marked) {
            out.push_str(&inline(words));
            after
        } else {
            let (mark, after) = marked.split_at(1);
            out.push_str(mark);
            after
        };
    }
    out + &escaped(rest, out_is_empty(text, rest))
}

/// Whether `rest`, the end of `text`, is the whole text.
fn out_is_empty(text: &str, rest: &str) -> bool {
    text.len() == rest.len()
}

/// Escapes text. Only at the start of a line could text be taken for a request of roff.
fn escaped(text: &str, starts: bool) -> String {
    if starts { roff::plain(text) } else { text.replace('\\', "\\e") }
}

/// The text of a link, and the text after the link.
fn link(text: &str) -> Option<(&str, &str)> {
    let (words, rest) = text.strip_prefix('[')?.split_once("](")?;
    let (_, after) = rest.split_once(')')?;
    (!words.contains('[')).then_some((words, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_of_a_table_is_a_tagged_paragraph() {
        let markdown =
            "| key | default | |\n|---|---|---|\n| `max-rate` | `\"1s\"` | the [most](x.md) |\n";
        let expected = ".TP\n\\fBmax\\-rate\\fR\nthe most\n.br\n\\fIdefault\\fR: \\fB\"1s\"\\fR\n";
        assert_eq!(body(markdown), expected);
    }

    #[test]
    fn headings_lists_code_and_stress_are_told_apart() {
        let markdown =
            "## `[wired]`\n\nIt *is*\n**one**.\n\n- a\n  b\n- 2 * 3\n\n```sh\n.x -y\n```\n";
        let expected = ".SH WIRED\n.PP\nIt \\fIis\\fR \\fBone\\fR.\n.IP \\(bu 2\na\nb\n.IP \\(bu 2\n2 * 3\n\
                        .PP\n.RS 4\n.nf\n\\&.x \\-y\n.fi\n.RE\n";
        assert_eq!(body(markdown), expected);
    }

    /// The keys in the first cells of the reference page's tables.
    fn keys(markdown: &str) -> Vec<&str> {
        let first =
            markdown.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
        first.flat_map(|cell| cell.trim_end_matches('`').split("`, `")).collect()
    }

    #[test]
    fn the_pages_have_every_key_of_the_reference() {
        for (page, markdown, least) in pages()
            .iter()
            .zip([section(AGENT, "## Configuration\n"), SCENARIO.to_owned()])
            .zip([20, 80])
            .map(|((a, b), c)| (a, b, c))
        {
            let keys = keys(&markdown);
            assert!(keys.len() >= least, "{keys:?}");
            for key in keys {
                let shown = format!("\\fB{}\\fR", roff::literal(key));
                assert!(page.text.contains(&shown), "{}: {key}", page.name);
            }
        }
    }
}
