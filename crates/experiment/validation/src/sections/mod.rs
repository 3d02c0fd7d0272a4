//! The sections of the page. Each one makes its runs, and returns their figures and a verdict on
//! each promise. Its words are in its template in `templates/`.

pub mod cases;
pub mod kernels;
pub mod lab;
pub mod saturation;
pub mod single;
pub mod stack;

use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::kernels::KernelData;
use crate::lab::LabData;
use crate::reference::Reference;
use crate::stack::StackData;
use crate::verdict::PromiseVerdict;

/// The runs that files keep, because they need root or many minutes.
#[derive(Clone, Debug, Default)]
pub struct Stored {
    /// The lab's.
    pub lab: LabData,
    /// On other kernels.
    pub kernels: KernelData,
    /// Over the 802.11 stack.
    pub stack: StackData,
}

/// The result of a section, from which its template is rendered.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Judged<F> {
    /// Each promise, and whether it is held.
    pub verdicts: Vec<PromiseVerdict>,
    /// The section's figures.
    #[serde(flatten)]
    pub figures: F,
}

/// The names of the sections, for `--only`.
pub const NAMES: &[&str] = &["saturation", "single", "cases", "lab", "kernels", "stack"];

/// The templates of the page and of its sections: names and texts.
pub const TEMPLATES: &[(&str, &str)] = &[
    ("page.md", include_str!("../../templates/page.md")),
    ("saturation.md", include_str!("../../templates/saturation.md")),
    ("single.md", include_str!("../../templates/single.md")),
    ("cases.md", include_str!("../../templates/cases.md")),
    ("lab.md", include_str!("../../templates/lab.md")),
    ("kernels.md", include_str!("../../templates/kernels.md")),
    ("stack.md", include_str!("../../templates/stack.md")),
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
    saturation: Option<Judged<saturation::SaturationFigures>>,
    single: Option<Judged<single::SingleFigures>>,
    cases: Option<Judged<cases::CaseFigures>>,
    lab: Option<Judged<lab::LabFigures>>,
    kernels: Option<Judged<kernels::KernelFigures>>,
    stack: Option<Judged<stack::StackFigures>>,
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
        stored: &Stored,
        only: Option<&str>,
    ) -> anyhow::Result<Self> {
        let Stored { lab: measured, kernels: on_kernels, stack: over_stack } = stored;
        let is_wanted = |name: &str| only.is_none_or(|only| only == name);
        Ok(Self {
            seeds: context.seeds,
            ns3: reference.ns3.clone(),
            lab_kernel: (!measured.reports.is_empty()).then(|| measured.kernel.clone()),
            saturation: is_wanted("saturation")
                .then(|| saturation::run(context, reference))
                .transpose()?,
            single: is_wanted("single").then(|| single::run(context, reference)).transpose()?,
            cases: is_wanted("cases").then(|| cases::run(context, reference)).transpose()?,
            lab: is_wanted("lab").then(|| lab::run(context, measured)).transpose()?,
            kernels: is_wanted("kernels")
                .then(|| kernels::run(context, on_kernels))
                .transpose()?
                .flatten(),
            stack: is_wanted("stack")
                .then(|| stack::run(context, over_stack))
                .transpose()?
                .flatten(),
        })
    }
}
