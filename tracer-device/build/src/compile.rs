//! Compilation of a kernels crate.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{BuildError, Compiler, Diagnostic};

const TARGET: &str = "nvptx64-nvidia-cuda";
/// The oldest architecture that the PTX supports: the first with independent thread scheduling.
const CPU: &str = "sm_70";
/// PTX ISA 6.3: it has every instruction in use. It is also the last version with votes of the active lanes
/// without an explicit mask, which recording uses where possible (see `warptrace-ptx`).
const ISA: &str = "+ptx63";

/// Maximum instructions of a partially unrolled loop. LLVM's default stops at 2 iterations of the N-body
/// loop, which nvcc unrolls 4 times.
const UNROLL: &str = "-unroll-partial-threshold=150";

/// Settings of the outer build that must not affect the inner one.
const OUTER_SETTINGS: &[&str] = &[
    "RUSTFLAGS",
    "CARGO_ENCODED_RUSTFLAGS",
    "RUSTC",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "CARGO_BUILD_TARGET",
    "CARGO_BUILD_RUSTC",
    "CARGO_BUILD_RUSTFLAGS",
    "CARGO_BUILD_RUSTC_WRAPPER",
    "CARGO_BUILD_BUILD_DIR",
    "CARGO_INCREMENTAL",
    "CARGO_MAKEFLAGS",
    "MAKEFLAGS",
    "RUSTDOCFLAGS",
];

/// Set in builds that this crate starts, to detect a build script that would start itself.
pub(crate) const INSIDE_VARIABLE: &str = "WARPTRACE_INSIDE_DEVICE_BUILD";

/// Input and output of a compilation.
#[derive(Clone, Debug)]
pub struct Build {
    /// Folder of the kernels crate, which contains `Cargo.toml`.
    pub crate_folder: PathBuf,
    /// Folder for the build outputs of the kernels crate.
    pub output_folder: PathBuf,
    /// Folder for outputs of `core` and other packages, compiled once for all compilations that share it.
    pub shared_folder: PathBuf,
    /// Name of the PTX file, without extension.
    pub name: String,
    /// Features to enable, of the crate or (`package/feature`) of a dependency.
    pub features: Vec<String>,
}

/// A compiled module.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The PTX file.
    pub ptx: PathBuf,
    /// The sources of the module, without `core`.
    pub sources: Vec<PathBuf>,
}

impl Build {
    /// Compiles the crate. Fails if a folder cannot be created, or if the compiler cannot be run or reports
    /// errors. The error contains its messages.
    pub fn compile(&self, compiler: &Compiler) -> Result<Compiled, BuildError> {
        let cargo = std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from);
        let target_folder = self.output_folder.join("target");
        std::fs::create_dir_all(&self.output_folder).map_err(BuildError::file(&self.output_folder))?;
        let ptx = self.output_folder.join(format!("{}.ptx", self.name));
        let mut command = Command::new(&cargo);
        for setting in OUTER_SETTINGS {
            command.env_remove(setting);
        }
        command
            .current_dir(&self.crate_folder)
            .env("RUSTC", &compiler.rustc)
            .env("RUSTC_BOOTSTRAP", "1")
            .env(INSIDE_VARIABLE, "1")
            .env("CARGO_TARGET_DIR", &target_folder)
            .env("CARGO_BUILD_BUILD_DIR", &self.shared_folder)
            .args(["rustc", "--quiet", "--release", "--lib", "--crate-type", "cdylib", "--target", TARGET])
            .arg("--message-format=json")
            // A panic becomes an inline trap. A call would cost registers, and more in a traced kernel.
            .args(["-Zbuild-std=core", "-Zpanic-immediate-abort"])
            .args(["--config", "profile.release.lto=\"fat\""])
            .args(["--config", "profile.release.panic=\"immediate-abort\""])
            .args(["--config", "profile.release.codegen-units=1"])
            .args(["--config", "profile.release.debug=false"])
            .args(["--config", "profile.release.strip=true"]);
        for feature in &self.features {
            command.args(["--features", feature]);
        }
        command
            .args(["--", &format!("--emit=asm={}", ptx.display())])
            .args(["-C", &format!("target-cpu={CPU}"), "-C", &format!("target-feature={ISA}")])
            .args(["-C", &format!("llvm-args={UNROLL}")])
            // LTO makes one module, so any program that succeeds can be the linker.
            .args(["-C", "linker=true", "-C", "linker-flavor=llbc"]);
        let output = command.output().map_err(BuildError::start(&cargo))?;
        if !output.status.success() {
            let errors = Diagnostic::read(&String::from_utf8_lossy(&output.stdout));
            return Err(BuildError::Compile {
                crate_folder: self.crate_folder.clone(),
                output: words(&errors, &String::from_utf8_lossy(&output.stderr)),
                errors,
            });
        }
        let release = target_folder.join(TARGET).join("release");
        let dep_info = newest(&release, "d")?;
        let text = std::fs::read_to_string(&dep_info).map_err(BuildError::file(&dep_info))?;
        Ok(Compiled { ptx, sources: sources(&text) })
    }
}

/// Returns the compiler's errors, or cargo's output if the compiler did not run.
fn words(errors: &[Diagnostic], said: &str) -> String {
    if errors.is_empty() {
        return said.trim().to_owned();
    }
    errors.iter().map(|error| error.text.as_str()).collect::<Vec<_>>().join("\n\n")
}

fn newest(folder: &Path, extension: &str) -> Result<PathBuf, BuildError> {
    let entries = std::fs::read_dir(folder).map_err(BuildError::file(folder))?;
    entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .max_by_key(|path| path.metadata().and_then(|found| found.modified()).ok())
        .ok_or_else(|| BuildError::NoOutput { folder: folder.to_owned() })
}

/// Parses the prerequisites in a file of make rules. Spaces in paths are escaped as `\ `.
fn sources(rules: &str) -> Vec<PathBuf> {
    let Some((_, prerequisites)) = rules.lines().next().and_then(|line| line.split_once(": ")) else {
        return Vec::new();
    };
    let mut sources = Vec::new();
    let mut path = String::new();
    let mut characters = prerequisites.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => path.extend(characters.next()),
            ' ' => sources.push(std::mem::take(&mut path)),
            other => path.push(other),
        }
    }
    sources.push(path);
    sources.into_iter().filter(|path| !path.is_empty()).map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_make_rules_with_blanks_in_paths() {
        let found = sources("/t/k.ptx: /a/lib.rs /a/my\\ kernel.rs /b/c.rs\n\n/a/lib.rs:\n");
        assert_eq!(found, ["/a/lib.rs", "/a/my kernel.rs", "/b/c.rs"].map(PathBuf::from));
        assert_eq!(sources(""), Vec::<PathBuf>::new());
    }
}
