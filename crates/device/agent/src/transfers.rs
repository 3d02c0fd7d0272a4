//! The transfers of the local API's clients. They and the transfers of other stations send in
//! turns.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;
use wakeai_api::Transfer;
use wakeai_units::Bytes;

/// The longest time that a client waits for the event loop's decision.
const PATIENCE: Duration = Duration::from_secs(2);

/// The number of a change, and the bytes that the clients' transfers have left after this change. The bytes
/// are `None` if there are no transfers.
pub(crate) type Wanted = (u64, Option<Bytes>);
/// The number of a change, and the event loop's decision on it.
pub(crate) type Decided = (u64, Transfer);

/// The transfers of all clients. The tasks of the clients share this value.
#[derive(Debug)]
pub(crate) struct Transfers {
    left: RefCell<BTreeMap<u64, u64>>,
    wanted: watch::Sender<Wanted>,
    decided: watch::Receiver<Decided>,
}

impl Transfers {
    pub(crate) fn new(wanted: watch::Sender<Wanted>, decided: watch::Receiver<Decided>) -> Self {
        Self { left: RefCell::default(), wanted, decided }
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
        let mut number = 0;
        self.wanted.send_modify(|wanted| {
            *wanted = (wanted.0 + 1, sum);
            number = wanted.0;
        });
        number
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
        let number = self.all.change();
        let mut decided = self.all.decided.clone();
        let decided = decided.wait_for(|(of, _)| *of >= number);
        match timeout(PATIENCE, decided).await {
            Ok(Ok(decided)) => Ok(decided.1),
            Ok(Err(_)) | Err(_) => Err("the agent is not deciding: try again later".to_owned()),
        }
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
