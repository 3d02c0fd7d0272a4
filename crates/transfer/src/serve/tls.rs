//! The TLS identity of a server.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use super::config::Tls;
use super::error::ServeError;
use super::tokens::read_secret;

/// Reads the certificate chain and the private key.
pub(crate) fn acceptor(tls: &Tls) -> Result<TlsAcceptor, ServeError> {
    let wrong = |path: &std::path::Path, reason: String| ServeError::Identity {
        path: path.to_owned(),
        reason,
    };
    let chain = std::fs::read(&tls.certificate)
        .map_err(|source| ServeError::Read { path: tls.certificate.clone(), source })?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&chain).collect();
    let chain = chain.map_err(|error| wrong(&tls.certificate, error.to_string()))?;
    if chain.is_empty() {
        return Err(wrong(&tls.certificate, "found no certificate in PEM".to_owned()));
    }
    let key = read_secret(&tls.key)?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
        .map_err(|error| wrong(&tls.key, format!("found no private key in PEM: {error}")))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(&tls.certificate, error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| wrong(&tls.certificate, error.to_string()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
