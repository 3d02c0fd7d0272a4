//! The steps of an upload: find the protocol, send the file, compare the result.

use http::Method;
use http::header::SERVER;

use super::answers::{Asked, Meaning};
use super::http::Query;
use super::transfer::{PutProgress, PutReport, PutTransfer};
use super::{Protocol, PutConfig, PutError, target, tus, webdav};
use wakeai_tus::TUS_VERSION;

/// Uploads a file. `tell` receives the progress several times per second.
///
/// # Errors
///
/// [`PutError`].
pub async fn run(
    config: &PutConfig,
    mut shutdown: impl Future<Output = ()> + Unpin,
    tell: &mut dyn FnMut(PutProgress),
) -> Result<PutReport, PutError> {
    target::check(&config.url)?;
    let mut transfer = PutTransfer::new(config, tell)?;
    let total = config.timeout.map_or(std::time::Duration::MAX, std::time::Duration::from);
    tokio::select! {
        done = upload(&mut transfer) => done?,
        () = &mut shutdown => return Err(PutError::Interrupted),
        () = tokio::time::sleep(total) => {
            return Err(PutError::TimedOut(config.timeout.unwrap_or_default()));
        }
    }
    Ok(transfer.finish())
}

async fn upload(transfer: &mut PutTransfer<'_>) -> Result<(), PutError> {
    // OPTIONS goes without Tus-Resumable (tus 1.0.0, core protocol, OPTIONS).
    let query = Query::new(Asked::Protocol, Method::OPTIONS, &transfer.config.url);
    let answer = transfer.ask(&query).await?;
    if !matches!(answer.meaning(), Meaning::Done | Meaning::Unsaid) {
        return Err(answer.refused());
    }
    // RFC 4918, section 10.1.
    transfer.is_dav = answer.headers.contains_key("dav");
    if transfer.config.protocol == Protocol::Auto {
        let is_apache = answer.get(&SERVER).is_some_and(|name| name.starts_with("Apache"));
        transfer.report.protocol = match () {
            () if answer.headers.contains_key(TUS_VERSION) => Protocol::Tus,
            () if transfer.is_dav && is_apache => Protocol::PutRanges,
            () => Protocol::Put,
        };
    }
    let sent = match transfer.report.protocol {
        Protocol::Put | Protocol::PutRanges => webdav::upload(transfer).await,
        Protocol::Tus | Protocol::Auto => tus::upload(transfer, &answer).await,
    };
    if let Err(error) = &sent
        && error.ends_the_upload()
    {
        // The next attempt has to send everything.
        transfer.state.remove();
    }
    sent
}
