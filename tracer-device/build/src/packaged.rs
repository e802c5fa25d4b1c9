//! Kernels crates from a registry.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{BuildError, watch};

/// Name of the original manifest in packages that cargo creates.
const ORIGINAL_MANIFEST: &str = "Cargo.toml.orig";

/// Returns a writable folder with the kernels crate: `crate_folder`, or a copy in `out` if the crate is from
/// a registry. Compilation writes a lock file, and a registry's folder must not change. The copy uses the
/// package versions of the surrounding build, so that no further downloads are necessary.
pub(crate) fn writable(crate_folder: &Path, out: &Path) -> Result<PathBuf, BuildError> {
    if !crate_folder.join(ORIGINAL_MANIFEST).is_file() {
        return Ok(crate_folder.to_owned());
    }
    watch::path(crate_folder);
    let copy = out.join("kernels-package");
    if copy.exists() {
        fs::remove_dir_all(&copy).map_err(BuildError::file(&copy))?;
    }
    copy_folder(crate_folder, &copy)?;
    let manifest = copy.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).map_err(BuildError::file(&manifest))?;
    // A separate workspace, independent of its location.
    fs::write(&manifest, text + "\n[workspace]\n").map_err(BuildError::file(&manifest))?;
    if let Some(lock) = watch::lock(out) {
        fs::copy(&lock, copy.join("Cargo.lock")).map_err(BuildError::file(&lock))?;
    }
    Ok(copy)
}

/// Copies a folder with its content. Files are written anew, so that the copies are writable.
fn copy_folder(from: &Path, to: &Path) -> Result<(), BuildError> {
    fs::create_dir_all(to).map_err(BuildError::file(to))?;
    for entry in fs::read_dir(from).map_err(BuildError::file(from))? {
        let entry = entry.map_err(BuildError::file(from))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy_folder(&source, &target)?;
        } else {
            let bytes = fs::read(&source).map_err(BuildError::file(&source))?;
            fs::write(&target, bytes).map_err(BuildError::file(&target))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_of_a_registry_is_copied() {
        let folder = tempfile::tempdir().unwrap();
        let (package, out) = (folder.path().join("package"), folder.path().join("build/out"));
        fs::create_dir_all(package.join("src/deep")).unwrap();
        fs::create_dir_all(&out).unwrap();
        fs::write(package.join("Cargo.toml"), "[package]").unwrap();
        fs::write(package.join("src/deep/file.rs"), "mod a;").unwrap();
        assert_eq!(writable(&package, &out).unwrap(), package, "sources that are being worked on stay");

        fs::write(package.join(ORIGINAL_MANIFEST), "").unwrap();
        fs::write(package.join("Cargo.lock"), "packaged").unwrap();
        let read = |copy: &Path, file: &str| fs::read_to_string(copy.join(file)).unwrap();
        let copy = writable(&package, &out).unwrap();
        assert!(copy.starts_with(&out));
        assert_eq!(read(&copy, "Cargo.toml"), "[package]\n[workspace]\n");
        assert_eq!(read(&copy, "src/deep/file.rs"), "mod a;");
        assert_eq!(read(&copy, "Cargo.lock"), "packaged");

        fs::write(folder.path().join("Cargo.lock"), "the user's").unwrap();
        fs::remove_file(package.join("src/deep/file.rs")).unwrap();
        let copy = writable(&package, &out).unwrap();
        assert_eq!(read(&copy, "Cargo.lock"), "the user's");
        assert!(!copy.join("src/deep/file.rs").exists(), "what the package no longer has is gone");
    }
}
