//! An exchange between the clients of the local API and the event loop. All clients change one value, and
//! the event loop answers it.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// The longest time that a client waits for the event loop.
const PATIENCE: Duration = Duration::from_secs(2);

/// The clients' end of an exchange.
#[derive(Debug)]
pub(crate) struct Asking<Q, A> {
    asked: watch::Sender<(u64, Q)>,
    answered: watch::Receiver<(u64, A)>,
}

/// The event loop's end of an exchange.
#[derive(Debug)]
pub(crate) struct Answering<Q, A> {
    asked: watch::Receiver<(u64, Q)>,
    answered: watch::Sender<(u64, A)>,
}

/// Creates an exchange, and returns its two ends. Nobody has asked yet; `first` is the answer to that.
pub(crate) fn exchange<Q: Default, A>(first: A) -> (Asking<Q, A>, Answering<Q, A>) {
    let (ask, asked) = watch::channel((0, Q::default()));
    let (answer, answered) = watch::channel((0, first));
    (Asking { asked: ask, answered }, Answering { asked, answered: answer })
}

impl<Q, A: Clone> Asking<Q, A> {
    /// Changes the value. `change` takes the number of this change, which is also returned.
    pub(crate) fn change(&self, change: impl FnOnce(u64, &mut Q)) -> u64 {
        let mut number = 0;
        self.asked.send_modify(|(newest, value)| {
            *newest += 1;
            number = *newest;
            change(number, value);
        });
        number
    }

    /// Waits until the change of this number is answered.
    pub(crate) async fn answer(&self, number: u64) -> Result<A, String> {
        let mut answered = self.answered.clone();
        let answered = answered.wait_for(|(newest, _)| *newest >= number);
        match timeout(PATIENCE, answered).await {
            Ok(Ok(answered)) => Ok(answered.1.clone()),
            Ok(Err(_)) | Err(_) => Err("the agent is not deciding: try again later".to_owned()),
        }
    }
}

impl<Q: Copy, A> Answering<Q, A> {
    /// Waits for a change.
    pub(crate) async fn changed(&mut self) -> Result<(), watch::error::RecvError> {
        self.asked.changed().await
    }

    /// The number of the newest change, and the value after it.
    pub(crate) fn asked(&mut self) -> (u64, Q) {
        *self.asked.borrow_and_update()
    }

    /// The number of the newest change that is answered.
    pub(crate) fn answered(&self) -> u64 {
        self.answered.borrow().0
    }

    /// Answers all changes up to this number.
    pub(crate) fn answer(&self, number: u64, answer: A) {
        let _ = self.answered.send_replace((number, answer)); // returns the previous answer
    }
}
