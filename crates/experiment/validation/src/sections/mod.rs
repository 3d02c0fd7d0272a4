//! The sections of the page. Each one makes its runs, and returns their figures and a verdict on
//! each promise. Its words are in its template in `templates/`.

pub mod av;
pub mod cases;
pub mod dense;
pub mod kozu;
pub mod lab;
pub mod lte;
pub mod saturation;
pub mod single;
pub mod split;
pub mod turns;
pub mod unequal;
pub mod wlan;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::lab::LabData;
use crate::reference::Reference;
use crate::svg::Picture;
use crate::verdict::Verdict;

/// The result of a section, from which its template is rendered.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Judged<F> {
    /// Each promise, and whether it is held.
    pub verdicts: Vec<Verdict>,
    /// The section's figures.
    #[serde(flatten)]
    pub figures: F,
}

/// The sections in the order of the page: each has a module, a template and its results.
macro_rules! sections {
    ($($name:ident),*) => {
        /// The names of the sections, for `--only`.
        pub const NAMES: &[&str] = &[$(stringify!($name)),*];

        /// The templates of the page and of its sections: names and texts.
        pub const TEMPLATES: &[(&str, &str)] = &[
            ("page.md", include_str!("../../templates/page.md")),
            $((
                concat!(stringify!($name), ".md"),
                include_str!(concat!("../../templates/", stringify!($name), ".md")),
            )),*
        ];

        /// The figures of all sections that were run.
        #[derive(Clone, Debug, Serialize, Deserialize)]
        pub struct Results {
            /// The number of seeds of each comparison.
            seeds: u32,
            /// The version of ns-3.
            ns3: String,
            /// The kernel on which the lab's runs were made; `None` without runs.
            lab_kernel: Option<String>,
            $($name: Option<Judged<$name::Figures>>),*
        }
    };
}

sections!(saturation, single, cases, dense, split, turns, unequal, lte, kozu, wlan, av, lab);

/// Makes the runs of the section `name`, unless `only` names another section.
fn unless_left_out<F>(
    only: Option<&str>,
    name: &str,
    run: impl FnOnce() -> anyhow::Result<Judged<F>>,
) -> anyhow::Result<Option<Judged<F>>> {
    only.is_none_or(|only| only == name).then(run).transpose()
}

impl Results {
    /// Makes the runs of all sections, or of the section `only`.
    ///
    /// # Errors
    ///
    /// A run fails.
    pub fn run(
        context: &Context,
        reference: &Reference,
        measured: &LabData,
        only: Option<&str>,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            seeds: context.seeds,
            ns3: reference.ns3.clone(),
            lab_kernel: (!measured.reports.is_empty()).then(|| measured.kernel.clone()),
            saturation: unless_left_out(only, "saturation", || {
                saturation::run(context, reference)
            })?,
            single: unless_left_out(only, "single", || single::run(context, reference))?,
            cases: unless_left_out(only, "cases", || cases::run(context, reference))?,
            dense: unless_left_out(only, "dense", || dense::run(context))?,
            split: unless_left_out(only, "split", || split::run(context))?,
            turns: unless_left_out(only, "turns", || turns::run(context, measured))?,
            unequal: unless_left_out(only, "unequal", || unequal::run(context, measured))?,
            lte: unless_left_out(only, "lte", || lte::run(context))?,
            kozu: unless_left_out(only, "kozu", || kozu::run(context, measured))?,
            wlan: unless_left_out(only, "wlan", || wlan::run(context))?,
            av: unless_left_out(only, "av", || av::run(context, measured))?,
            lab: unless_left_out(only, "lab", || lab::run(context, measured))?,
        })
    }

    /// The pictures of the sections that were run.
    pub fn pictures(&self) -> impl Iterator<Item = &Picture> {
        let dense = self.dense.iter().flat_map(|dense| &dense.figures.pictures);
        dense.chain(self.kozu.iter().flat_map(|kozu| &kozu.figures.pictures))
    }
}

/// The lab's runs that the page uses: files with their conditions. An empty list means all
/// conditions of the file.
pub fn lab_files() -> BTreeMap<String, Vec<String>> {
    let mut files = BTreeMap::<String, Vec<String>>::new();
    let jobs =
        [lab::lab_jobs(), unequal::lab_jobs(), turns::lab_jobs(), kozu::lab_jobs(), av::lab_jobs()];
    for job in jobs.into_iter().flatten() {
        files.entry(job.file).or_default().extend(job.condition);
    }
    files
}
