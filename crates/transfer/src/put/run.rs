//! The steps of an upload: find the protocol, send the file, compare the result.

use http::Method;
use http::header::SERVER;

use super::transfer::{Progress, Report, Transfer};
use super::{Config, Protocol, PutError, target, tus, webdav};
use crate::tus::TUS_VERSION;

/// Uploads a file. `tell` receives the progress several times per second.
///
/// # Errors
///
/// [`PutError`].
pub async fn run(
    config: &Config,
    mut shutdown: impl Future<Output = ()> + Unpin,
    tell: &mut dyn FnMut(Progress),
) -> Result<Report, PutError> {
    target::check(&config.url)?;
    let mut transfer = Transfer::new(config, tell)?;
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

async fn upload(transfer: &mut Transfer<'_>) -> Result<(), PutError> {
    if transfer.config.protocol == Protocol::Auto {
        transfer.report.protocol = find_protocol(transfer).await?;
    }
    let sent = match transfer.report.protocol {
        Protocol::Put => webdav::whole(transfer).await,
        Protocol::PutRanges => webdav::in_ranges(transfer).await,
        Protocol::Tus | Protocol::Auto => tus::upload(transfer).await,
    };
    if matches!(sent, Err(PutError::Differs)) {
        // The next attempt has to send everything.
        transfer.state.remove();
    }
    sent
}

/// Finds the protocol by the server's answer to OPTIONS.
async fn find_protocol(transfer: &mut Transfer<'_>) -> Result<Protocol, PutError> {
    loop {
        match transfer.client.ask(Method::OPTIONS, &transfer.config.url, &[]).await {
            // Other status codes may refuse only the method OPTIONS.
            Ok(answer) if matches!(answer.status, 401 | 407 | 408 | 429 | 500..600) => {
                transfer.failed(answer.refused("tell its protocol")).await?;
            }
            Ok(answer) if answer.headers.contains_key(TUS_VERSION) => return Ok(Protocol::Tus),
            Ok(answer) => {
                let dav = answer.headers.contains_key("dav");
                let apache = answer.get(&SERVER).is_some_and(|name| name.starts_with("Apache"));
                return Ok(if dav && apache { Protocol::PutRanges } else { Protocol::Put });
            }
            Err(error) => transfer.failed(error).await?,
        }
    }
}
