//! What a program for Linux needs to run, from its headers (ELF, 64 bits, little-endian).

/// Types of program headers.
const LOAD: u32 = 1;
const DYNAMIC: u32 = 2;
const INTERPRETER: u32 = 3;
/// Tags of the dynamic section.
const NEEDED: u64 = 1;
const STRING_TABLE: u64 = 5;

const MAGIC: &[u8] = b"\x7fELF\x02\x01";

/// A part of the file that the program headers name.
#[derive(Clone, Copy)]
struct Segment {
    kind: u32,
    offset: usize,
    address: u64,
    length: usize,
}

/// The shared libraries that a program or library was linked with, and the loader that it asks for. Both are empty for
/// other files, such as scripts, and for programs that need none.
pub(crate) fn needs(file: &[u8]) -> (Vec<String>, Option<String>) {
    let segments = segments(file).unwrap_or_default();
    let interpreter = segments.iter().find(|one| one.kind == INTERPRETER);
    let interpreter = interpreter.and_then(|one| text(file, one.offset));
    (libraries(file, &segments).unwrap_or_default(), interpreter)
}

/// The file without what no loader reads: symbols, debug information and section headers, which stand after the
/// segments. Other files are returned as they are.
pub(crate) fn stripped(mut file: Vec<u8>) -> Vec<u8> {
    let Some(segments) = segments(&file) else { return file };
    let end = segments.iter().map(|one| one.offset.saturating_add(one.length)).max();
    let headers =
        program_headers(&file).map(|(offset, size, count)| offset.saturating_add(size * count));
    let Some(end) = end.max(headers).filter(|end| *end < file.len()) else { return file };
    // A kernel module has no segments, and is used by its sections.
    if !segments.iter().any(|one| one.kind == LOAD) {
        return file;
    }
    file.truncate(end);
    file[0x28..0x30].fill(0); // the offset of the section headers,
    file[0x3c..0x40].fill(0); // their number, and the index of their names
    file
}

fn libraries(file: &[u8], segments: &[Segment]) -> Option<Vec<String>> {
    let dynamic = segments.iter().find(|one| one.kind == DYNAMIC)?;
    let part = file.get(dynamic.offset..dynamic.offset.checked_add(dynamic.length)?)?;
    let entries =
        || part.as_chunks::<16>().0.iter().map(|entry| (number(entry, 0, 8), number(entry, 8, 8)));
    let (_, strings) = entries().find(|(tag, _)| *tag == Some(STRING_TABLE))?;
    let strings = strings?;
    let holder = segments.iter().find(|one| {
        let end = one.address.saturating_add(one.length as u64);
        one.kind == LOAD && (one.address..end).contains(&strings)
    })?;
    let strings = holder.offset.checked_add(usize::try_from(strings - holder.address).ok()?)?;
    let names = entries().filter(|(tag, _)| *tag == Some(NEEDED));
    names.map(|(_, at)| text(file, strings.checked_add(usize::try_from(at?).ok()?)?)).collect()
}

/// The offset, the size of one and the number of the program headers.
fn program_headers(file: &[u8]) -> Option<(usize, usize, usize)> {
    let is_elf = file.starts_with(MAGIC);
    let field = |at, bytes| number(file, at, bytes).and_then(|value| usize::try_from(value).ok());
    is_elf.then_some(())?;
    Some((field(0x20, 8)?, field(0x36, 2)?, field(0x38, 2)?))
}

fn segments(file: &[u8]) -> Option<Vec<Segment>> {
    let (offset, size, count) = program_headers(file)?;
    let headers = (0..count).map(|index| {
        let at = offset.checked_add(size * index)?;
        let field = |from, bytes| number(file, at.checked_add(from)?, bytes);
        Some(Segment {
            kind: field(0, 4)? as u32,
            offset: usize::try_from(field(8, 8)?).ok()?,
            address: field(16, 8)?,
            length: usize::try_from(field(32, 8)?).ok()?,
        })
    });
    headers.collect()
}

/// The unsigned number of so many bytes, lowest first.
fn number(file: &[u8], at: usize, bytes: usize) -> Option<u64> {
    let part = file.get(at..at.checked_add(bytes)?)?;
    Some(part.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

/// The text from `at` to the next zero byte.
fn text(file: &[u8], at: usize) -> Option<String> {
    let text = file.get(at..)?.split(|byte| *byte == 0).next()?;
    std::str::from_utf8(text).ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops where something fails")]

    use std::fs;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_program_names_its_libraries_and_its_loader() {
        let own = fs::read(std::env::current_exe().unwrap()).unwrap();
        let (libraries, loader) = needs(&own);
        assert!(libraries.iter().any(|name| name == "libc.so.6"), "{libraries:?}");
        assert!(loader.unwrap().contains("/ld-linux-"));
        assert_eq!(needs(b"#!/bin/sh\n"), (Vec::new(), None));
        assert_eq!(needs(&own[..0x40]), (Vec::new(), None), "a file that was cut");
    }

    #[test]
    fn a_stripped_program_is_shorter_and_runs() {
        let own = fs::read(std::env::current_exe().unwrap()).unwrap();
        let length = own.len();
        let stripped = stripped(own);
        assert!(stripped.len() < length);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("stripped");
        crate::testing::write_program(&path, &stripped);
        let listed = Command::new(&path).arg("--list").output().unwrap();
        assert!(listed.status.success(), "{listed:?}");
        assert!(String::from_utf8_lossy(&listed.stdout).contains("a_stripped_program"));
    }

    #[test]
    fn nothing_that_is_read_from_a_cut_or_random_file_is_out_of_range() {
        let own = fs::read(std::env::current_exe().unwrap()).unwrap();
        for length in (0..0x200).chain([0x1000, own.len() / 2]) {
            needs(&own[..length]);
            stripped(own[..length].to_vec());
        }
        for at in 0x20..0x40 {
            let mut changed = own[..0x4000.min(own.len())].to_vec();
            changed[at] ^= 0xff;
            needs(&changed);
            stripped(changed);
        }
    }
}
