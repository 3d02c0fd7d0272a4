//! The transfers of the local API's clients, which send in turns with those of other stations.

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

/// The bytes that the clients' transfers have left, `None` without transfers, as of a change with this number.
pub(crate) type Wanted = (u64, Option<Bytes>);
/// The decision of the event loop on the change with this number.
pub(crate) type Decided = (u64, Transfer);

/// The transfers of all clients. The tasks of the clients share it.
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

    /// The transfer of a client that has just connected. It has not begun.
    pub(crate) fn client(self: &Rc<Self>, id: u64) -> ClientTransfer {
        ClientTransfer { id, all: Rc::clone(self) }
    }

    /// Hands the sum to the event loop, and returns the number of the change.
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

/// One client's transfer. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct ClientTransfer {
    id: u64,
    all: Rc<Transfers>,
}

impl ClientTransfer {
    /// Takes the bytes that the transfer has left, and returns whether it may send.
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
