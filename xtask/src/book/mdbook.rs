//! mdBook, installed into the target folder.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::process::quietly;
use crate::workspace;

/// Version of mdBook. Its settings and HTML differ between versions.
const VERSION: &str = "0.5.4";
const LIMIT: Duration = Duration::from_secs(1200);

/// Installs mdBook into the target folder if it is missing: changes of `.toolchain/` recompile all kernels.
/// It is built without optimisation, which takes a third of the time.
pub(super) fn set_up() -> anyhow::Result<()> {
    if find().is_ok() {
        return Ok(());
    }
    let program = program()?;
    println!("installing mdbook {VERSION} with cargo, which takes some minutes ...");
    let root = program.parent().and_then(|bin| bin.parent()).context("the target folder has no parent")?;
    let mut command = workspace::cargo();
    command
        .args(["install", "mdbook", "--version", &format!("={VERSION}"), "--locked", "--debug", "--quiet"])
        .args(["--no-default-features", "--features", "search", "--root"])
        .arg(root);
    let ended = quietly(&mut command, LIMIT).context("cannot run cargo")?;
    if !ended.success {
        bail!("`cargo install mdbook` failed: {}", ended.said);
    }
    Ok(())
}

/// Checks that mdBook is installed. The error names the command to install it.
pub(super) fn find() -> anyhow::Result<()> {
    let program = program()?;
    if program.is_file() {
        return Ok(());
    }
    bail!("there is no mdBook at {}: `cargo xtask book` installs it", workspace::shown(&program))
}

pub(super) fn program() -> anyhow::Result<PathBuf> {
    let name = format!("mdbook{}", std::env::consts::EXE_SUFFIX);
    Ok(workspace::target()?.join("tools").join(format!("mdbook-{VERSION}")).join("bin").join(name))
}
