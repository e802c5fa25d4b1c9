//! File and folder operations whose errors contain the path.

use std::fs::{self, File};
use std::path::Path;

use anyhow::Context;
use tempfile::TempDir;

pub(crate) fn make_folder(path: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(path).with_context(|| format!("cannot create {}", path.display()))
}

pub(crate) fn create(path: &Path) -> anyhow::Result<File> {
    File::create(path).with_context(|| format!("cannot create {}", path.display()))
}

pub(crate) fn write(path: &Path, text: impl AsRef<[u8]>) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Creates a temporary folder for traces in `named` or in the system's folder. Removed when dropped.
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
