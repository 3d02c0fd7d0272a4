//! The runs to make: a scenario with overrides, and the command that makes the same run by hand.

use std::fmt::Display;

/// One condition of a scenario with overrides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The scenario's file, from the project's root.
    pub file: String,
    /// The condition; `None` selects the first one.
    pub condition: Option<String>,
    /// Overrides, in order.
    pub set: Vec<(String, String)>,
}

impl Job {
    /// A job that runs the scenario without changes.
    pub fn new(file: &str) -> Self {
        Self { file: file.to_owned(), condition: None, set: Vec::new() }
    }

    /// Selects the condition `name`.
    #[must_use]
    pub fn condition(mut self, name: &str) -> Self {
        self.condition = Some(name.to_owned());
        self
    }

    /// Changes a key of the scenario.
    #[must_use]
    pub fn set(mut self, key: &str, value: impl Display) -> Self {
        self.set.push((key.to_owned(), value.to_string()));
        self
    }

    /// The command that runs it once.
    pub fn command(&self) -> String {
        self.command_in("sim")
    }

    /// The command that runs it with seeds 1 to `seeds`.
    pub fn command_of(&self, seeds: u32) -> String {
        format!("{} --repeat {seeds}", self.command())
    }

    /// The command that runs it in the world `world` (`sim` or `lab`).
    pub fn command_in(&self, world: &str) -> String {
        format!("wakeai {world} {}", self.words().join(" "))
    }

    /// The scenario and the options of that command.
    pub fn words(&self) -> Vec<String> {
        let mut words = vec![self.file.clone()];
        if let Some(condition) = &self.condition {
            words.extend(["--conditions".to_owned(), condition.clone()]);
        }
        for (key, value) in &self.set {
            words.extend(["--set".to_owned(), format!("{key}={value}")]);
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_runs_the_same_by_hand() {
        let job = Job::new("scenarios/a.toml").condition("up").set("wired.queue", 5);
        assert_eq!(
            job.command(),
            "wakeai sim scenarios/a.toml --conditions up --set wired.queue=5"
        );
        assert!(job.command_of(5).ends_with(" --repeat 5"));
    }
}
