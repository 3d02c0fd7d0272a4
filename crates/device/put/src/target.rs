//! URLs: which URLs are accepted, where a `Location` leads, and which servers receive the credentials.

use url::Url;
use wakeai_net::{Zone, take_zone};
use wakeai_tus::encoded;

use super::error::PutError;

/// Reads the URL of an upload. The zone of a link-local address is not a part of the URL that a server sees (RFC 6874,
/// section 4).
///
/// # Errors
///
/// [`PutError::Url`] says what is wrong with the text and what to do.
pub fn parse_url(text: &str) -> Result<(Url, Option<Zone>), PutError> {
    // The parser drops such characters, or takes them for others, and the file would get another name.
    if text.chars().any(|c| c.is_control() || c == '\\') || text.trim() != text {
        return Err(PutError::Url(
            "it has a backslash, a control character, or a space at an end: percent-encode it, as in %5C or %0A"
                .to_owned(),
        ));
    }
    let (text, zone) = take_zone(text);
    let url: Url =
        text.parse().map_err(|error| PutError::Url(format!("{text} is no URL: {error}")))?;
    check(&url)?;
    Ok((url, zone))
}

/// Refuses URLs that cannot be used.
///
/// # Errors
///
/// The error says what is wrong with the URL and what to do.
pub(super) fn check(url: &Url) -> Result<(), PutError> {
    let wrong = |reason: &str| Err(PutError::Url(reason.to_owned()));
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return wrong("it has to begin with http:// or https://, and to name a host");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return wrong(
            "it must not hold a user or a password, because others see a command's arguments; write \
             user:password into a file for --user-file",
        );
    }
    if url.fragment().is_some() {
        return wrong("it must not have a fragment (#...)");
    }
    Ok(())
}

/// The URL for messages and logs: without a query, which may hold a secret.
pub(super) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

/// Whether both URLs have the same scheme, host and port. Credentials go only to URLs with the origin of the configured
/// URL.
pub(super) fn is_same_origin(one: &Url, other: &Url) -> bool {
    one.origin() == other.origin()
}

/// Resolves `location`, the value of the header field, against `base`.
///
/// # Errors
///
/// The result is not a usable URL, or it leads from https to http.
pub(super) fn follow(base: &Url, location: &str) -> Result<Url, PutError> {
    let url =
        base.join(location).map_err(|_| PutError::Answer("names a Location that is no URL"))?;
    if check(&url).is_err() {
        return Err(PutError::Answer("names a Location that cannot be used"));
    }
    if base.scheme() == "https" && url.scheme() != "https" {
        return Err(PutError::Answer("names a Location without TLS"));
    }
    Ok(url)
}

/// The URL of a file. This is `url` itself, or the file `name` in `url` if `url` ends with `/`.
///
/// # Errors
///
/// [`PutError::Name`]: no URL of a file can have this name.
pub(super) fn of_file(url: &Url, name: &[u8]) -> Result<Url, PutError> {
    if !url.path().ends_with('/') {
        return Ok(url.clone());
    }
    let reason = match name {
        b"" => "it is empty",
        // Encoded, too, these lead to a directory (RFC 3986, section 6.2.2.3).
        b"." | b".." => "it stands for a directory",
        _ if name.contains(&b'/') => "servers take its / for the end of a directory's name",
        _ if name.contains(&0) => "no file can have a name with a zero byte",
        _ => return Ok(beside(url, &encoded(name))),
    };
    Err(PutError::Name { name: encoded(name), reason })
}

/// The URL in the same directory whose last segment is `segment`, which is already percent-encoded.
pub(super) fn beside(url: &Url, segment: &str) -> Url {
    let mut other = url.clone();
    let directory = url.path().rfind('/').map_or("/", |at| &url.path()[..=at]);
    other.set_path(&format!("{directory}{segment}"));
    other
}

/// The last segment of the URL's path, decoded.
pub(super) fn last_segment(path: &str) -> Vec<u8> {
    let path = path.trim_end_matches('/');
    let last = path.rsplit('/').next().unwrap_or_default();
    percent_encoding::percent_decode_str(last).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    #[test]
    fn urls_with_secrets_are_refused_and_queries_not_shown() {
        for bad in ["ftp://h/x", "http://u@h/", "http://u:p@h/", "https://h/#f"] {
            assert!(check(&url(bad)).unwrap_err().is_usage(), "{bad}");
        }
        assert!(check(&url("https://h:1/a?signature=s")).is_ok());
        assert_eq!(shown(&url("https://h:1/a?signature=s")), "https://h:1/a");
    }

    #[test]
    fn a_location_may_not_lead_out_of_tls() {
        let base = url("https://h/files/");
        assert_eq!(follow(&base, "x?y").unwrap(), url("https://h/files/x?y"));
        assert_eq!(follow(&base, "//other/z").unwrap(), url("https://other/z"));
        for bad in ["http://h/files/x", "file:///etc/passwd", "https://u:p@h/", "http://"] {
            assert!(follow(&base, bad).is_err(), "{bad}");
        }
        assert!(is_same_origin(&base, &url("https://h:443/other")));
        for other in ["https://h:444/", "http://h/", "https://g/"] {
            assert!(!is_same_origin(&base, &url(other)), "{other}");
        }
    }

    #[test]
    fn a_directory_takes_the_file_s_name() {
        let name = "写 真?.jpg".as_bytes();
        let escaped = url("http://h/d/%E5%86%99%20%E7%9C%9F%3F.jpg");
        assert_eq!(of_file(&url("http://h/d/"), name).unwrap(), escaped);
        assert_eq!(of_file(&url("http://h/d/n"), name).unwrap(), url("http://h/d/n"));
        assert_eq!(beside(&url("http://h/d/n?q"), ".n"), url("http://h/d/.n?q"));
        assert_eq!(last_segment("/d/%E5%86%99%20%E7%9C%9F%3F.jpg"), name);
    }

    #[test]
    fn every_octet_of_a_name_comes_through() {
        let directory = url("http://h/d/");
        for octet in (1..=255).filter(|octet| *octet != b'/') {
            let name = [b'a', octet, b'b'];
            let file = of_file(&directory, &name).unwrap();
            assert_eq!(last_segment(file.path()), name, "{octet}");
            assert_eq!(url(file.as_str()), file, "{octet}");
        }
        for name in [&b"%2e%2e"[..], b"...", b"a?b#c", b" ", b"%"] {
            assert_eq!(last_segment(of_file(&directory, name).unwrap().path()), name);
        }
        for bad in [&b""[..], b".", b"..", b"a/b", b"a\0"] {
            assert!(matches!(of_file(&directory, bad), Err(PutError::Name { .. })));
        }
    }

    #[test]
    fn a_url_whose_characters_the_parser_would_drop_is_refused() {
        for bad in
            ["http://h/a\tb", "http://h/a\nb", "http://h/a\\b", " http://h/", "http://h/a\u{7f}"]
        {
            assert!(parse_url(bad).unwrap_err().is_usage(), "{bad}");
        }
        let (found, zone) = parse_url("http://[fe80::1%25eth0]:1/a").unwrap();
        assert_eq!((found.as_str(), zone.unwrap().name()), ("http://[fe80::1]:1/a", "eth0"));
        let (_, zone) = parse_url("http://[fe80::1%eth0]:1/a").unwrap();
        assert_eq!(zone.unwrap().name(), "eth0");
    }
}
