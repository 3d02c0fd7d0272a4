//! URLs: which URLs are accepted, where a `Location` leads, and which servers receive the credentials.

use url::Url;

use super::error::PutError;

/// Refuses URLs that cannot be used.
///
/// # Errors
///
/// The error says what is wrong with the URL and what to do.
pub(super) fn check(url: &Url) -> Result<(), PutError> {
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(PutError::Url("it has to begin with http:// or https://, and to name a host"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(PutError::Url(
            "it must not hold a user or a password, because others see a command's arguments; write \
             user:password into a file for --user-file",
        ));
    }
    if url.fragment().is_some() {
        return Err(PutError::Url("it must not have a fragment (#...)"));
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
pub(super) fn of_file(url: &Url, name: &str) -> Url {
    if url.path().ends_with('/') { beside(url, name) } else { url.clone() }
}

/// The URL in the same directory whose last segment is `name`.
fn beside(url: &Url, name: &str) -> Url {
    let mut other = url.clone();
    if let Ok(mut segments) = other.path_segments_mut() {
        segments.pop().push(name);
    }
    other
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
        let name = "写 真?.jpg";
        let escaped = url("http://h/d/%E5%86%99%20%E7%9C%9F%3F.jpg");
        assert_eq!(of_file(&url("http://h/d/"), name), escaped);
        assert_eq!(of_file(&url("http://h/d/n"), name), url("http://h/d/n"));
        assert_eq!(beside(&url("http://h/d/n?q"), ".n"), url("http://h/d/.n?q"));
    }
}
