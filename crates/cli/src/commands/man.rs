//! `wakeai man`.

mod command;
mod reference;
mod roff;

use std::fs;
use std::path::Path;

use anyhow::{Context as _, anyhow};

use crate::args::ManArguments;
use crate::failure::Failure;
use crate::output;

/// A manual page.
#[derive(Debug)]
struct Page {
    /// Its name, such as `wakeai-lab`.
    name: String,
    /// Its section: 1 for commands, 5 for files.
    section: u8,
    text: String,
}

pub(crate) fn run(arguments: &ManArguments) -> Result<(), Failure> {
    let pages = pages();
    if let Some(directory) = &arguments.all {
        return write_all(&pages, directory).map_err(Failure::failed);
    }
    if arguments.list {
        let lines = pages.iter().map(|page| format!("{}({})\n", page.name, page.section));
        return output::write(&lines.collect::<String>()).map(|_| ());
    }
    let wanted = arguments.page.as_ref().map_or("wakeai".to_owned(), |it| format!("wakeai-{it}"));
    let Some(page) = pages.iter().find(|page| page.name == wanted) else {
        let found = arguments.page.as_deref().unwrap_or_default();
        return Err(Failure::usage(anyhow!(
            "there is no page {found:?}: `wakeai man --list` lists all"
        )));
    };
    output::write(&page.text).map(|_| ())
}

/// All pages: those of the commands, then those of the files.
fn pages() -> Vec<Page> {
    let mut pages = command::pages();
    pages.extend(reference::pages());
    pages
}

fn write_all(pages: &[Page], directory: &Path) -> anyhow::Result<()> {
    for page in pages {
        let below = directory.join(format!("man{}", page.section));
        fs::create_dir_all(&below).with_context(|| format!("cannot make {}", below.display()))?;
        let path = below.join(format!("{}.{}", page.name, page.section));
        fs::write(&path, &page.text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_one_page_s_and_every_reference_leads_to_a_page() {
        let pages = pages();
        let names: Vec<String> =
            pages.iter().map(|page| format!("{}({})", page.name, page.section)).collect();
        let mut sorted = names.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), names.len());
        for page in &pages {
            let (_, see_also) = page.text.split_once(".SH SEE ALSO\n").unwrap();
            let references = see_also.lines().filter_map(|line| line.strip_prefix(".BR "));
            for reference in references {
                let name = reference.trim_end_matches(',').trim().replace([' ', '\\'], "");
                assert!(names.contains(&name), "{}: {name}", page.name);
            }
        }
    }

    #[test]
    fn no_page_has_markdown_or_a_line_that_roff_takes_for_a_request() {
        for page in pages() {
            for markup in ["](", "```", "**", "\\*(Aq"] {
                assert!(!page.text.contains(markup), "{}: {markup}", page.name);
            }
            for line in page.text.lines() {
                assert!(!line.starts_with('|'), "{}: {line}", page.name);
                let Some(request) = line.strip_prefix('.') else { continue };
                let request = request.split(' ').next().unwrap();
                let ours = ["TH", "SH", "SS", "PP", "TP", "IP", "RS", "RE", "nf", "fi", "br", "BR"];
                assert!(ours.contains(&request), "{}: {line}", page.name);
            }
        }
    }
}
