//! The steps of an upload: find the protocol, send the file, compare the result.

use http::Method;
use http::header::SERVER;

use super::answers::{Asked, Meaning};
use super::http::{HttpAnswer, Query};
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
    if transfer.config.protocol != Protocol::Tus {
        let found = find_protocol(transfer).await?;
        if transfer.config.protocol == Protocol::Auto {
            transfer.report.protocol = found;
        }
    }
    let sent = match transfer.report.protocol {
        Protocol::Put | Protocol::PutRanges => webdav::upload(transfer).await,
        Protocol::Tus | Protocol::Auto => tus::upload(transfer).await,
    };
    if let Err(error) = &sent
        && error.ends_the_upload()
    {
        // The next attempt has to send everything.
        transfer.state.remove();
    }
    sent
}

/// Finds the protocol by the server's answer to OPTIONS, and what the server has of WebDAV.
async fn find_protocol(transfer: &mut PutTransfer<'_>) -> Result<Protocol, PutError> {
    loop {
        let query = Query::new(Asked::Protocol, Method::OPTIONS, &transfer.config.url);
        match transfer.client.ask(query).await {
            Ok(answer) if answer.headers.contains_key(TUS_VERSION) => return Ok(Protocol::Tus),
            Ok(answer) => match answer.meaning() {
                Meaning::Done | Meaning::Unsaid => return Ok(of_files(transfer, &answer)),
                _ => transfer.failed(answer.refused()).await?,
            },
            Err(error) => transfer.failed(error).await?,
        }
    }
}

/// The protocol of a server without tus.
fn of_files(transfer: &mut PutTransfer<'_>, answer: &HttpAnswer) -> Protocol {
    // RFC 4918, section 10.1.
    transfer.is_dav = answer.headers.contains_key("dav");
    let apache = answer.get(&SERVER).is_some_and(|name| name.starts_with("Apache"));
    if transfer.is_dav && apache { Protocol::PutRanges } else { Protocol::Put }
}
