//! The transfers of the local API's clients. They and the transfers of other stations send in
//! turns.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use wakeai_api::Transfer;
use wakeai_units::Bytes;

use crate::exchange::Asking;

/// The transfers of all clients. The tasks of the clients share this value.
#[derive(Debug)]
pub(crate) struct Transfers {
    left: RefCell<BTreeMap<u64, u64>>,
    /// The bytes that the transfers have left, `None` if there are no transfers; and the event loop's decision.
    decisions: Asking<Option<Bytes>, Transfer>,
}

impl Transfers {
    pub(crate) fn new(decisions: Asking<Option<Bytes>, Transfer>) -> Self {
        Self { left: RefCell::default(), decisions }
    }

    /// A transfer for a client that has just connected. The transfer has not begun yet.
    pub(crate) fn client(self: &Rc<Self>, id: u64) -> ClientTransfer {
        ClientTransfer { id, all: Rc::clone(self) }
    }

    /// Hands the sum of the bytes left to the event loop. Returns the number of this change.
    fn change(&self) -> u64 {
        let left = self.left.borrow();
        let sum = left.values().fold(0_u64, |sum, left| sum.saturating_add(*left));
        let sum = (!left.is_empty()).then(|| Bytes::new(sum));
        self.decisions.change(|_, left| *left = sum)
    }
}

/// One client's transfer. The transfer ends when this value is dropped.
#[derive(Debug)]
pub(crate) struct ClientTransfer {
    id: u64,
    all: Rc<Transfers>,
}

impl ClientTransfer {
    /// Takes the number of bytes that the transfer has left. Returns whether the transfer may send.
    pub(crate) async fn update(&self, left: Option<u64>) -> Result<Transfer, String> {
        match left {
            Some(left) => self.all.left.borrow_mut().insert(self.id, left),
            None => self.all.left.borrow_mut().remove(&self.id),
        };
        self.all.decisions.answer(self.all.change()).await
    }
}

impl Drop for ClientTransfer {
    fn drop(&mut self) {
        let was_there = self.all.left.borrow_mut().remove(&self.id).is_some();
        if was_there {
            self.all.change();
        }
    }
}
