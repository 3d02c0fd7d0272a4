//! The arguments of `wakeai serve`.

use clap::Args;
use wakeai_serve::ServeConfig;

/// Take uploads that resume after any interruption (tus 1.0.0), and keep them in a directory
///
/// An upload's file appears in the directory, under the name that the client told, once all of its bytes are there. What
/// the server has acknowledged is on disk. Addresses other than loopback need TLS and tokens. It runs until SIGTERM or
/// Ctrl-C, and prints its counters on SIGUSR1 and at the end.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wakeai serve uploads                                 on 127.0.0.1:8080, for this machine
  wakeai serve uploads --listen 0.0.0.0:8443 --cert cert.pem --key key.pem --token-file tokens
                                                       for other machines
  wakeai serve uploads --max-size 4GB --quota 100GB    with limits

The token file has a line NAME TOKEN for each client, and only its owner may read it:
  (umask 077; echo \"camera $(openssl rand -hex 32)\" > tokens)

docs/reference/cli.md explains the limits and the counters.")]
pub(crate) struct ServeArguments {
    #[command(flatten)]
    pub(crate) config: ServeConfig,
    /// Print JSON objects, one per line: the address it listens on, and the counters
    #[arg(long)]
    pub(crate) json: bool,
}
