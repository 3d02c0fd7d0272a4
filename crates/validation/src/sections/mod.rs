//! The page's sections: each makes its runs and gives their figures with a verdict on each promise.
//! The words are the templates' (`templates/`, one for each section).

pub mod av;
pub mod cases;
pub mod dense;
pub mod kozu;
pub mod lab;
pub mod lte;
pub mod saturation;
pub mod single;
pub mod split;
pub mod unequal;
pub mod wlan;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::lab::LabData;
use crate::reference::Reference;
use crate::svg::Picture;
use crate::verdict::Verdict;

/// The names of the sections, for `--only`.
pub const NAMES: [&str; 11] = [
    "saturation",
    "single",
    "cases",
    "dense",
    "split",
    "unequal",
    "lte",
    "kozu",
    "wlan",
    "av",
    "lab",
];

/// What a section found: all that its template puts into words.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Judged<F> {
    /// Each promise, and whether it is held.
    pub verdicts: Vec<Verdict>,
    /// What was measured.
    #[serde(flatten)]
    pub figures: F,
}

/// The figures of all sections that were run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Results {
    /// Seeds of each comparison.
    seeds: u32,
    /// The version of ns-3.
    ns3: String,
    /// The kernel that the lab's runs were made on; `None` without any runs.
    lab_kernel: Option<String>,
    saturation: Option<Judged<saturation::Figures>>,
    single: Option<Judged<single::Figures>>,
    cases: Option<Judged<cases::Figures>>,
    dense: Option<Judged<dense::Figures>>,
    split: Option<Judged<split::Figures>>,
    unequal: Option<Judged<unequal::Figures>>,
    lte: Option<Judged<lte::Figures>>,
    kozu: Option<Judged<kozu::Figures>>,
    wlan: Option<Judged<wlan::Figures>>,
    av: Option<Judged<av::Figures>>,
    lab: Option<Judged<lab::Figures>>,
}

impl Results {
    /// Makes the runs of all sections, or of `only` one.
    ///
    /// # Errors
    ///
    /// Where a run fails.
    pub fn run(
        context: &Context,
        reference: &Reference,
        lab: &LabData,
        only: Option<&str>,
    ) -> anyhow::Result<Self> {
        let wanted = |name: &str| only.is_none_or(|only| only == name);
        Ok(Self {
            seeds: context.seeds,
            ns3: reference.ns3.clone(),
            lab_kernel: (!lab.reports.is_empty()).then(|| lab.kernel.clone()),
            saturation: wanted("saturation")
                .then(|| saturation::run(context, reference))
                .transpose()?,
            single: wanted("single").then(|| single::run(context, reference)).transpose()?,
            cases: wanted("cases").then(|| cases::run(context, reference)).transpose()?,
            dense: wanted("dense").then(|| dense::run(context)).transpose()?,
            split: wanted("split").then(|| split::run(context)).transpose()?,
            unequal: wanted("unequal").then(|| unequal::run(context, lab)).transpose()?,
            lte: wanted("lte").then(|| lte::run(context)).transpose()?,
            kozu: wanted("kozu").then(|| kozu::run(context, lab)).transpose()?,
            wlan: wanted("wlan").then(|| wlan::run(context)).transpose()?,
            av: wanted("av").then(|| av::run(context, lab)).transpose()?,
            lab: wanted("lab").then(|| lab::run(context, lab)).transpose()?,
        })
    }

    /// The pictures of the sections that were run.
    pub fn pictures(&self) -> impl Iterator<Item = &Picture> {
        let dense = self.dense.iter().flat_map(|dense| &dense.figures.pictures);
        dense.chain(self.kozu.iter().flat_map(|kozu| &kozu.figures.pictures))
    }
}

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
