//! Finds out which file of the server an upload would overwrite.
//!
//! A file of the same name is replaced. But some servers take different names for the same: those whose file system
//! ignores case, or Unicode's normal forms. A file that has such another name must not be lost.

use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, ETAG, LAST_MODIFIED,
};
use http::{HeaderName, Method};
use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};
use roxmltree::{Document, Node};
use url::Url;
use wakeai_tus::encoded;

use super::PutError;
use super::answers::{Asked, Meaning};
use super::http::{HttpAnswer, Query};
use super::target::{beside, last_segment, shown};
use super::transfer::PutTransfer;

/// The header field with the depth of a PROPFIND (RFC 4918, section 10.2).
const DEPTH: HeaderName = HeaderName::from_static("depth");
/// The namespace of WebDAV's elements (RFC 4918, section 14).
const DAV: &str = "DAV:";
/// The body of the requests. It asks for one property, which each resource has.
const PROPERTIES: &str = r#"<?xml version="1.0" encoding="utf-8"?><propfind xmlns="DAV:"><prop><resourcetype/></prop></propfind>"#;
/// The largest list of a directory that is read, in bytes.
const LIST_LIMIT: usize = 8 << 20;

/// Whether the server says that it has a file of the name, which an upload to `url` replaces.
///
/// # Errors
///
/// The server has a directory of this name, or a file that may have another name.
pub(super) async fn has_file(transfer: &mut PutTransfer<'_>, url: &Url) -> Result<bool, PutError> {
    let listed = if transfer.is_dav { listed(transfer, url).await? } else { None };
    match listed {
        Some(has_file) => Ok(has_file),
        None => compared(transfer, url).await,
    }
}

/// Asks for the properties of `url`, and where it is a file for the names in its directory. The result is `None` where
/// the server does not answer as WebDAV.
async fn listed(transfer: &mut PutTransfer<'_>, url: &Url) -> Result<Option<bool>, PutError> {
    let answer = propfind(transfer, url, 0).await?;
    match answer.meaning() {
        Meaning::None => return Ok(Some(false)),
        Meaning::Done => {}
        _ => return Ok(None),
    }
    let Some(resources) = resources(&answer) else { return Ok(None) };
    if resources.iter().any(|resource| resource.is_directory) {
        return Err(PutError::Directory(shown(url)));
    }
    if transfer.config.overwrite {
        return Ok(Some(true));
    }
    let directory = propfind(transfer, &beside(url, ""), 1).await?;
    let Some(names) = self::resources(&directory) else { return Ok(None) };
    let own = last_segment(url.path());
    if names.iter().any(|resource| resource.name == own) {
        return Ok(Some(true));
    }
    let alike = names.iter().find(|resource| folded(&resource.name) == folded(&own));
    let found = alike.map_or("its list has no file of this very name".to_owned(), |resource| {
        encoded(&resource.name)
    });
    Err(PutError::Folded { url: shown(url), found })
}

async fn propfind(
    transfer: &mut PutTransfer<'_>,
    url: &Url,
    depth: u8,
) -> Result<HttpAnswer, PutError> {
    let method = Method::from_bytes(b"PROPFIND").expect("it is a token");
    let query = Query::new(Asked::Occupant, method, url)
        .with(DEPTH, depth.to_string())
        .with(CONTENT_TYPE, "application/xml; charset=utf-8")
        .with(CONTENT_LENGTH, PROPERTIES.len().to_string())
        .with_body(PROPERTIES, LIST_LIMIT);
    let answer = transfer.ask(&query).await?;
    if answer.meaning() == Meaning::Lasts { Err(answer.refused()) } else { Ok(answer) }
}

/// A resource of a `multistatus` (RFC 4918, section 14.16).
struct Resource {
    name: Vec<u8>,
    is_directory: bool,
}

/// The resources of an answer; `None` if it is no `multistatus`.
fn resources(answer: &HttpAnswer) -> Option<Vec<Resource>> {
    if answer.status != 207 {
        return None;
    }
    read_resources(std::str::from_utf8(&answer.body).ok()?)
}

fn read_resources(text: &str) -> Option<Vec<Resource>> {
    let document = Document::parse(text).ok()?;
    let is = |node: &Node<'_, '_>, name: &str| node.has_tag_name((DAV, name));
    let root = Some(document.root_element()).filter(|root| is(root, "multistatus"))?;
    let responses = root.children().filter(|node| is(node, "response"));
    let resource = |response: Node<'_, '_>| {
        let href = response.children().find(|node| is(node, "href"))?.text()?.trim();
        // Without its query; the directory itself ends with a slash.
        let name = last_segment(href.split('?').next().unwrap_or_default());
        let is_directory = response.descendants().any(|node| is(&node, "collection"));
        Some(Resource { name, is_directory })
    };
    Some(responses.filter_map(resource).collect())
}

/// Compares what the server has under the name with what it has under names that a file system might take for the same.
async fn compared(transfer: &mut PutTransfer<'_>, url: &Url) -> Result<bool, PutError> {
    let found = head(transfer, url).await?;
    if found.meaning() != Meaning::Done || transfer.config.overwrite {
        return Ok(found.meaning() == Meaning::Done);
    }
    for other in variants(&last_segment(url.path())) {
        let answer = head(transfer, &beside(url, &encoded(&other))).await?;
        if answer.meaning() == Meaning::Done && is_same(&found, &answer) {
            let found = format!("it also answers to {}", encoded(&other));
            return Err(PutError::Folded { url: shown(url), found });
        }
    }
    Ok(true)
}

async fn head(transfer: &mut PutTransfer<'_>, url: &Url) -> Result<HttpAnswer, PutError> {
    let query = Query::new(Asked::Occupant, Method::HEAD, url)
        .with(CACHE_CONTROL, "no-cache")
        .with(ACCEPT_ENCODING, "identity");
    let answer = transfer.ask(&query).await?;
    if matches!(answer.status, 401 | 407) { Err(answer.refused()) } else { Ok(answer) }
}

/// Whether two answers describe the same file.
fn is_same(one: &HttpAnswer, other: &HttpAnswer) -> bool {
    [ETAG, LAST_MODIFIED, CONTENT_LENGTH].iter().all(|name| one.get(name) == other.get(name))
}

/// Names that some file system takes for the same as `name`: in the other case, in the other of Unicode's normal forms,
/// and without dots and spaces at the end.
fn variants(name: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let stripped = name.trim_ascii_end();
    let stripped = stripped.strip_suffix(b".").unwrap_or(stripped);
    if !stripped.is_empty() {
        found.push(stripped.to_vec());
    }
    if let Ok(text) = std::str::from_utf8(name) {
        let swap = |letter: char| -> String {
            if letter.is_lowercase() {
                letter.to_uppercase().collect()
            } else {
                letter.to_lowercase().collect()
            }
        };
        found.push(text.chars().map(swap).collect::<String>().into_bytes());
        let composed = ComposingNormalizerBorrowed::new_nfc().normalize(text);
        let decomposed = DecomposingNormalizerBorrowed::new_nfd().normalize(text);
        found.extend([composed.as_bytes().to_vec(), decomposed.as_bytes().to_vec()]);
    } else {
        let swap = |octet: &u8| octet ^ if octet.is_ascii_alphabetic() { 0x20 } else { 0 };
        found.push(name.iter().map(swap).collect());
    }
    found.sort();
    found.dedup();
    found.retain(|other| other != name);
    found
}

/// What is left of a name without case and normal form.
fn folded(name: &[u8]) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(name) else { return name.to_ascii_lowercase() };
    let lower = text.to_lowercase();
    DecomposingNormalizerBorrowed::new_nfd().normalize(&lower).as_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variants_of_a_name_are_those_that_file_systems_fold() {
        let shown = |name: &str| -> Vec<String> {
            let found = variants(name.as_bytes());
            found.into_iter().map(|name| String::from_utf8(name).unwrap()).collect()
        };
        assert_eq!(shown("Photo.jpg"), ["pHOTO.JPG"]);
        assert_eq!(shown("12-30"), [""; 0]);
        assert_eq!(shown("1."), ["1"]);
        assert_eq!(shown("\u{e9}"), ["e\u{301}", "\u{c9}"]);
        assert_eq!(variants(b"\xffa"), [b"\xffA"]);
        assert_eq!(folded("\u{c9}A".as_bytes()), folded("e\u{301}a".as_bytes()));
    }

    #[test]
    fn the_names_of_a_multistatus_are_read_whatever_its_prefixes() {
        let text = r#"<?xml version="1.0"?><x:multistatus xmlns:x="DAV:" xmlns:y="other">
            <x:response><x:href>/d/</x:href><x:propstat><x:prop><x:resourcetype><x:collection/></x:resourcetype>
            </x:prop></x:propstat></x:response>
            <x:response><x:href>http://h/d/a%20%C3%A9&amp;b</x:href><x:propstat><x:prop><x:resourcetype/></x:prop>
            </x:propstat></x:response><y:response><y:href>/d/no</y:href></y:response></x:multistatus>"#;
        let found = read_resources(text).unwrap();
        let names: Vec<_> =
            found.iter().map(|found| (&found.name[..], found.is_directory)).collect();
        assert_eq!(names, [(&b"d"[..], true), ("a \u{e9}&b".as_bytes(), false)]);
        for bad in ["", "<html/>", "<multistatus/>", "<!DOCTYPE a><multistatus xmlns='DAV:'/>"] {
            assert!(read_resources(bad).is_none(), "{bad}");
        }
    }
}
