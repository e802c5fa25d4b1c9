//! Starts `warptrace-query` from `warptrace`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};

use crate::arguments::{Command, Page};
use crate::output::shown_name;

/// File name of the program, which is next to `warptrace` or in the `PATH`.
const PROGRAM: &str = "warptrace-query";
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Environment variable in which `warptrace` passes its version.
const CALLER: &str = "WARPTRACE_QUERY_CALLER";

/// Returns true if `warptrace-query` executes the command.
pub(crate) fn is_for(command: &Command) -> bool {
    let asks_workers = |page: &Page| !page.apart.workers.is_empty();
    match command {
        Command::Query(_) | Command::Worker(_) => true,
        Command::Top(page) => asks_workers(page),
        Command::Stats(command) => asks_workers(&command.page),
        Command::Causes(rows) => asks_workers(&rows.page),
        Command::Lines(rows) => asks_workers(&rows.page),
        Command::Loops(rows) => asks_workers(&rows.page),
        Command::Edges(rows) => asks_workers(&rows.page),
        _ => false,
    }
}

/// Replaces this process by `warptrace-query` with the same arguments, or runs it as a child where `exec`
/// does not exist. Fails if the program is missing or cannot be run.
pub(crate) fn replace() -> anyhow::Result<ExitCode> {
    let Some(path) = program() else {
        bail!(
            "`{PROGRAM}` is neither beside this program nor in the PATH: the Python wheel has it (`cargo xtask wheel`), \
             and `cargo install --path cli/tool --features query` builds it"
        );
    };
    let mut command = std::process::Command::new(&path);
    command.args(std::env::args_os().skip(1)).env(CALLER, VERSION);
    let cannot = || format!("cannot run {}", shown_name(&path));
    #[cfg(unix)]
    return Err(std::os::unix::process::CommandExt::exec(&mut command)).with_context(cannot);
    #[cfg(not(unix))]
    {
        let code = command.status().with_context(cannot)?.code();
        Ok(ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(crate::exit::ERROR)))
    }
}

fn program() -> Option<PathBuf> {
    let name = format!("{PROGRAM}{}", std::env::consts::EXE_SUFFIX);
    let this = std::env::current_exe().and_then(|this| this.canonicalize()).ok();
    let beside = this.as_deref().and_then(Path::parent).map(Path::to_path_buf);
    let paths = std::env::var_os("PATH").unwrap_or_default();
    // An empty entry would be the current folder.
    let paths = std::env::split_paths(&paths).filter(|folder| folder.is_absolute()).collect::<Vec<_>>();
    beside.into_iter().chain(paths).map(|folder| folder.join(&name)).find(|path| path.is_file())
}

/// Fails if a `warptrace` of another version started this program.
#[cfg(feature = "query")]
pub(crate) fn check_caller() -> anyhow::Result<()> {
    match std::env::var(CALLER) {
        Ok(caller) if caller != VERSION => bail!(
            "this is `{PROGRAM}` {VERSION}, and warptrace {} called it: install both of one version",
            shown_name(&caller)
        ),
        _ => Ok(()),
    }
}
