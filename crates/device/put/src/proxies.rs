//! The proxies of the environment: `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, as curl reads them.

use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use url::Url;

use super::PutError;

/// The values of the environment variables. An empty value is none.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Proxies {
    /// `http_proxy`: for URLs with http. Its name in capitals is not read, because a web server gives its CGI programs
    /// the request's header field `Proxy` under this name (CVE-2016-5385).
    pub http: Option<String>,
    /// `https_proxy` or `HTTPS_PROXY`: for URLs with https.
    pub https: Option<String>,
    /// `all_proxy` or `ALL_PROXY`: for both, where the other variable is missing.
    pub all: Option<String>,
    /// `no_proxy` or `NO_PROXY`: names, domains and networks that are reached without a proxy, separated by commas.
    pub no: Option<String>,
}

impl std::fmt::Debug for Proxies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Proxies(..)") // their URLs may hold passwords
    }
}

impl Proxies {
    /// Reads the environment.
    pub fn from_env() -> Self {
        let first = |names: &[&str]| {
            let values = names.iter().filter_map(|name| std::env::var(name).ok());
            values.map(|value| value.trim().to_owned()).find(|value| !value.is_empty())
        };
        Self {
            http: first(&["http_proxy"]),
            https: first(&["https_proxy", "HTTPS_PROXY"]),
            all: first(&["all_proxy", "ALL_PROXY"]),
            no: first(&["no_proxy", "NO_PROXY"]),
        }
    }

    /// The rules by which [`proxy`] finds the proxy of a URL.
    ///
    /// # Errors
    ///
    /// [`PutError::Proxy`]: the proxy of a variable cannot be used.
    pub(super) fn matcher(&self) -> Result<Matcher, PutError> {
        check("http_proxy", self.http.as_deref())?;
        check("https_proxy", self.https.as_deref())?;
        check("all_proxy", self.all.as_deref())?;
        let value = |value: &Option<String>| value.clone().unwrap_or_default();
        let builder = Matcher::builder().http(value(&self.http)).https(value(&self.https));
        Ok(builder.all(value(&self.all)).no(value(&self.no)).build())
    }
}

/// Without this check, a proxy that cannot be used would be passed by without a word.
fn check(variable: &'static str, proxy: Option<&str>) -> Result<(), PutError> {
    let Some(proxy) = proxy else { return Ok(()) };
    let wrong = |reason| Err(PutError::Proxy { variable, reason });
    let with_scheme =
        if proxy.contains("://") { proxy.to_owned() } else { format!("http://{proxy}") };
    let Ok(url) = with_scheme.parse::<Url>() else {
        return wrong("it is no URL, such as http://proxy.example:3128");
    };
    match url.scheme() {
        "http" if url.host_str().is_some() => Ok(()),
        "http" => wrong("it names no host, as http://proxy.example:3128 does"),
        _ => wrong(
            "only proxies that speak HTTP without TLS can be used, such as http://proxy.example:3128",
        ),
    }
}

/// The proxy on the way to `url`.
pub(super) fn proxy(matcher: &Matcher, url: &Url) -> Option<Intercept> {
    let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
    let there = format!("{}://{host}/", url.scheme()).parse().ok()?;
    matcher.intercept(&there)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(proxy: &str) -> Proxies {
        Proxies { all: Some(proxy.to_owned()), ..Proxies::default() }
    }

    #[test]
    fn names_domains_and_networks_go_past_the_proxy() {
        let no = "internal.example,.lan,10.0.0.0/8,::1";
        let proxies = Proxies { no: Some(no.to_owned()), ..all("http://p:3128") };
        let matcher = proxies.matcher().unwrap();
        for (url, is_proxied) in [
            ("http://outside.example/", true),
            ("https://outside.example:8443/", true),
            ("http://internal.example/", false),
            ("http://deep.internal.example/", false),
            ("http://notinternal.example/", true),
            ("http://nas.lan/", false),
            ("http://10.1.2.3/", false),
            ("http://11.1.2.3/", true),
            ("http://[::1]:80/", false),
        ] {
            let found = proxy(&matcher, &url.parse().unwrap());
            assert_eq!(found.is_some(), is_proxied, "{url}");
        }
        let everywhere = Proxies { no: Some("*".to_owned()), ..all("http://p:3128") };
        let url = "http://outside.example/".parse().unwrap();
        assert!(proxy(&everywhere.matcher().unwrap(), &url).is_none());
    }

    #[test]
    fn a_proxy_that_cannot_be_used_is_refused_and_not_passed_by() {
        for bad in ["socks5://p:1080", "https://p:443", "http://", "ftp://p", "http://p:70000"] {
            assert!(all(bad).matcher().unwrap_err().is_usage(), "{bad}");
        }
        for good in ["http://p:3128", "p:3128", "http://user:word@p", "http://[::1]:3128/"] {
            let matcher = all(good).matcher().unwrap();
            assert!(proxy(&matcher, &"https://h/".parse().unwrap()).is_some(), "{good}");
        }
    }
}
