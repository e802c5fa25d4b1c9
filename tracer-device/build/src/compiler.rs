//! Search for a `rustc` that can compile `core` for the device.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::BuildError;

/// Selects the device compiler explicitly: the path of a `rustc` whose sysroot contains `rust-src`.
pub const DEVICE_COMPILER_VARIABLE: &str = "WARPTRACE_RUSTC";

/// Debian's `rustc-web`, which can coexist with rustup's toolchains.
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";

/// Prefix of the names of rustup's toolchains in messages.
const RUSTUPS: &str = "rustup's ";

/// First release whose `nvptx64` target supports the device crate.
const OLDEST_MINOR: u32 = 96;

/// The source of a compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Selected by [`DEVICE_COMPILER_VARIABLE`].
    Variable,
    /// A rustup toolchain with `rust-src`.
    Rustup,
    /// Debian's packages `rustc-web` and `rust-web-src`.
    Debian,
}

/// A compiler for the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiler {
    /// Path of `rustc`.
    pub rustc: PathBuf,
    /// Output of `rustc --version`.
    pub version: String,
    /// The source of the compiler.
    pub origin: Origin,
}

impl Compiler {
    /// Searches in the order that the crate's documentation lists.
    ///
    /// # Errors
    /// [`BuildError::NoCompiler`] with the candidates, or for an unusable [`DEVICE_COMPILER_VARIABLE`].
    pub fn find() -> Result<Self, BuildError> {
        if let Some(named) = std::env::var_os(DEVICE_COMPILER_VARIABLE).filter(|value| !value.is_empty()) {
            return Self::check(Path::new(&named), Origin::Variable).map_err(|reason| {
                BuildError::NoCompiler {
                    tried: format!("{DEVICE_COMPILER_VARIABLE}={} {reason}", Path::new(&named).display()),
                }
            });
        }
        let mut tried = Vec::new();
        for (name, found) in Self::installed() {
            match found {
                Ok(found) => return Ok(found),
                Err(reason) => tried.push(format!("{name} {reason}")),
            }
        }
        if !tried.iter().any(|line| line.starts_with(RUSTUPS)) {
            tried.insert(0, "rustup has no toolchain".to_owned());
        }
        Err(BuildError::NoCompiler { tried: tried.join("; ") })
    }

    /// Returns the usable installed compilers, one per version, in the order of [`find`](Self::find). Ignores
    /// [`DEVICE_COMPILER_VARIABLE`].
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for found in Self::installed().filter_map(|(_, found)| found.ok()) {
            if all.iter().all(|known| known.version != found.version) {
                all.push(found);
            }
        }
        all
    }

    /// Checks the installed compilers in turn. Returns the name, and the compiler or the end of a sentence
    /// that begins with the name.
    fn installed() -> impl Iterator<Item = (String, Result<Self, String>)> {
        let rustup = rustup_toolchains()
            .into_iter()
            .map(|(name, folder)| (format!("{RUSTUPS}`{name}`"), folder.join("bin/rustc"), Origin::Rustup));
        let debian = (DEBIAN_RUSTC.to_owned(), PathBuf::from(DEBIAN_RUSTC), Origin::Debian);
        rustup.chain([debian]).map(|(name, rustc, origin)| (name, Self::check(&rustc, origin)))
    }

    /// Checks one candidate. The error is the end of a sentence that begins with its name.
    fn check(rustc: &Path, origin: Origin) -> Result<Self, String> {
        let output = |argument: &[&str]| {
            Command::new(rustc)
                .args(argument)
                .output()
                .ok()
                .filter(|output| output.status.success())
                .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        };
        let version = output(&["--version"]).ok_or("cannot be run")?;
        if minor(&version).is_none_or(|minor| minor < OLDEST_MINOR) {
            return Err(format!("is {version}, older than 1.{OLDEST_MINOR}"));
        }
        let sysroot = output(&["--print", "sysroot"]).ok_or("does not name its sysroot")?;
        if !Path::new(&sysroot).join("lib/rustlib/src/rust/library/core/src/lib.rs").is_file() {
            return Err("has no rust-src".to_owned());
        }
        Ok(Self { rustc: rustc.to_owned(), version, origin })
    }
}

fn minor(version: &str) -> Option<u32> {
    version.strip_prefix("rustc 1.")?.split('.').next()?.parse().ok()
}

/// Returns names and folders of rustup's toolchains, the active one first.
pub(crate) fn rustup_toolchains() -> Vec<(String, PathBuf)> {
    let Ok(output) = Command::new("rustup").args(["toolchain", "list", "-v"]).output() else {
        return Vec::new();
    };
    let mut toolchains: Vec<(bool, String, PathBuf)> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| {
            let (name, rest) = line.split_once(char::is_whitespace)?;
            let folder = rest.rsplit(char::is_whitespace).next()?;
            folder.starts_with('/').then(|| (!line.contains("active"), name.to_owned(), folder.into()))
        })
        .collect();
    toolchains.sort_by_key(|(inactive, ..)| *inactive);
    toolchains.into_iter().map(|(_, name, folder)| (name, folder)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_minor_version() {
        assert_eq!(minor("rustc 1.96.0 (ac68faa20 2026-05-25)"), Some(96));
        assert_eq!(minor("rustc 1.97.0-nightly (e50aa6fba 2026-05-19)"), Some(97));
        assert_eq!(minor("gcc 12"), None);
    }

    #[test]
    fn a_program_that_is_no_compiler_is_refused_by_reason() {
        let reason = Compiler::check(Path::new("/nonexistent/rustc"), Origin::Variable).expect_err("refused");
        assert_eq!(reason, "cannot be run");
    }
}
