//! Kernels crates that come from a registry.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{BuildError, watch};

/// Cargo leaves the manifest as it was written under this name in packages that it makes.
const ORIGINAL_MANIFEST: &str = "Cargo.toml.orig";

/// Returns a folder with the kernels crate that may be written to: `crate_folder`, or a copy in `out` of a
/// crate that comes from a registry. There nothing may be written, and compiling writes a lock file.
///
/// The copy takes the versions of packages that the build around it has, so that nothing more is downloaded.
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
    // A workspace of its own, wherever it stands.
    fs::write(&manifest, text + "\n[workspace]\n").map_err(BuildError::file(&manifest))?;
    if let Some(lock) = watch::lock(out) {
        fs::copy(&lock, copy.join("Cargo.lock")).map_err(BuildError::file(&lock))?;
    }
    Ok(copy)
}

/// Copies a folder with all that is in it. Files are written anew, so that they are no one else's and can be
/// changed.
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
