//! What is wrong with a server's TLS, in words.

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::pki_types::UnixTime;
use rustls::{CertificateError, Error};

use super::PutError;
use super::error::plain;

/// The error of a failed TLS handshake with `host`. Only the failure of the connection passes with further attempts.
/// `has_ca` says whether the user named authorities.
pub(super) fn failure(host: &str, error: &io::Error, has_ca: bool) -> PutError {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    match inner {
        Some(Error::InvalidCertificate(wrong)) => {
            PutError::Certificates { from: host.to_owned(), reason: reason(wrong, has_ca) }
        }
        Some(Error::InvalidMessage(_)) => PutError::Unusable(format!(
            "{host} does not answer with TLS on this port: does the URL need http:// or another port?"
        )),
        Some(Error::AlertReceived(alert)) => PutError::Unusable(format!(
            "{host} refused the TLS connection: {}",
            words(&format!("{alert:?}"))
        )),
        Some(Error::PeerIncompatible(_)) => PutError::Unusable(format!(
            "{host} and this program have no version and cipher of TLS in common: it needs TLS 1.2 or 1.3"
        )),
        Some(_) => PutError::Unusable(format!("the TLS handshake with {host} failed")),
        None => PutError::Connection(format!("the TLS handshake with {host}: {}", plain(error))),
    }
}

/// A name such as `HandshakeFailure` as words.
fn words(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push(' ');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

/// The problem of a certificate, and what to do.
fn reason(wrong: &CertificateError, has_ca: bool) -> String {
    match wrong {
        CertificateError::UnknownIssuer if has_ca => {
            "no authority in the file of --ca has signed it".to_owned()
        }
        CertificateError::UnknownIssuer => "no authority that this machine trusts has signed it; if it is \
             self-signed or from an authority of your own, give that one's certificate with --ca FILE"
            .to_owned(),
        CertificateError::ExpiredContext { time, not_after } => format!(
            "it ended on {}, and this machine's clock says {}: correct the clock, or renew the certificate",
            date(*not_after),
            date(*time)
        ),
        CertificateError::NotValidYetContext { time, not_before } => format!(
            "it begins on {}, and this machine's clock says {}: correct the clock, or wait",
            date(*not_before),
            date(*time)
        ),
        CertificateError::Expired | CertificateError::NotValidYet => {
            "it is not valid at the time of this machine's clock: correct the clock, or renew the certificate"
                .to_owned()
        }
        CertificateError::NotValidForNameContext { presented, .. } => format!(
            "it is for {}, not for the name in the URL: correct the URL, or make a certificate for its name",
            if presented.is_empty() { "no name".to_owned() } else { names(presented) }
        ),
        CertificateError::NotValidForName => "it is for another name than the one in the URL".to_owned(),
        CertificateError::Revoked => "its authority has revoked it: renew it".to_owned(),
        CertificateError::BadEncoding => "it is damaged".to_owned(),
        CertificateError::BadSignature => "its signature is wrong".to_owned(),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "it is not for servers (extendedKeyUsage): make another".to_owned()
        }
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            "it is that of an authority (CA:TRUE): make it with basicConstraints=CA:FALSE, or let the authority sign \
             another for the server"
                .to_owned()
        }
        CertificateError::UnhandledCriticalExtension => {
            "it has an extension that this program does not know and must not ignore".to_owned()
        }
        _ => "it cannot be verified: make another".to_owned(),
    }
}

/// The names of a certificate, which rustls gives as `DnsName("a")` or `IpAddress(127.0.0.1)`.
fn names(presented: &[String]) -> String {
    let plain = |name: &String| {
        let inside = name.split_once('(').map_or(name.as_str(), |(_, inside)| inside);
        inside.trim_end_matches(')').trim_matches('"').to_owned()
    };
    presented.iter().map(plain).collect::<Vec<_>>().join(", ")
}

fn date(time: UnixTime) -> String {
    // Years after 9999 have no date in HTTP.
    let seconds = time.as_secs().min(253_402_300_799);
    let time: SystemTime = UNIX_EPOCH + Duration::from_secs(seconds);
    httpdate::fmt_http_date(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alert_is_told_in_words() {
        assert_eq!(words("HandshakeFailure"), "handshake failure");
        let alert = Error::AlertReceived(rustls::AlertDescription::UnrecognisedName);
        let said = failure("h", &io::Error::other(alert), false).to_string();
        assert_eq!(said, "h refused the TLS connection: unrecognised name");
    }

    #[test]
    fn every_problem_of_a_certificate_is_told_in_words() {
        let at = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        for (wrong, says) in [
            (CertificateError::UnknownIssuer, "--ca"),
            (
                CertificateError::ExpiredContext { time: at(2_000_000_000), not_after: at(1) },
                "this machine's clock says Wed, 18 May 2033",
            ),
            (
                CertificateError::NotValidYetContext { time: at(0), not_before: at(u64::MAX) },
                "clock says Thu, 01 Jan 1970",
            ),
            (CertificateError::BadSignature, "signature"),
            (CertificateError::ApplicationVerificationFailure, "verified"),
        ] {
            let error = io::Error::other(Error::InvalidCertificate(wrong));
            let said = failure("h", &error, false).to_string();
            assert!(said.contains(says), "{said}");
            assert!(!said.contains(['(', '{']) || says == "CA", "{said}");
        }
        let presented = ["DnsName(\"a.example\")".to_owned(), "IpAddress(127.0.0.1)".to_owned()];
        assert_eq!(names(&presented), "a.example, 127.0.0.1");
    }
}
