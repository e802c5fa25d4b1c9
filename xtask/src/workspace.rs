//! Paths of the workspace, and cargo.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace's root")
}

pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Returns true if cargo has the subcommand `name` (`nextest`, `fuzz`).
pub(crate) fn has_subcommand(name: &str) -> bool {
    cargo().args([name, "--version"]).output().is_ok_and(|output| output.status.success())
}

/// Returns cargo's target folder, wherever settings have put it. This program is in it, under its profile.
pub(crate) fn target() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let target =
        program.parent().and_then(Path::parent).context("this program lies outside a target folder")?;
    Ok(target.to_owned())
}

/// Returns the files of the repository, relative to its root: tracked, or new and not ignored by git.
pub(crate) fn files() -> anyhow::Result<BTreeSet<String>> {
    let mut command = Command::new("git");
    command.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(root());
    let output = command.output().context("cannot run git")?;
    anyhow::ensure!(
        output.status.success(),
        "git ls-files: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let names = String::from_utf8(output.stdout).context("a file's name is not UTF-8")?;
    // Git also lists files that were just removed.
    Ok(names.split_terminator('\0').filter(|name| root().join(name).is_file()).map(str::to_owned).collect())
}

/// Returns `path` relative to the root of the workspace, for messages.
pub(crate) fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}
