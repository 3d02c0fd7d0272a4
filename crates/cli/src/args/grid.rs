//! The arguments of `wakeai grid`.

use std::ffi::OsString;

use clap::Args;

/// Simulate a scenario with every combination of values of some keys
///
/// The command is part of the Python package `wakeai` and runs it with `python3`, or with the
/// interpreter that `WAKEAI_PYTHON` names. It exits with 77 where that has no such package. A grid that
/// was cut goes on where it was when the same command is given again.
#[derive(Debug, Args)]
#[command(
    disable_help_flag = true,
    override_usage = "wakeai grid FILE --set KEY=A,B,C [--repeat N] [--jobs N | --dask ADDRESS] --out DIR"
)]
pub(crate) struct GridArguments {
    /// The scenario and the options; `wakeai grid --help` shows those of the installed package
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    pub(crate) arguments: Vec<OsString>,
}
