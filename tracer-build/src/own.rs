//! Kernels in the user's own package: a crate of one file is made around them, in the folder of outputs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::exit;

use crate::BuildError;
use crate::embed::try_compile;

/// Where the package `warptrace` is, as its build script tells the build scripts of packages that depend on it.
const ROOT_VARIABLE: &str = "DEP_WARPTRACE_ROOT";

/// Tells `#[warptrace::kernels]` where the PTX is.
const PTX_VARIABLE: &str = "WARPTRACE_KERNELS_PTX";

/// Compiles the modules of `file` that have `#[warptrace::kernels]` for GPUs, so that their `MODULE` has the
/// code. For the build script of the package that `file` belongs to; a path relative to the package.
///
/// The file may use `core` and `warptrace::device`, and no other part of the package: for the GPU it is the one
/// file of a crate without `std`, which this function writes and compiles with [the device
/// compiler](crate#the-device-compiler). One file a package.
///
/// Without a device compiler a warning says what to do, and the kernels run on the simulator only.
/// `WARPTRACE_NO_DEVICE_CODE=1` asks for that.
///
/// # Exits
/// With the compiler's words, if the kernels do not compile, or if the package does not depend on `warptrace`.
///
/// # Panics
/// Outside a build script, or if a file cannot be written.
pub fn compile(file: impl AsRef<Path>) {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let (Some(package), Some(out)) = (variable("CARGO_MANIFEST_DIR"), variable("OUT_DIR")) else {
        panic!("CARGO_MANIFEST_DIR and OUT_DIR are set: call this from a build script");
    };
    let file = package.join(file);
    println!("cargo::rerun-if-changed={}", file.display());
    println!("cargo::rerun-if-env-changed={ROOT_VARIABLE}");
    if !file.is_file() {
        fail(&format!(
            "{} is no file: name the one with the kernels, relative to the package",
            file.display()
        ));
    }
    let Some(root) = variable(ROOT_VARIABLE) else {
        fail("this package does not depend on `warptrace`: add it to [dependencies] in Cargo.toml");
    };

    let folder = out.join("kernels-crate");
    write(&folder.join("Cargo.toml"), &manifest(&root));
    write(&folder.join("src/lib.rs"), &library(&file));
    // The same versions of packages as the user's build, so that nothing needs to be downloaded for this one.
    if let Some(lock) =
        package.ancestors().map(|folder| folder.join("Cargo.lock")).find(|lock| lock.is_file())
    {
        println!("cargo::rerun-if-changed={}", lock.display());
        if let Ok(text) = fs::read_to_string(&lock) {
            write(&folder.join("Cargo.lock"), &text);
        }
    }
    match try_compile(&folder, "kernels") {
        Ok(ptx) => println!("cargo::rustc-env={PTX_VARIABLE}={}", ptx.display()),
        Err(BuildError::Compile { output, .. }) => fail(&format!(
            "the kernels of {} do not compile for the device, where they may use `core` and `warptrace::device` \
             only:\n{output}",
            file.display()
        )),
        Err(error) => fail(&error.to_string()),
    }
}

/// Ends the build script.
fn fail(message: &str) -> ! {
    eprintln!("{message}");
    exit(1)
}

/// Writes a file, unless it has that text already: its time decides what is compiled again.
fn write(path: &Path, text: &str) {
    if fs::read_to_string(path).is_ok_and(|found| found == text) {
        return;
    }
    let folder = path.parent().unwrap_or(path);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(path, text));
    written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// The crate's manifest. A workspace of its own, wherever it stands.
fn manifest(root: &Path) -> String {
    format!(
        "[package]\nname = \"kernels\"\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\n\
         [dependencies]\nwarptrace = {{ path = {} }}\n\n[workspace]\n",
        quoted(root)
    )
}

/// The crate's one source file.
fn library(file: &Path) -> String {
    format!(
        "#![no_std]\n#![feature(abi_ptx, asm_experimental_arch)]\n\n#[path = {}]\npub mod kernels;\n",
        quoted(file)
    )
}

/// A path as a string of Rust and of TOML.
fn quoted(path: &Path) -> String {
    let escaped = path.display().to_string().replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_when_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/file");
        write(&path, "one");
        let time = || path.metadata().unwrap().modified().unwrap();
        let before = time();
        write(&path, "one");
        assert_eq!(time(), before);
        write(&path, "two");
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
    }

    #[test]
    fn paths_are_quoted() {
        assert_eq!(quoted(Path::new("/a b/\"c\"\\d")), r#""/a b/\"c\"\\d""#);
        assert!(library(Path::new("/k.rs")).contains("#[path = \"/k.rs\"]"));
    }
}
