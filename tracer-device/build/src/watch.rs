//! Conditions for a rerun of the build script. Cargo treats a missing file as changed on every build, so only
//! existing files are listed.

use std::path::{Path, PathBuf};

use crate::{BuildError, Compiler, compiler};

/// Changes with each installed package. Watched while no compiler is found.
const DEBIAN_PACKAGES: &str = "/var/lib/dpkg/status";

/// Makes cargo rerun the build script when this file or folder changes, if it exists.
pub(crate) fn path(path: &Path) {
    if path.exists() {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}

/// Makes cargo rerun the build script when the device compiler may have changed. Watches its `rustc` and its
/// toolchain's component list; without a compiler, all rustup toolchains and Debian packages.
pub(crate) fn compiler(found: &Result<Compiler, BuildError>) {
    match found {
        Ok(found) => {
            path(&found.rustc);
            components(found.rustc.ancestors().nth(2));
        }
        Err(_) => {
            let toolchains = compiler::rustup_toolchains();
            toolchains.iter().for_each(|(_, folder)| components(Some(folder)));
            // Rustup writes a file for each toolchain into its folder `update-hashes`.
            let rustup = toolchains.first().and_then(|(_, folder)| folder.ancestors().nth(2));
            path(&rustup.unwrap_or(Path::new("")).join("update-hashes"));
            path(Path::new(DEBIAN_PACKAGES));
        }
    }
}

/// Watches the list of a toolchain's installed components. Installing `rust-src` adds a line to it.
fn components(toolchain: Option<&Path>) {
    if let Some(folder) = toolchain {
        path(&folder.join("lib/rustlib/components"));
    }
}

/// Returns the `Cargo.lock` of the current build: the one nearest to the output folder.
pub(crate) fn lock(out: &Path) -> Option<PathBuf> {
    out.ancestors().map(|folder| folder.join("Cargo.lock")).find(|lock| lock.is_file())
}
