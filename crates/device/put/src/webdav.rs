//! The upload by PUT requests, to WebDAV and to other servers.
//!
//! To a WebDAV server the file goes under a temporary name. Only when it is there and has been compared, it gets its own
//! name by MOVE, so that nobody reads an incomplete file there. Other servers get the file under its name at once.

use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE};
use http::{HeaderName, Method};
use url::Url;

use super::answers::{Asked, Meaning};
use super::http::Query;
use super::names::has_file;
use super::transfer::PutTransfer;
use super::{Protocol, PutError, target, verify};

/// The name at the server if neither the file nor the URL has one.
const NO_NAME: &[u8] = b"upload";
/// The beginning of a temporary name. Servers hide such names from lists.
const TEMPORARY: &str = ".wakeai-";
/// Where a file is moved (RFC 4918, section 10.3).
const DESTINATION: HeaderName = HeaderName::from_static("destination");
/// Whether MOVE replaces a file (RFC 4918, section 10.6).
const OVERWRITE: HeaderName = HeaderName::from_static("overwrite");

/// Sends the file under its name, or under a temporary one first.
pub(super) async fn upload(transfer: &mut PutTransfer<'_>) -> Result<(), PutError> {
    let name = transfer.source.name.clone();
    let url = target::of_file(&transfer.config.url, name.as_deref().unwrap_or(NO_NAME))?;
    transfer.report.location = target::shown(&url);
    has_file(transfer, &url).await?;
    if transfer.is_dav && by_way_of_another_name(transfer, &url).await? {
        return Ok(());
    }
    send(transfer, &url).await?;
    verify::by_reading_back(transfer, &url).await
}

/// Sends the file under a temporary name, compares it there, and moves it. Returns whether the server can do this.
async fn by_way_of_another_name(
    transfer: &mut PutTransfer<'_>,
    url: &Url,
) -> Result<bool, PutError> {
    // The name that an earlier process has used.
    let kept = transfer.state.location().filter(|kept| {
        let name = target::last_segment(kept.path());
        name.starts_with(TEMPORARY.as_bytes())
            && target::beside(kept, "") == target::beside(url, "")
    });
    let temporary = kept.unwrap_or_else(|| {
        let number = u128::from(getrandom::u64().unwrap_or_default()) << 64
            | u128::from(getrandom::u64().unwrap_or_default());
        target::beside(url, &format!("{TEMPORARY}{number:032x}"))
    });
    let moved = send_and_move(transfer, &temporary, url).await;
    match &moved {
        Ok(false) => remove(transfer, &temporary).await,
        Err(error) if error.ends_the_upload() => remove(transfer, &temporary).await,
        Ok(true) | Err(_) => {}
    }
    moved
}

async fn send_and_move(
    transfer: &mut PutTransfer<'_>,
    temporary: &Url,
    url: &Url,
) -> Result<bool, PutError> {
    match send(transfer, temporary).await {
        // The server does not take a file of this name, but may take one of the other.
        Err(PutError::Refused { status: 400 | 403 | 405 | 415 | 422, .. }) => return Ok(false),
        sent => sent?,
    }
    verify::by_reading_back(transfer, temporary).await?;
    // What has this name now, and not what had it when the upload began.
    let replaces = transfer.config.overwrite || has_file(transfer, url).await?;
    if !rename(transfer, temporary, url, replaces).await? {
        return Ok(false);
    }
    let has = length(transfer, url).await;
    match has {
        Ok(Some(has)) if has != transfer.source.len => Err(PutError::Differs),
        Ok(None) => Err(PutError::Missing(target::shown(url))),
        // What was moved has been compared. The server need not say more.
        Ok(Some(_)) | Err(PutError::Refused { .. } | PutError::Answer(_)) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Gives the file at `temporary` the name of `url`. Returns whether the server can do this.
async fn rename(
    transfer: &mut PutTransfer<'_>,
    temporary: &Url,
    url: &Url,
    replaces: bool,
) -> Result<bool, PutError> {
    // A server behind another one may know itself by another name: then the path alone may be right.
    let mut destination = url.as_str();
    let mut tried = false;
    loop {
        let method = Method::from_bytes(b"MOVE").expect("it is a token");
        let query = Query::new(Asked::Move, method, temporary)
            .with(DESTINATION, destination)
            .with(OVERWRITE, if replaces { "T" } else { "F" });
        let refused = match transfer.client.ask(&query).await {
            Ok(answer) => match answer.meaning() {
                Meaning::Done => return Ok(true),
                Meaning::Directly if destination == url.as_str() => {
                    destination = url.path();
                    continue;
                }
                Meaning::Directly => return Ok(false),
                // An earlier request whose answer was lost has moved it.
                Meaning::None if tried => return Ok(true),
                _ if tried
                    && answer.status == 412
                    && length(transfer, temporary).await?.is_none() =>
                {
                    return Ok(true);
                }
                _ => answer.refused(),
            },
            Err(error) => error,
        };
        tried = true;
        transfer.failed(refused).await?;
    }
}

/// Removes a file that is of no use any more.
async fn remove(transfer: &mut PutTransfer<'_>, temporary: &Url) {
    transfer.state.keep(None);
    let query = Query::new(Asked::ReadBack, Method::DELETE, temporary);
    if let Err(error) = transfer.client.ask(&query).await {
        tracing::warn!(%error, url = target::shown(temporary), "a temporary file stays at the server");
    }
}

async fn send(transfer: &mut PutTransfer<'_>, url: &Url) -> Result<(), PutError> {
    match transfer.report.protocol {
        Protocol::PutRanges if transfer.source.len > 0 => in_ranges(transfer, url).await,
        _ => whole(transfer, url).await,
    }
}

/// Sends the file in one request. After each interruption it starts again from the beginning.
async fn whole(transfer: &mut PutTransfer<'_>, url: &Url) -> Result<(), PutError> {
    if transfer.is_dav {
        transfer.state.keep(Some(url)); // a later process uses the same name
    }
    let to = transfer.source.len;
    loop {
        transfer.turn(0).await;
        transfer.source.look().await?;
        let stamp = transfer.source.stamp;
        match put(transfer, url, (0, to)).await {
            // The server may have bytes from before and from after a change.
            Ok(_) if transfer.source.stamp != stamp => return Err(PutError::Changed),
            Ok(_) => break,
            Err(error) => {
                if lacks_its_directory(transfer, url, &error).await {
                    return Err(PutError::NoDirectory(target::shown(&target::beside(url, ""))));
                }
                transfer.failed(error).await?;
            }
        }
    }
    transfer.advanced(to);
    Ok(())
}

/// Whether nginx refused the file because its directory does not exist. nginx says only 500, after it has received the
/// whole file, and would do so again. The 500 of a server behind it has another page.
async fn lacks_its_directory(transfer: &PutTransfer<'_>, url: &Url, error: &PutError) -> bool {
    let PutError::Refused { asked: Asked::Whole, status: 500, page, .. } = error else {
        return false;
    };
    if !page.contains("<center>nginx") {
        return false;
    }
    let directory = target::beside(url, "");
    let asked = transfer.client.ask(&Query::new(Asked::Occupant, Method::HEAD, &directory)).await;
    asked.is_ok_and(|answer| answer.status == 404)
}

/// Sends the file in pieces with `Content-Range`. After an interruption it continues behind the bytes that the server
/// has.
async fn in_ranges(transfer: &mut PutTransfer<'_>, url: &Url) -> Result<(), PutError> {
    let len = transfer.source.len;
    // Under its own name the server may still have an older file. The first piece replaces it.
    let mut replaced = transfer.state.location().as_ref() == Some(url);
    if replaced {
        replaced = transfer.continues().await?;
    }
    transfer.report.resumes = u64::from(replaced);
    if transfer.is_dav {
        transfer.state.keep(Some(url));
    }
    // `None` if the server has to be asked for its offset.
    let mut offset = if replaced { None } else { Some(0) };
    let mut takes_parts = false;
    loop {
        let (from, to) = match offset {
            None => (0, 0),
            Some(from) if from >= len => return Ok(()),
            Some(from) => (from, transfer.next_piece(from).await?),
        };
        let step = match offset {
            None => {
                length(transfer, url).await.map(|has| Some(has.unwrap_or(0).min(transfer.trusted)))
            }
            Some(_) => put(transfer, url, (from, to)).await,
        };
        match step {
            Ok(Some(has)) if has > len => {
                return Err(PutError::Answer("says that it has more bytes than the file"));
            }
            Ok(Some(has)) if to > 0 && from > 0 && !takes_parts => {
                takes_parts = has_taken_parts(transfer, url, has).await?;
                if !takes_parts {
                    return instead_whole(transfer, url).await;
                }
                transfer.advanced(has);
                offset = Some(has);
            }
            Ok(Some(has)) => {
                if !replaced {
                    transfer.state.keep(Some(url));
                    replaced = true;
                }
                transfer.advanced(has);
                offset = Some(has);
            }
            Ok(None) => offset = if replaced { None } else { Some(0) },
            Err(error) => match error.meaning() {
                Meaning::Whole => return instead_whole(transfer, url).await,
                Meaning::Smaller => transfer.smaller(to - from, error)?,
                _ => {
                    transfer.failed(error).await?;
                    offset = if replaced { None } else { Some(0) };
                }
            },
        }
    }
}

/// Whether the file at the server has grown to `has` bytes. A server that ignores `Content-Range` takes a part for the
/// whole file (RFC 9110, section 14.5).
async fn has_taken_parts(
    transfer: &mut PutTransfer<'_>,
    url: &Url,
    has: u64,
) -> Result<bool, PutError> {
    loop {
        match length(transfer, url).await {
            Ok(found) => return Ok(found == Some(has)),
            Err(error) if error.meaning() == Meaning::Whole => return Ok(false),
            Err(error) => transfer.failed(error).await?,
        }
    }
}

async fn instead_whole(transfer: &mut PutTransfer<'_>, url: &Url) -> Result<(), PutError> {
    tracing::info!("the server takes no parts: the file is sent whole");
    transfer.report.protocol = Protocol::Put;
    transfer.state.keep(None);
    whole(transfer, url).await
}

/// Sends the bytes from `from` up to `to`. Returns `to`, or `None` if the request was cut because the turn had ended.
async fn put(
    transfer: &mut PutTransfer<'_>,
    url: &Url,
    (from, to): (u64, u64),
) -> Result<Option<u64>, PutError> {
    let len = transfer.source.len;
    // The first piece is sent as a whole file, so that no bytes of an older file remain.
    let asked = if from > 0 || to < len { Asked::Part } else { Asked::Whole };
    let mut query = Query::new(asked, Method::PUT, url);
    if from > 0 {
        query = query.with(CONTENT_RANGE, format!("bytes {from}-{}/{len}", to - 1));
    }
    let Some((answer, sent)) = transfer.send(&query, (from, to)).await? else { return Ok(None) };
    answer.done()?;
    if sent < to - from {
        return Err(PutError::Answer("says that it has the file before all of it was sent"));
    }
    transfer.report.pieces += 1;
    Ok(Some(to))
}

/// The length of the file at the server. It is `None` if the server has no such file.
async fn length(transfer: &PutTransfer<'_>, url: &Url) -> Result<Option<u64>, PutError> {
    let query = Query::new(Asked::Length, Method::HEAD, url).with(CACHE_CONTROL, "no-cache");
    let answer = transfer.client.ask(&query).await?;
    if answer.meaning() == Meaning::None {
        return Ok(None);
    }
    let answer = answer.done()?;
    answer.number(&CONTENT_LENGTH).map(Some).ok_or(PutError::Answer("has no Content-Length"))
}
