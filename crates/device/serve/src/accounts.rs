//! The bytes that the directory and each client use, and their quotas.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use wakeai_units::Bytes;

use super::config::Limits;
use super::refusal::Refusal;

#[derive(Debug, Default)]
struct Account {
    bytes: u64,
    unfinished: usize,
}

/// The bytes in use. An upload of known length counts with its full length from its creation on.
#[derive(Debug)]
pub(crate) struct Accounts {
    /// The quota of all files.
    pub(crate) quota: Option<u64>,
    /// The quota of each client.
    pub(crate) client_quota: Option<u64>,
    client_uploads: usize,
    /// The bytes of finished files in the directory.
    finished: Cell<u64>,
    unfinished: Cell<u64>,
    clients: RefCell<HashMap<Rc<str>, Account>>,
}

impl Accounts {
    pub(crate) fn new(limits: &Limits, finished: u64) -> Self {
        Self {
            quota: limits.quota.map(Bytes::get),
            client_quota: limits.client_quota.map(Bytes::get),
            client_uploads: limits.client_uploads,
            finished: Cell::new(finished),
            unfinished: Cell::new(0),
            clients: RefCell::default(),
        }
    }

    /// The number of bytes that count against the quota of all files.
    pub(crate) fn used(&self) -> u64 {
        self.finished.get().saturating_add(self.unfinished.get())
    }

    /// The number of bytes of the client that uses the most.
    pub(crate) fn largest_client(&self) -> u64 {
        self.clients.borrow().values().map(|account| account.bytes).max().unwrap_or(0)
    }

    /// The number of uploads that are not complete.
    pub(crate) fn unfinished_uploads(&self) -> usize {
        self.clients.borrow().values().map(|account| account.unfinished).sum()
    }

    /// Sets the number of bytes of the directory's finished files, after a new count.
    pub(crate) fn set_finished(&self, bytes: u64) {
        self.finished.set(bytes);
    }

    /// Books an upload that was found at the start. The quotas are not checked.
    pub(crate) fn book(&self, client: &Rc<str>, bytes: u64, is_finished: bool) {
        let mut clients = self.clients.borrow_mut();
        let account = clients.entry(Rc::clone(client)).or_default();
        account.bytes = account.bytes.saturating_add(bytes);
        if !is_finished {
            account.unfinished += 1;
            self.unfinished.set(self.unfinished.get().saturating_add(bytes));
        }
    }

    /// Books one more upload, if the limits allow it.
    pub(crate) fn open(&self, client: &Rc<str>, bytes: u64) -> Result<(), Refusal> {
        let count = self.clients.borrow().get(client).map_or(0, |account| account.unfinished);
        if count >= self.client_uploads {
            return Err(Refusal::TooMany);
        }
        self.check(client, bytes)?;
        self.book(client, bytes, false);
        Ok(())
    }

    /// Books `more` bytes for an unfinished upload, if the quotas allow it.
    pub(crate) fn grow(&self, client: &Rc<str>, more: u64) -> Result<(), Refusal> {
        self.check(client, more)?;
        self.unfinished.set(self.unfinished.get().saturating_add(more));
        if let Some(account) = self.clients.borrow_mut().get_mut(client) {
            account.bytes = account.bytes.saturating_add(more);
        }
        Ok(())
    }

    fn check(&self, client: &str, more: u64) -> Result<(), Refusal> {
        let clients = self.clients.borrow();
        let own = clients.get(client).map_or(0, |account| account.bytes);
        let is_within = |used: u64, quota: Option<u64>| {
            quota.is_none_or(|quota| used.saturating_add(more) <= quota)
        };
        let fits = is_within(self.used(), self.quota) && is_within(own, self.client_quota);
        if fits { Ok(()) } else { Err(Refusal::Quota) }
    }

    /// Moves the bytes of a complete upload from the unfinished to the finished bytes.
    pub(crate) fn finish(&self, client: &str, bytes: u64) {
        self.unfinished.set(self.unfinished.get().saturating_sub(bytes));
        self.finished.set(self.finished.get().saturating_add(bytes));
        if let Some(account) = self.clients.borrow_mut().get_mut(client) {
            account.unfinished = account.unfinished.saturating_sub(1);
        }
    }

    /// Removes an upload from the accounts.
    pub(crate) fn close(&self, client: &str, bytes: u64, is_finished: bool) {
        let mut clients = self.clients.borrow_mut();
        if !is_finished {
            self.unfinished.set(self.unfinished.get().saturating_sub(bytes));
        }
        let Some(account) = clients.get_mut(client) else { return };
        account.bytes = account.bytes.saturating_sub(bytes);
        account.unfinished = account.unfinished.saturating_sub(usize::from(!is_finished));
        if account.bytes == 0 && account.unfinished == 0 {
            clients.remove(client);
        }
    }
}
