//! The whole page.

use std::collections::BTreeMap;

use crate::context::Context;
use crate::lab::LabData;
use crate::markdown::Page;
use crate::reference::Reference;
use crate::sections::{av, cases, dense, kozu, lab, lte, saturation, single, split, unequal, wlan};
use crate::verdict::{Verdict, summarise};

/// Where it lies, from the project's root.
pub const FILE: &str = "docs/reference/validation.md";

/// What is wanted from the lab: files, each with its conditions; none are all of a file that names
/// none.
pub fn lab_files() -> BTreeMap<String, Vec<String>> {
    let mut files = BTreeMap::<String, Vec<String>>::new();
    let jobs = [lab::lab_jobs(), unequal::lab_jobs(), kozu::lab_jobs(), av::lab_jobs()];
    for job in jobs.into_iter().flatten() {
        files.entry(job.file).or_default().extend(job.condition);
    }
    files
}

/// Runs everything and writes the page; with `only`, that section to standard output.
///
/// # Errors
///
/// Where a run fails or the page cannot be written.
pub fn write(
    context: &Context,
    reference: &Reference,
    lab: &LabData,
    only: Option<&str>,
) -> anyhow::Result<()> {
    let mut body = Page::default();
    let mut verdicts: Vec<Verdict> = Vec::new();
    let wanted = |name: &str| only.is_none_or(|only| only == name);
    if wanted("saturation") {
        verdicts.extend(saturation::write(context, reference, &mut body)?);
    }
    if wanted("single") {
        verdicts.extend(single::write(context, reference, &mut body)?);
    }
    if wanted("cases") {
        verdicts.extend(cases::write(context, reference, &mut body)?);
    }
    if wanted("dense") {
        verdicts.extend(dense::write(context, &mut body)?);
    }
    if wanted("split") {
        verdicts.extend(split::write(context, &mut body)?);
    }
    if wanted("unequal") {
        verdicts.extend(unequal::write(context, lab, &mut body)?);
    }
    if wanted("lte") {
        verdicts.extend(lte::write(context, &mut body)?);
    }
    if wanted("kozu") {
        verdicts.extend(kozu::write(context, lab, &mut body)?);
    }
    if wanted("wlan") {
        verdicts.extend(wlan::write(context, &mut body)?);
    }
    if wanted("av") {
        verdicts.extend(av::write(context, lab, &mut body)?);
    }
    if wanted("lab") {
        verdicts.extend(lab::write(context, lab, &mut body)?);
    }
    let mut page = Page::default();
    head(&mut page, reference, &verdicts);
    let text = format!("{}\n{}", page.finish(), body.finish());
    if only.is_some() {
        print_to_standard_output(&text);
        return Ok(());
    }
    std::fs::write(context.root.join(FILE), text)?;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "asked for by --only")]
fn print_to_standard_output(text: &str) {
    print!("{text}");
}

fn head(page: &mut Page, reference: &Reference, verdicts: &[Verdict]) {
    page.heading(1, "Validation");
    page.paragraph(&format!(
        "Written by `make validation` from runs; never by hand. ns-3 is {}, whose figures `make \
         ns3-reference` made once and keeps in `validation/ns3/reference.json`, each row with its \
         command. The lab's runs are in `validation/lab.json`.",
        reference.ns3
    ));
    page.heading(2, "In short");
    summarise(page, verdicts);
}
