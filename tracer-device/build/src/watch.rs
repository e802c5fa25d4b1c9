//! What has a build script run again. Cargo takes a file that is not there for one that has changed, each
//! time: so only what exists is named.

use std::path::{Path, PathBuf};

use crate::{BuildError, Compiler, compiler};

/// Changes with each package that is installed: what to look at while Debian's compiler is missing.
const DEBIAN_PACKAGES: &str = "/var/lib/dpkg/status";

/// Has the build script run again when a file or folder changes that is there now.
pub(crate) fn path(path: &Path) {
    if path.exists() {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}

/// Has the build script run again when another device compiler might be found.
pub(crate) fn compiler(found: &Result<Compiler, BuildError>) {
    match found {
        Ok(found) => {
            path(&found.rustc);
            components(found.rustc.ancestors().nth(2));
        }
        Err(_) => {
            let toolchains = compiler::rustup_toolchains();
            toolchains.iter().for_each(|(_, folder)| components(Some(folder)));
            // Rustup writes a file there for each toolchain.
            let rustup = toolchains.first().and_then(|(_, folder)| folder.ancestors().nth(2));
            path(&rustup.unwrap_or(Path::new("")).join("update-hashes"));
            path(Path::new(DEBIAN_PACKAGES));
        }
    }
}

/// Looks at the list of a toolchain's components, among them `rust-src`.
fn components(toolchain: Option<&Path>) {
    if let Some(folder) = toolchain {
        path(&folder.join("lib/rustlib/components"));
    }
}

/// The `Cargo.lock` of the build that this build script is part of: the one nearest to the folder of its
/// outputs.
pub(crate) fn lock(out: &Path) -> Option<PathBuf> {
    out.ancestors().map(|folder| folder.join("Cargo.lock")).find(|lock| lock.is_file())
}
