//! Files that change between two attempts, or while they are sent.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::mpsc;

use tokio::sync::oneshot;
use wakeai_put::{Chunks, Protocol, PutConfig, PutError, PutProgress};
use wakeai_serve::{self as serve, Limits, ServeEvent};

use crate::fake::{Fake, Tus};
use crate::peers::{PeerKind, PeerServer};
use crate::{Home, content, put, put_until};

const LENGTH: usize = 100_000;

/// Interrupts the upload when half of the file is at the server.
fn interrupt(config: &PutConfig) {
    let mut half = |progress: PutProgress| progress.done >= progress.total / 2;
    let error = put_until(config, &mut half).unwrap_err();
    assert!(matches!(error, PutError::Interrupted), "{error}");
}

/// Puts other bytes in the place of the file, with the same size and modification time.
fn replace(config: &PutConfig, bytes: &[u8]) {
    let path = config.file.as_ref().unwrap();
    let modified = fs::metadata(path).unwrap().modified().unwrap();
    let other = path.with_extension("other");
    fs::write(&other, bytes).unwrap();
    File::options().write(true).open(&other).unwrap().set_modified(modified).unwrap();
    fs::rename(&other, path).unwrap();
}

fn other() -> Vec<u8> {
    content(LENGTH).into_iter().map(|byte| !byte).collect()
}

fn in_pieces(home: &Home, url: &str) -> PutConfig {
    let file = home.write("photo.bin", &content(LENGTH));
    PutConfig { chunks: Chunks::Count(20), ..home.config(&file, url) }
}

#[test]
fn tus_gets_no_mixture_of_two_files_of_one_size_and_time() {
    for extensions in ["creation,termination", "creation,checksum"] {
        let home = Home::new();
        let tus = Tus { extensions, compares: true, gives_back: true, ..Tus::default() };
        let bytes = Arc::clone(&tus.bytes);
        let fake = Fake::start(move |request| tus.answer(request));
        let config = in_pieces(&home, &fake.url("/files"));
        interrupt(&config);
        replace(&config, &other());
        put(&config).unwrap();
        assert!(*bytes.lock().unwrap() == other(), "{extensions}");
        assert_eq!(fake.count("POST"), 2, "it began anew");
        assert_eq!(fake.count("DELETE"), usize::from(extensions.contains("termination")));
    }
}

#[test]
fn an_unchanged_file_goes_on_where_it_was_even_under_another_inode() {
    let home = Home::new();
    let tus = Tus { extensions: "creation", gives_back: true, ..Tus::default() };
    let bytes = Arc::clone(&tus.bytes);
    let fake = Fake::start(move |request| tus.answer(request));
    let config = in_pieces(&home, &fake.url("/files"));
    for replaces in [false, true] {
        let before = fake.count("POST");
        interrupt(&config);
        if replaces {
            replace(&config, &content(LENGTH));
        }
        let report = put(&config).unwrap();
        assert_eq!((report.resumes, report.bytes_again), (1, 0));
        assert!(report.pieces <= 11, "{report:?}");
        assert!(*bytes.lock().unwrap() == content(LENGTH));
        assert_eq!(fake.count("POST"), before + 1, "it did not begin anew");
    }
}

#[test]
fn a_file_that_differs_only_behind_what_was_sent_goes_on() {
    let home = Home::new();
    let tus = Tus { extensions: "creation", gives_back: true, ..Tus::default() };
    let bytes = Arc::clone(&tus.bytes);
    let fake = Fake::start(move |request| tus.answer(request));
    let config = in_pieces(&home, &fake.url("/files"));
    interrupt(&config);
    let mut changed = content(LENGTH);
    changed[LENGTH - 1] ^= 1;
    replace(&config, &changed);
    put(&config).unwrap();
    assert!(*bytes.lock().unwrap() == changed);
    assert_eq!(fake.count("POST"), 1);
}

#[test]
fn bytes_behind_what_is_known_to_be_sent_are_not_taken_for_the_new_file_s() {
    let home = Home::new();
    let tus = Tus { extensions: "creation", gives_back: true, ..Tus::default() };
    let bytes = Arc::clone(&tus.bytes);
    let fake = Fake::start(move |request| tus.answer(request));
    let config = in_pieces(&home, &fake.url("/files"));
    interrupt(&config);
    // As after a power cut that the state did not outlive: the server has more.
    let more = content(LENGTH)[..LENGTH - 10].to_vec();
    *bytes.lock().unwrap() = more;
    let mut changed = content(LENGTH);
    changed[LENGTH - 20] ^= 1;
    replace(&config, &changed);
    put(&config).unwrap();
    assert!(*bytes.lock().unwrap() == changed);
}

#[test]
fn apache_gets_no_mixture_of_two_files_of_one_size_and_time() {
    let Some(peer) = PeerServer::start(PeerKind::Apache) else { return };
    let home = Home::new();
    let config = in_pieces(&home, &peer.url("/"));
    interrupt(&config);
    assert!(!peer.served.join("photo.bin").exists());
    replace(&config, &other());
    let report = put(&config).unwrap();
    assert_eq!((report.protocol, report.resumes), (Protocol::PutRanges, 0));
    assert!(fs::read(peer.served.join("photo.bin")).unwrap() == other());
    assert_eq!(peer.files(), 1, "no temporary file is left over");
    // And what has not changed goes on.
    interrupt(&config);
    let report = put(&config).unwrap();
    assert_eq!((report.resumes, report.bytes_again), (1, 0), "{report:?}");
}

#[test]
fn serve_gets_no_mixture_of_two_files_of_one_size_and_time() {
    let directory = tempfile::tempdir().unwrap();
    let config = serve::ServeConfig {
        directory: directory.path().to_owned(),
        listen: "127.0.0.1:0".parse().unwrap(),
        tls: None,
        tokens: None,
        metrics: None,
        base: None,
        origins: Vec::new(),
        limits: Limits::default(),
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let (ready, listening) = mpsc::channel();
    let server = std::thread::spawn(move || {
        let shutdown = async { drop(stopped.await) };
        serve::run(config, shutdown, |event| {
            if let ServeEvent::Listening(address) = event {
                ready.send(address).unwrap();
            }
        })
        .unwrap();
    });
    let home = Home::new();
    let config = in_pieces(&home, &format!("http://{}/files", listening.recv().unwrap()));
    interrupt(&config);
    replace(&config, &other());
    let report = put(&config).unwrap();
    assert_eq!((report.verified, report.stored_as.as_deref()), (Some("digest"), Some("photo.bin")));
    assert!(fs::read(directory.path().join("photo.bin")).unwrap() == other());
    drop(stop);
    server.join().unwrap();
}

#[test]
fn a_file_that_changes_while_it_is_sent_is_never_called_verified() {
    for extensions in ["creation", "creation,checksum"] {
        let home = Home::new();
        let tus = Tus { extensions, compares: true, gives_back: true, ..Tus::default() };
        let path = home.path("photo.bin");
        let mut pieces = 0;
        let fake = Fake::start(move |request| {
            if request.method == "PATCH" {
                pieces += 1;
            }
            if pieces == 10 {
                pieces += 1;
                // The first byte, which has been sent, changes; the modification time stays.
                let file = File::options().write(true).open(&path).unwrap();
                let modified = file.metadata().unwrap().modified().unwrap();
                file.write_all_at(b"X", 0).unwrap();
                file.set_modified(modified).unwrap();
            }
            tus.answer(request)
        });
        let error = put(&in_pieces(&home, &fake.url("/files"))).unwrap_err();
        assert!(matches!(error, PutError::Changed), "{extensions}: {error}");
        assert!(fake.count("PATCH") <= 10, "it is noticed at the end of the piece");
    }
}

#[test]
fn a_file_that_gets_shorter_while_it_is_sent_ends_the_upload() {
    let home = Home::new();
    let tus = Tus { extensions: "creation", ..Tus::default() };
    let path = home.path("photo.bin");
    let fake = Fake::start(move |request| {
        File::options().write(true).open(&path).unwrap().set_len(10).unwrap();
        tus.answer(request)
    });
    let error = put(&in_pieces(&home, &fake.url("/files"))).unwrap_err();
    assert!(matches!(error, PutError::Changed), "{error}");
}
