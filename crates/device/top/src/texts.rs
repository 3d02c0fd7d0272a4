//! Texts that many connections share.

use std::collections::HashSet;
use std::sync::Arc;

use wakeai_units::text::{is_visible, visible};

/// One copy of each text that many connections share.
#[derive(Debug, Default)]
pub(crate) struct Texts(HashSet<Arc<str>>);

impl Texts {
    /// The text without what steers a terminal. A recording may come from anywhere.
    pub(crate) fn share(&mut self, text: &str) -> Arc<str> {
        if !text.chars().all(is_visible) {
            return self.share(&visible(text));
        }
        if let Some(known) = self.0.get(text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = text.into();
        self.0.insert(Arc::clone(&new));
        new
    }
}
