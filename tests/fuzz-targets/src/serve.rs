//! Fuzzes the server of uploads: the heads of requests, and the state of an upload.

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use wakeai_serve::{Append, Create, End, Operation, Upload, numbered_name, safe_name};
use wakeai_tus::{Algorithm, Checksum};

use crate::input::Input;

/// Fuzzes one of the two; the first byte decides which one.
pub(crate) fn target(bytes: &[u8]) {
    match bytes.split_first() {
        Some((0..=127, head)) => read(head),
        Some((_, steps)) => steps_of_upload(&mut Input::new(steps)),
        None => {}
    }
}

/// Reads a head: a line with method and path, then a line for each field. Lines end with LF alone.
fn read(head: &[u8]) {
    let mut lines = head.split(|byte| *byte == b'\n');
    let first = String::from_utf8_lossy(lines.next().unwrap_or_default());
    let (method, path) = first.split_once(' ').unwrap_or((&first, ""));
    let Ok(method) = Method::from_bytes(method.as_bytes()) else { return };
    let mut fields = HeaderMap::new();
    for line in lines {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) = (HeaderName::from_bytes(&line[..colon]), &line[colon + 1..]);
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value)) {
            fields.append(name, value);
        }
    }
    match Operation::read(&method, path, &fields) {
        Ok(Operation::Create(create)) => check_create(&create),
        Ok(Operation::Append(id, append)) => {
            assert!(path.ends_with(&id.to_string()), "{path}");
            check_append(&append);
        }
        Ok(Operation::Head { id, .. } | Operation::Delete(id)) => {
            assert!(path.ends_with(&id.to_string()), "{path}");
        }
        Ok(Operation::Options(_)) => {}
        Err(refused) => {
            let status = refused.status();
            assert!(status.is_client_error() || status == 501, "{refused}: {status}");
        }
    }
}

fn check_append(append: &Append) {
    let numbers = [Some(append.offset), append.size, append.length];
    for number in numbers.into_iter().flatten() {
        assert!(i64::try_from(number).is_ok(), "{number}");
    }
}

fn check_create(create: &Create) {
    let written = create.metadata.to_string();
    assert_eq!(written.parse().as_ref(), Ok(&create.metadata));
    if let Some(first) = &create.first {
        check_append(first);
        assert_eq!(first.offset, 0);
        assert!(create.length.is_none_or(|length| first.size.is_none_or(|size| size <= length)));
    }
    let name = safe_name(create.metadata.get("filename"), "upload");
    for name in [numbered_name(&name, 2), numbered_name(&name, u32::MAX), name] {
        assert!((1..=255).contains(&name.len()), "{name:?}");
        assert!(!name.starts_with('.'), "{name:?}");
        assert!(!name.contains(|c: char| c == '/' || c.is_control()), "{name:?}");
    }
}

/// Makes steps on an upload in the order that the documentation of `Upload` allows, and compares it
/// with a model that counts the bytes written.
fn steps_of_upload(input: &mut Input<'_>) {
    let length = input.option(Input::magnitude);
    let offset = input.magnitude();
    let max_size = input.magnitude().max(length.unwrap_or(0));
    let Some(mut upload) = Upload::new(length, offset) else {
        assert!(length.is_some_and(|length| offset > length));
        return;
    };
    if length.is_none() && offset > max_size {
        return; // the server never makes such an upload
    }
    while !input.is_empty() {
        let before = upload.clone();
        let append = append(input, upload.offset());
        if upload.handle_append(&append, max_size).is_err() {
            assert_eq!(upload, before, "a refused request changes nothing");
            continue;
        }
        assert_eq!(append.offset, before.offset());
        assert!(before.length().is_none_or(|length| upload.length() == Some(length)));
        let written = body(input, &mut upload, &append, max_size);
        let end = match input.below(4) {
            0 => End::Cut,
            1 => End::Refused,
            _ => End::Complete { matches: append.checksum.is_none() || input.flag() },
        };
        let recorded = upload.offset();
        let moved = upload.handle_end(end);
        let counts = match end {
            End::Complete { matches } => matches,
            End::Cut => append.checksum.is_none(),
            End::Refused => false,
        };
        assert_eq!(upload.offset(), if counts { written } else { recorded });
        assert_eq!(moved, upload.offset() != recorded);
        assert_eq!(upload.is_complete(), upload.length() == Some(upload.offset()));
    }
}

/// A request. In most cases its offset is the upload's, and it gives no length of the upload.
fn append(input: &mut Input<'_>, offset: u64) -> Append {
    Append {
        offset: if input.rarely() { input.magnitude() } else { offset },
        size: input.option(Input::magnitude),
        checksum: input.option(|_| Checksum { algorithm: Algorithm::Sha1, digest: vec![0; 20] }),
        length: if input.rarely() { Some(input.magnitude()) } else { None },
    }
}

/// Writes and syncs the body of a request. Returns the offset up to which bytes are written.
fn body(input: &mut Input<'_>, upload: &mut Upload, append: &Append, max_size: u64) -> u64 {
    let mut written = upload.offset();
    for _ in 0..input.below(8) {
        let acknowledged = upload.offset();
        let room = upload.room(max_size);
        let count = input.magnitude().min(room);
        upload.handle_written(count);
        written += count;
        assert_eq!(upload.offset(), acknowledged, "nothing counts before it is on disk");
        let most = upload.length().unwrap_or(max_size);
        assert!(written <= most, "{written} of {most}");
        assert!(append.size.is_none_or(|size| written <= append.offset.saturating_add(size)));
        let synced = input.magnitude();
        let recorded = upload.handle_synced(synced);
        assert!(upload.offset() >= acknowledged, "what was acknowledged stays");
        assert!(upload.offset() <= written, "no byte counts that is not written");
        assert!(append.checksum.is_none() || upload.offset() == append.offset, "unverified bytes");
        assert_eq!(recorded, (upload.offset() > acknowledged).then_some(upload.offset()));
    }
    assert!(upload.handle_append(append, max_size).is_err(), "one request at a time");
    written
}
