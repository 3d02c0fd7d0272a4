//! A few bits of random numbers, by which a receiver finds at once that most messages say nothing to it.

use super::Challenge;
use super::codec::ANSWER_SLOTS;

/// Some bits of a challenge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark(u16);

impl Mark {
    pub(super) fn of(Challenge(number): Challenge) -> Self {
        Self(number as u16)
    }
}

/// The marks of a message's answers, and the mark of zero for each empty slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks([Mark; ANSWER_SLOTS]);

impl Marks {
    pub(super) fn of(answers: &[Challenge]) -> Self {
        debug_assert!(answers.len() <= ANSWER_SLOTS, "a message has no more slots");
        let mut marks = [Mark::default(); ANSWER_SLOTS];
        for (mark, answer) in marks.iter_mut().zip(answers) {
            *mark = Mark::of(*answer);
        }
        Self(marks)
    }

    /// Whether an answer has this mark. All are compared at once, which processors do with one instruction or two.
    #[expect(
        clippy::needless_bitwise_bool,
        reason = "`||` ends at the first, and compares one by one"
    )]
    pub(super) fn contain(&self, mark: Mark) -> bool {
        self.0.iter().fold(false, |found, one| found | (*one == mark))
    }
}
