//! The pages of the commands, from the same definitions as `--help`.

use std::fmt::Write as _;

use clap::{Command, CommandFactory as _};
use clap_mangen::Man;

use super::{Page, roff};
use crate::args::Arguments;

/// The commands that read a scenario, and the one that reads the agent's configuration.
const FILES: [(&str, &str); 4] = [
    ("wakeai-sim", "wakeai-scenario"),
    ("wakeai-lab", "wakeai-scenario"),
    ("wakeai-grid", "wakeai-scenario"),
    ("wakeai-agent", "wakeai-agent.toml"),
];

/// A page for each command and subcommand.
pub(super) fn pages() -> Vec<Page> {
    let mut root = Arguments::command().disable_help_subcommand(true);
    root.build();
    let mut pages = Vec::new();
    add(&root, None, &mut pages);
    pages
}

fn name(command: &Command) -> String {
    command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned()
}

fn add(command: &Command, parent: Option<&Command>, pages: &mut Vec<Page>) {
    let children: Vec<&Command> =
        command.get_subcommands().filter(|child| !child.is_hide_set()).collect();
    let mut related: Vec<(String, u8)> = parent.iter().map(|it| (name(it), 1)).collect();
    related.extend(children.iter().map(|child| (name(child), 1)));
    let name = name(command);
    let files = FILES.iter().filter(|(of, _)| *of == name || parent.is_none());
    related.extend(files.map(|(_, file)| ((*file).to_owned(), 5)));
    related.sort_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)));
    related.dedup();
    let text = roff::title(&name, 1) + &body(command) + &roff::see_also(&related);
    pages.push(Page { name, section: 1, text });
    for child in children {
        add(child, Some(command), pages);
    }
}

/// The sections of a page without its title and references.
fn body(command: &Command) -> String {
    let man = Man::new(command.clone());
    let mut text = Vec::new();
    let written = man
        .render_name_section(&mut text)
        .and_then(|()| man.render_synopsis_section(&mut text))
        .and_then(|()| man.render_description_section(&mut text))
        .and_then(|()| man.render_options_section(&mut text))
        .and_then(|()| {
            if command.has_subcommands() {
                man.render_subcommands_section(&mut text)
            } else {
                Ok(())
            }
        });
    written.expect("a Vec takes all bytes");
    let text = String::from_utf8(text).expect("clap's texts are UTF-8");
    let after = command.get_after_long_help().or_else(|| command.get_after_help());
    // Before each part, clap_mangen defines a string for apostrophes. It is removed here, because groff's own name for
    // apostrophes is enough.
    text.replace(".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n", "").replace("\\*(Aq", "\\(aq")
        + &after.map(|words| notes(&words.to_string())).unwrap_or_default()
}

/// The text below the options. It has examples and tables, whose lines `clap_mangen` would join.
fn notes(text: &str) -> String {
    let mut page = String::new();
    let mut in_notes = false;
    for block in text.split("\n\n") {
        let (heading, lines) = match block.split_once('\n') {
            Some((first, rest)) if first.ends_with(':') && rest.starts_with(' ') => (first, rest),
            _ => ("", block),
        };
        match heading {
            "" if !in_notes => page.push_str(".SH NOTES\n"),
            "" => page.push_str(".PP\n"),
            heading => {
                let heading = heading.trim_end_matches(':').to_uppercase();
                let heading = if heading == "EXAMPLE" { "EXAMPLES" } else { &heading };
                let _ = writeln!(page, ".SH {heading}");
            }
        }
        in_notes = heading.is_empty();
        if in_notes {
            page.extend(lines.lines().map(|line| roff::plain(line) + "\n"));
        } else {
            page.push_str(&roff::example(
                lines.lines().map(|it| it.strip_prefix("  ").unwrap_or(it)),
            ));
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(name: &str) -> Page {
        pages().into_iter().find(|page| page.name == name).unwrap()
    }

    #[test]
    fn each_command_has_a_page_with_each_of_its_options() {
        fn check(command: &Command, pages: &[Page]) {
            let name = name(command);
            let page = pages.iter().find(|page| page.name == name).unwrap();
            let shown = command.get_arguments().filter(|option| !option.is_hide_set());
            for option in shown.filter_map(clap::Arg::get_long) {
                let shown = format!("\\-\\-{}", option.replace('-', "\\-"));
                assert!(page.text.contains(&shown), "{name}: {shown}");
            }
            for child in command.get_subcommands().filter(|child| !child.is_hide_set()) {
                check(child, pages);
            }
        }
        let mut root = Arguments::command().disable_help_subcommand(true);
        root.build();
        check(&root, &pages());
    }

    #[test]
    fn examples_and_tables_keep_their_lines() {
        let lab = page("wakeai-lab").text;
        let start = ".SH EXAMPLES\n.PP\n.RS 4\n.nf\nwakeai lab scenarios/quickstart.toml\n";
        assert!(lab.contains(start), "{lab}");
        let wakeai = page("wakeai").text;
        assert!(wakeai.contains("this machine\\(aqs agents"), "{wakeai}");
        assert!(wakeai.contains(".SH EXIT STATUS\n") && wakeai.contains("\n77  a privilege"));
    }
}
