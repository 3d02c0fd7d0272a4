//! The Content-Security-Policy of the page (W3C, CSP level 3).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

/// The policy that lets these scripts and styles work, each by its hash, and nothing else.
pub(crate) fn of(scripts: &[&str], styles: &[&str]) -> String {
    let hashes = |blocks: &[&str]| {
        let hash = |block: &&str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(block)));
        blocks.iter().map(hash).collect::<Vec<_>>().join(" ")
    };
    format!(
        "default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'",
        hashes(scripts),
        hashes(styles)
    )
}
