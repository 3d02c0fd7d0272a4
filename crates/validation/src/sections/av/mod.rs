//! TCP-AV (paper 004, section 4): figure 17, and several that want more than there is.

mod many;
mod target;

use crate::context::Context;
use crate::markdown::Page;
use crate::verdict::Verdict;

/// Writes the section.
///
/// # Errors
///
/// Where a run fails.
pub fn write(context: &Context, page: &mut Page) -> anyhow::Result<Vec<Verdict>> {
    page.heading(2, "TCP-AV (004, section 4)");
    let mut verdicts = target::write(context, page)?;
    verdicts.extend(many::write(context, page)?);
    Ok(verdicts)
}
