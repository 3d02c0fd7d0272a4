//! Which conditions were asked for.

use wakeai_scenario::{ResolvedCondition, Scenario};

/// A condition that the scenario does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("--conditions {asked}: the scenario has {known}")]
pub struct UnknownCondition {
    /// What was asked for.
    pub asked: String,
    /// What there is.
    pub known: String,
}

/// The conditions of `scenario` that `names` names, in the order of the file; all without names.
///
/// # Errors
///
/// A name that the scenario does not have.
pub fn chosen(
    scenario: &Scenario,
    names: &[String],
) -> Result<Vec<ResolvedCondition>, UnknownCondition> {
    let all = scenario.conditions();
    if let Some(asked) = names.iter().find(|name| !all.iter().any(|one| one.name() == *name)) {
        let known = all.iter().map(ResolvedCondition::name).collect::<Vec<_>>().join(", ");
        return Err(UnknownCondition { asked: asked.clone(), known });
    }
    let wanted = |condition: &ResolvedCondition| {
        names.is_empty() || names.iter().any(|name| name == condition.name())
    };
    Ok(all.into_iter().filter(wanted).collect())
}
