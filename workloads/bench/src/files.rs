//! Files and folders; errors name them.

use std::fs::{self, File};
use std::path::Path;

use anyhow::Context;
use tempfile::TempDir;

/// Makes a folder and those that it lies in.
pub(crate) fn make_folder(path: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(path).with_context(|| format!("cannot create {}", path.display()))
}

/// Creates a file.
pub(crate) fn create(path: &Path) -> anyhow::Result<File> {
    File::create(path).with_context(|| format!("cannot create {}", path.display()))
}

/// Writes a whole file.
pub(crate) fn write(path: &Path, text: impl AsRef<[u8]>) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Makes a folder for traces, in the one that was named or in the system's; it is removed in the end.
pub(crate) fn scratch(named: Option<&Path>) -> anyhow::Result<TempDir> {
    let folder = match named {
        Some(folder) => {
            make_folder(folder)?;
            tempfile::tempdir_in(folder)
        }
        None => tempfile::tempdir(),
    };
    folder.context("cannot create a folder for traces; name another with --scratch")
}
