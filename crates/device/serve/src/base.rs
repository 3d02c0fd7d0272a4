//! The URL under which clients reach the uploads, and the addresses that the server gives them.
//!
//! A reverse proxy may take requests under another host and path. The server believes no field of a request about that: it
//! is told by its configuration, or else answers a request that came through a proxy with a relative reference, which the
//! client resolves against the URL that it has asked (RFC 9110, section 10.2.2).

use std::str::FromStr;

use http::header::{FORWARDED, HeaderName, VIA};
use http::{HeaderMap, Version};
use url::Url;

use super::request::{BASE, Id};

/// Fields that proxies add to a request.
const OF_PROXIES: [HeaderName; 7] = [
    VIA,
    FORWARDED,
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-forwarded-proto"),
    HeaderName::from_static("x-forwarded-prefix"),
    HeaderName::from_static("x-real-ip"),
];

/// The URL of the uploads as clients see it, or its path alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// What comes before the ID of an upload, without the last `/`.
    url: String,
    /// Its path, without the last `/`.
    path: String,
    host: Option<String>,
}

/// Why a text is no base.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a path that begins with '/', or a URL with http or https, without '?' and '#'")]
pub struct NotABase;

impl FromStr for Base {
    type Err = NotABase;

    fn from_str(text: &str) -> Result<Self, NotABase> {
        let is_path = text.starts_with('/');
        let full = if is_path { format!("http://localhost{text}") } else { text.to_owned() };
        let url = Url::parse(&full).map_err(|_| NotABase)?;
        let is_plain = url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none();
        if !is_plain || !["http", "https"].contains(&url.scheme()) || text.starts_with("//") {
            return Err(NotABase);
        }
        let path = url.path().trim_end_matches('/').to_owned();
        let shown =
            if is_path { path.clone() } else { url.as_str().trim_end_matches('/').to_owned() };
        let host = url.host_str().filter(|_| !is_path).map(str::to_owned);
        Ok(Self { url: shown, path, host })
    }
}

impl Base {
    /// Whether `Host` names the host of this URL.
    pub(crate) fn is_host(&self, named: &str) -> bool {
        let name = match named.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => named,
        };
        self.host.as_ref().is_some_and(|host| host.eq_ignore_ascii_case(name))
    }
}

/// The path as the server knows it. A proxy may have left the base in it.
pub(crate) fn local_path<'a>(base: Option<&Base>, path: &'a str) -> std::borrow::Cow<'a, str> {
    let below =
        base.filter(|base| !base.path.is_empty()).and_then(|base| path.strip_prefix(&base.path));
    match below {
        Some(below) if below.is_empty() || below.starts_with('/') => {
            format!("{BASE}{below}").into()
        }
        _ => path.into(),
    }
}

/// The address of a new upload, for the client that has sent its POST to `path`.
pub(crate) fn location(
    base: Option<&Base>,
    path: &str,
    version: Version,
    headers: &HeaderMap,
    id: Id,
) -> String {
    let through_a_proxy =
        version == Version::HTTP_10 || OF_PROXIES.iter().any(|name| headers.contains_key(name));
    match base {
        Some(base) => format!("{}/{id}", base.url),
        None if !through_a_proxy => format!("{BASE}/{id}"),
        None if path.ends_with('/') => id.to_string(),
        None => format!("{}/{id}", path.rsplit('/').next().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const ID: Id = Id(0xabab_abab_abab_abab_abab_abab_abab_abab);

    fn base(text: &str) -> Base {
        text.parse().unwrap()
    }

    #[test]
    fn a_base_is_a_path_or_a_url() {
        assert_eq!(base("/up/files/"), base("/up/files"));
        assert_eq!(base("https://example.net/up/").url, "https://example.net/up");
        assert!(base("https://Example.net/up").is_host("example.net:443"));
        assert!(!base("https://example.net/up").is_host("example.org"));
        assert!(!base("/up").is_host("localhost"));
        for bad in ["", "up", "ftp://h/", "https://h/?q", "/up#f", "//h/up", "https://u:p@h/"] {
            assert_eq!(bad.parse::<Base>(), Err(NotABase), "{bad}");
        }
    }

    #[test]
    fn the_base_may_still_be_in_the_path() {
        let up = base("/up");
        for (path, known) in [
            ("/up", "/files"),
            ("/up/", "/files/"),
            ("/up/1", "/files/1"),
            ("/upper", "/upper"),
            ("/files/1", "/files/1"),
        ] {
            assert_eq!(local_path(Some(&up), path), known);
        }
        assert_eq!(local_path(None, "/up"), "/up");
        assert_eq!(local_path(Some(&base("https://h/")), "/files"), "/files");
    }

    #[test]
    fn a_location_leads_back_through_the_proxy() {
        let none = HeaderMap::new();
        let proxied: HeaderMap = [(VIA, HeaderValue::from_static("1.1 p"))].into_iter().collect();
        let at = |base: Option<&Base>, path, headers: &HeaderMap, version| {
            location(base, path, version, headers, ID)
        };
        let id = ID.to_string();
        let direct = at(None, "/files", &none, Version::HTTP_11);
        assert_eq!(direct, format!("/files/{id}"));
        for (headers, version) in [(&proxied, Version::HTTP_11), (&none, Version::HTTP_10)] {
            for (asked, seen) in [
                ("https://h/up/files", "/files"),
                ("https://h/up/files/", "/files/"),
                ("https://h/up/", "/"),
                ("https://h/up/", "/files/"),
            ] {
                let asked: Url = asked.parse().unwrap();
                let found = asked.join(&at(None, seen, headers, version)).unwrap();
                let expected = format!("{}/{id}", asked.as_str().trim_end_matches('/'));
                assert_eq!(found.as_str(), expected, "{asked} {seen}");
            }
        }
        let told = base("https://h/up");
        assert_eq!(
            at(Some(&told), "/files", &none, Version::HTTP_11),
            format!("https://h/up/{id}")
        );
    }
}
