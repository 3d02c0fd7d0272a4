//! The manual pages of the files, made from the reference pages. Only the reference pages list the keys, and tests
//! compare them with the program.
//!
//! Of Markdown they have what our reference pages use: headings, paragraphs, lists without numbers, tables and blocks of
//! code; in these code and emphasis. A link becomes its text.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

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

/// The text as requests of roff. A paragraph is one line, which roff fills.
fn body(markdown: &str) -> String {
    let (mut page, mut text, mut row, mut head) = (String::new(), String::new(), vec![], vec![]);
    let (mut is_code, mut is_heading) = (false, false);
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
        match event {
            Event::Text(words) if is_code || is_heading => text.push_str(&words),
            Event::Text(words) => text.push_str(&words.replace('\\', "\\e")),
            Event::Code(code) if is_heading => text.push_str(&code),
            Event::Code(code) => text += &["\\fB", &roff::literal(&code), "\\fR"].concat(),
            Event::SoftBreak => text.push(' '),
            Event::Start(Tag::Strong) => text.push_str("\\fB"),
            Event::Start(Tag::Emphasis) => text.push_str("\\fI"),
            Event::End(TagEnd::Strong | TagEnd::Emphasis) => text.push_str("\\fR"),
            Event::Start(Tag::Heading { .. }) => is_heading = true,
            Event::Start(Tag::CodeBlock(_)) => is_code = true,
            Event::Start(Tag::Paragraph) => page.push_str(".PP\n"),
            Event::Start(Tag::Item) => page.push_str(".IP \\(bu 2\n"),
            Event::End(TagEnd::Paragraph | TagEnd::Item) => page.push_str(&line(&mut text)),
            Event::End(TagEnd::Heading(level)) => {
                is_heading = false;
                page.push_str(&heading(level, &std::mem::take(&mut text)));
            }
            Event::End(TagEnd::CodeBlock) => {
                is_code = false;
                page.push_str(&roff::example(std::mem::take(&mut text).lines()));
            }
            Event::End(TagEnd::TableCell) => row.push(std::mem::take(&mut text)),
            Event::End(TagEnd::TableHead) => head = std::mem::take(&mut row),
            Event::End(TagEnd::TableRow) => {
                page.push_str(&tagged(&head, &std::mem::take(&mut row)));
            }
            _ => {}
        }
    }
    page
}

fn line(text: &mut String) -> String {
    let text = std::mem::take(text);
    if text.is_empty() { text } else { roff::protected(text) + "\n" }
}

fn heading(level: HeadingLevel, words: &str) -> String {
    let words = roff::plain(&words.replace(['[', ']'], ""));
    match level {
        HeadingLevel::H1 | HeadingLevel::H2 => format!(".SH {}\n", words.to_uppercase()),
        _ => format!(".SS {words}\n"),
    }
}

/// A row of a table is a tagged paragraph. Its first cell is the tag. The cell whose column has no heading comes next, and
/// then each other cell with its heading.
fn tagged(head: &[String], row: &[String]) -> String {
    let cells = head.iter().zip(row).skip(1).filter(|(_, cell)| !cell.is_empty());
    let (labelled, described): (Vec<_>, Vec<_>) =
        cells.partition(|(title, _)| !title.is_empty() && head.len() > 2);
    let described = described.into_iter().map(|(_, cell)| roff::protected(cell.clone()));
    let labelled = labelled.into_iter().map(|(title, cell)| format!("\\fI{title}\\fR: {cell}"));
    let parts: Vec<String> = described.chain(labelled).collect();
    format!(".TP\n{}\n{}\n", roff::protected(row[0].clone()), parts.join("\n.br\n"))
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
        let expected = ".SH WIRED\n.PP\nIt \\fIis\\fR \\fBone\\fR.\n.IP \\(bu 2\na b\n.IP \\(bu 2\n2 * 3\n\
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
