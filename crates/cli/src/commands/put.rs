//! `wakeai put`.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::pin::pin;

use indicatif::{ProgressBar, ProgressStyle};
use wakeai_host::NetnsId;
use wakeai_put::{
    Chunks, Credentials, Protocol, Proxies, PutConfig, PutError, PutProgress, PutReport,
};

use crate::args::PutArguments;
use crate::failure::{Failure, note};
use crate::interrupt::Interrupt;
use crate::output;

/// The environment variable with a token.
const TOKEN: &str = "WAKEAI_TOKEN";
/// The interval at which the command checks whether a signal has come.
const LOOK: std::time::Duration = std::time::Duration::from_millis(50);

pub(crate) fn run(arguments: &PutArguments) -> Result<(), Failure> {
    let config = config(arguments)?;
    let interrupt = Interrupt::install()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Failure::failed)?;
    let bar = bar(arguments.json);
    let mut told = false;
    let mut tell = |progress: PutProgress| {
        if progress.protocol == Some(Protocol::Put) && !told {
            told = true;
            bar.suspend(|| {
                note(format_args!(
                    "this server takes only whole files: after an interruption all of it is sent again"
                ));
            });
        }
        bar.set_length(progress.total);
        bar.set_position(progress.done);
        bar.set_message(if progress.waits { "waits for its turn" } else { "" });
    };
    let asked = async {
        while !interrupt.is_asked() {
            tokio::time::sleep(LOOK).await;
        }
    };
    let done = runtime.block_on(async {
        let asked = pin!(asked);
        wakeai_put::run(&config, asked, &mut tell).await
    });
    bar.finish_and_clear();
    let report = done.map_err(|error| match error {
        PutError::Interrupted => Failure::with_status(interrupt.exit_status(), error),
        error if error.is_usage() => Failure::usage(error),
        error => Failure::failed(error),
    })?;
    if arguments.json {
        return output::json(&report).map(|_| ());
    }
    let rate = report.bytes as f64 * 8e-6 / report.seconds.max(1e-3);
    note(format_args!(
        "{} bytes in {:.1} s ({rate:.1} Mbit/s) over {}, {} pieces, {} resumed, {}: {}{}",
        report.bytes,
        report.seconds,
        <&str>::from(report.protocol),
        report.pieces,
        report.resumes,
        verified(&report),
        report.location,
        report
            .stored_as
            .as_ref()
            .map(|name| format!(", as {}", name.replace(char::is_control, "_")))
            .unwrap_or_default()
    ));
    Ok(())
}

/// What was compared, in words.
fn verified(report: &PutReport) -> String {
    match (report.verified, &report.unverified) {
        (Some(how), _) => format!("verified by {how}"),
        (None, Some(reason)) => format!("not verified ({reason})"),
        (None, None) => "not verified".to_owned(),
    }
}

fn config(arguments: &PutArguments) -> Result<PutConfig, Failure> {
    let (url, zone) = wakeai_put::parse_url(&arguments.url).map_err(Failure::usage)?;
    let chunks = match (arguments.chunks, arguments.chunk_size) {
        (Some(count), _) => Chunks::Count(count),
        (None, Some(size)) => Chunks::Size(size),
        (None, None) => Chunks::Auto,
    };
    Ok(PutConfig {
        file: (arguments.file != Path::new("-")).then(|| arguments.file.clone()),
        url,
        zone,
        name: arguments.name.clone(),
        overwrite: arguments.overwrite,
        chunks,
        protocol: arguments.protocol,
        verify: !arguments.no_verify,
        states: states().filter(|_| !arguments.no_resume),
        credentials: credentials(arguments)?,
        ca: arguments.ca.clone(),
        proxies: Proxies::from_env(),
        algorithm: arguments.algorithm.clone(),
        agent: if arguments.no_turns { None } else { arguments.agent.clone().or_else(agent) },
        timeout: arguments.timeout,
        retry_for: arguments.retry_for,
        spool: arguments.spool_limit,
    })
}

fn credentials(arguments: &PutArguments) -> Result<Option<Credentials>, Failure> {
    let read = |error: PutError| Failure::usage(error);
    if let Some(path) = &arguments.token_file {
        return Credentials::read_token(path).map(Some).map_err(read);
    }
    if let Some(path) = &arguments.user_file {
        return Credentials::read_user(path).map(Some).map_err(read);
    }
    let Ok(token) = std::env::var(TOKEN) else { return Ok(None) };
    let wrong = || Failure::usage(anyhow::anyhow!("{TOKEN} has to hold one token"));
    Credentials::bearer(&token).map(Some).ok_or_else(wrong)
}

/// The directory of the states of unfinished uploads (XDG Base Directory Specification).
fn states() -> Option<PathBuf> {
    let given = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let given = given.filter(|path| path.is_absolute());
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    Some(given.or_else(home)?.join("wakeai/put"))
}

/// The socket of the agent of this network namespace, if the socket exists.
fn agent() -> Option<PathBuf> {
    let netns = NetnsId::current().ok()?;
    let path = wakeai_host::state().join(format!("agent-{}.sock", netns.0));
    path.exists().then_some(path)
}

fn bar(json: bool) -> ProgressBar {
    if json || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let template = "{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta} left {msg}";
    let style = ProgressStyle::with_template(template).expect("the template is valid");
    ProgressBar::new(0).with_style(style)
}
