//! All uploads of a directory, and the requests that hold them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use tokio::sync::{Mutex, MutexGuard, watch};
use tokio::task::spawn_blocking;

use super::accounts::Accounts;
use super::clock::wall_seconds;
use super::config::Limits;
use super::files::{Directory, Stored, Version};
use super::journal::{Info, UploadProgress};
use super::name::wanted;
use super::refusal::Refusal;
use super::request::{Create, Id};
use super::upload::Upload;

/// The time for which a request waits until the previous request has released the upload.
const TAKE_OVER: Duration = Duration::from_secs(10);

/// One upload.
#[derive(Debug)]
pub(crate) struct StoreEntry {
    pub(crate) id: Id,
    pub(crate) client: Rc<str>,
    state: Mutex<StoredState>,
    /// Counts the requests that wanted the upload while another one held it.
    newer: watch::Sender<u64>,
}

/// The state of an upload, for the request that holds it.
#[derive(Debug)]
pub(crate) struct StoredState {
    pub(crate) upload: Upload,
    /// The time of the last activity, in milliseconds of the directory's clock.
    pub(crate) active_ms: u64,
    /// The bytes that are booked in the accounts.
    pub(crate) booked: u64,
    /// The digest of the finished file, once a client has asked for it, and the file that it belongs to.
    pub(crate) sha256: Option<(Version, String)>,
    /// Whether this process has synced the name of the file and the state of the upload to the disk.
    pub(crate) is_kept: bool,
    pub(crate) is_finished: bool,
    pub(crate) is_removed: bool,
}

/// An upload that one request holds. `newer` changes when another request wants it.
#[derive(Debug)]
pub(crate) struct Held<'a> {
    pub(crate) state: MutexGuard<'a, StoredState>,
    pub(crate) newer: watch::Receiver<u64>,
}

impl StoreEntry {
    /// Takes the upload. If another request holds the upload, that request is told to release it. Its connection may be
    /// dead, and a client that asks again has given up the old request.
    pub(crate) async fn hold(&self) -> Result<Held<'_>, Refusal> {
        if let Ok(state) = self.state.try_lock() {
            return Ok(Held { state, newer: self.newer.subscribe() });
        }
        self.newer.send_modify(|count| *count += 1);
        let newer = self.newer.subscribe();
        let state = tokio::time::timeout(TAKE_OVER, self.state.lock()).await;
        Ok(Held { state: state.map_err(|_| Refusal::Locked)?, newer })
    }

    /// Takes the upload, unless a request holds it.
    pub(crate) fn try_hold(&self) -> Option<MutexGuard<'_, StoredState>> {
        self.state.try_lock().ok()
    }
}

/// The uploads of a directory.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) files: Arc<Directory>,
    pub(crate) accounts: Accounts,
    pub(crate) max_size: u64,
    expire_after_ms: u64,
    pub(crate) entries: RefCell<HashMap<Id, Rc<StoreEntry>>>,
}

impl Store {
    /// Reads the uploads in the directory.
    pub(crate) fn open(files: Directory, limits: &Limits) -> io::Result<Self> {
        let accounts = Accounts::new(limits, files.used()?);
        let mut entries = HashMap::new();
        files.remove_strays()?;
        for (id, progress) in files.journal.uploads() {
            match files.load(id, progress).map(|stored| entry(id, stored)) {
                Ok(Some(entry)) => {
                    let state = entry.state.try_lock().expect("nobody else has it yet");
                    accounts.book(&entry.client, state.booked, state.is_finished);
                    drop(state);
                    entries.insert(id, entry);
                }
                Ok(None) => tracing::warn!(%id, "the files of this upload contradict each other"),
                Err(error) => {
                    tracing::warn!(%id, %error, "this upload cannot be read");
                    if error.kind() == io::ErrorKind::NotFound {
                        let _ = files.journal.remove(id); // the next start tries again
                    }
                }
            }
        }
        Ok(Self {
            files: Arc::new(files),
            accounts,
            max_size: limits.max_size.get().min(i64::MAX as u64),
            expire_after_ms: limits.expire_after.as_millis().max(1),
            entries: RefCell::new(entries),
        })
    }

    /// The upload, if it is this client's.
    pub(crate) fn find(&self, id: Id, client: &str) -> Result<Rc<StoreEntry>, Refusal> {
        let entries = self.entries.borrow();
        let entry = entries.get(&id).filter(|entry| *entry.client == *client);
        entry.cloned().ok_or(Refusal::NotFound)
    }

    /// Checks that the upload has neither expired nor been removed.
    pub(crate) fn check_alive(&self, state: &StoredState) -> Result<(), Refusal> {
        if state.is_removed {
            return Err(Refusal::NotFound);
        }
        if self.left_ms(state) == 0 { Err(Refusal::Expired) } else { Ok(()) }
    }

    /// The time by which uploads expire, in milliseconds of the directory's clock.
    pub(crate) fn now_ms(&self) -> u64 {
        self.files.journal.clock.now_ms()
    }

    /// The time that the upload has left without further activity. An expired one has none.
    pub(crate) fn left_ms(&self, state: &StoredState) -> u64 {
        state.active_ms.saturating_add(self.expire_after_ms).saturating_sub(self.now_ms())
    }

    /// The wall clock's time at which the upload expires, in seconds since 1970.
    pub(crate) fn expires(&self, state: &StoredState) -> u64 {
        wall_seconds(self.left_ms(state))
    }

    /// The same for an upload that is active now.
    pub(crate) fn expires_if_active_now(&self) -> u64 {
        wall_seconds(self.expire_after_ms)
    }

    /// Creates an upload.
    pub(crate) async fn create(
        &self,
        client: &Rc<str>,
        create: &Create,
    ) -> Result<Rc<StoreEntry>, Refusal> {
        if create.length.is_some_and(|length| length > self.max_size) {
            return Err(Refusal::TooLarge);
        }
        let booked = create.length.unwrap_or(0);
        match self.accounts.open(client, booked) {
            Err(Refusal::Quota) => {
                self.count_again().await;
                self.accounts.open(client, booked)?;
            }
            opened => opened?,
        }
        let made = self.make(client, create).await;
        if made.is_err() {
            self.accounts.close(client, booked, false);
        }
        made
    }

    async fn make(&self, client: &Rc<str>, create: &Create) -> Result<Rc<StoreEntry>, Refusal> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|_| Refusal::Storage)?;
        let id = Id(u128::from_ne_bytes(random));
        let progress = UploadProgress { offset: 0, active_ms: self.now_ms() };
        let info = Info {
            length: create.length,
            metadata: create.metadata.to_string(),
            client: client.to_string(),
            name: wanted(id, &create.metadata),
        };
        let stored = Stored { info: info.clone(), progress, is_finished: false };
        self.blocking(move |files| files.journal.put(id, &info, progress)).await?;
        let entry = entry(id, stored).expect("zero is not above any length");
        self.entries.borrow_mut().insert(id, Rc::clone(&entry));
        Ok(entry)
    }

    /// Raises the booked bytes of the upload to `bytes`.
    pub(crate) async fn book(
        &self,
        client: &Rc<str>,
        state: &mut StoredState,
        bytes: u64,
    ) -> Result<(), Refusal> {
        let more = bytes.saturating_sub(state.booked);
        if more > 0 && self.accounts.grow(client, more) == Err(Refusal::Quota) {
            self.count_again().await;
            self.accounts.grow(client, more)?;
        }
        state.booked += more;
        Ok(())
    }

    /// Counts the finished files again before a request is refused, because files may have been removed from the
    /// directory.
    async fn count_again(&self) {
        if self.accounts.quota.is_none() {
            return;
        }
        if let Ok(used) = self.blocking(Directory::used).await {
            self.accounts.set_finished(used);
        }
    }

    /// Forgets an upload and removes its files from `.wakeai-uploads`. The file of a finished upload stays.
    pub(crate) async fn remove(
        &self,
        entry: &StoreEntry,
        state: &mut StoredState,
    ) -> Result<(), Refusal> {
        let id = entry.id;
        self.blocking(move |files| files.remove(id)).await?;
        state.is_removed = true;
        self.accounts.close(&entry.client, state.booked, state.is_finished);
        self.entries.borrow_mut().remove(&id);
        Ok(())
    }

    /// Runs `work`, which may wait for the disk, on another thread. What it has done counts only if the directory is
    /// still there afterwards.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Directory) -> io::Result<T> + Send + 'static,
    ) -> Result<T, Refusal> {
        let files = Arc::clone(&self.files);
        let work = move || {
            let done = work(&files);
            files.check().and(done)
        };
        let done = spawn_blocking(work).await;
        done.map_err(io::Error::other).flatten().map_err(|error| refusal(&error))
    }
}

fn entry(id: Id, stored: Stored) -> Option<Rc<StoreEntry>> {
    let Stored { info, progress, is_finished } = stored;
    let upload = Upload::new(info.length, progress.offset)?;
    let state = StoredState {
        booked: info.length.unwrap_or(progress.offset),
        upload,
        active_ms: progress.active_ms,
        sha256: None,
        is_kept: false,
        is_finished,
        is_removed: false,
    };
    let (client, state) = (Rc::from(info.client), Mutex::new(state));
    Some(Rc::new(StoreEntry { id, client, state, newer: watch::Sender::new(0) }))
}

/// The refusal that reports a disk error to the client.
pub(crate) fn refusal(error: &io::Error) -> Refusal {
    // A write beyond the limit of a file's size (RLIMIT_FSIZE) fails with EFBIG.
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENOSPC | Errno::EDQUOT | Errno::EFBIG) => Refusal::DiskFull,
        Some(Errno::ESTALE) => Refusal::Lost, // was logged when it was noticed
        // Requests hold uploads that exist, so this is about a file.
        Some(Errno::ENOENT) => {
            tracing::error!(
                "the file of an upload in .wakeai-uploads was removed or truncated by another program; the upload \
                 cannot go on"
            );
            Refusal::Missing
        }
        _ => {
            tracing::error!(%error, "cannot read or write an upload");
            Refusal::Storage
        }
    }
}
