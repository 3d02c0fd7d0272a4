//! The TLS identity of a server: reads certificate and key.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;
use wakeai_units::text::bytes_without_mark;

use super::config::Tls;
use super::error::ServeError;
use super::tokens::read_secret;

/// Reads the certificate chain and the private key.
pub(crate) fn acceptor(tls: &Tls) -> Result<TlsAcceptor, ServeError> {
    let wrong =
        |path: &Path, reason: String| ServeError::Identity { path: path.to_owned(), reason };
    let chain = std::fs::read(&tls.certificate)
        .map_err(|source| ServeError::Read { path: tls.certificate.clone(), source })?;
    let chain = bytes_without_mark(&chain);
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
    let chain =
        chain.map_err(|error| wrong(&tls.certificate, why_no_pem(&error, "certificate")))?;
    if chain.is_empty() {
        return Err(wrong(&tls.certificate, "found no certificate in PEM".to_owned()));
    }
    let key = read_secret(&tls.key)?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
        .map_err(|error| wrong(&tls.key, why_no_pem(&error, "private key")))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(tls, &error))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| unusable(tls, &error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Why a file has no usable part of this kind. The library's texts have values in them that only mean something to
/// programmers.
fn why_no_pem(error: &pem::Error, kind: &str) -> String {
    match error {
        pem::Error::MissingSectionEnd { .. } => {
            format!("the {kind} in PEM has no END line: is the file whole?")
        }
        pem::Error::IllegalSectionStart { .. } => {
            format!("the BEGIN line of the {kind} is damaged")
        }
        pem::Error::Base64Decode(_) => {
            format!("the {kind} in PEM is not in Base64: is the file damaged?")
        }
        pem::Error::Io(error) => error.to_string(),
        _ => format!("found no {kind} in PEM"),
    }
}

/// Why the certificate and the key cannot be used together.
fn unusable(tls: &Tls, error: &rustls::Error) -> ServeError {
    let certificate = tls.certificate.display();
    let (path, reason) = match error {
        rustls::Error::InconsistentKeys(_) => (
            &tls.key,
            format!("this is not the private key of the first certificate in {certificate}"),
        ),
        rustls::Error::InvalidCertificate(_) => (
            &tls.certificate,
            "the first certificate cannot be read: is the file damaged?".to_owned(),
        ),
        _ => {
            let kinds = "an RSA key of 2048 bits or more, an ECDSA key or an Ed25519 key";
            (&tls.key, format!("the private key cannot be used: expected {kinds}"))
        }
    };
    ServeError::Identity { path: path.clone(), reason }
}
