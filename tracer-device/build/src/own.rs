//! Compilation of kernels in the user's own package, in a crate generated in the output folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::embed::try_compile;
use crate::{BuildError, Diagnostic, watch};

/// Folder of the package `warptrace`, whose build script exports it to build scripts of dependent packages.
const ROOT_VARIABLE: &str = "DEP_WARPTRACE_ROOT";

/// Path of the PTX for `#[warptrace::kernels]`. The same folder contains a list of the compiled files
/// (`.files`, one per line) and, if compilation failed, the compiler's errors (`.error`: see [`Diagnostic`]).
const PTX_VARIABLE: &str = "WARPTRACE_KERNELS_PTX";

/// Compiles the modules with `#[warptrace::kernels]` in `file` for GPUs, so that their `MODULE` contains the
/// code. Call it in the build script of the package that contains `file`. The path is relative to the
/// package. For several files, use [`compile_all`].
///
/// The file may use `core` and `warptrace::device`, but no other part of the package. For the GPU it becomes
/// part of a crate without `std`, which this function generates and compiles with [the device
/// compiler](crate#the-device-compiler).
///
/// Without a device compiler, a warning explains what to do, and the kernels run only on the simulator.
/// `WARPTRACE_NO_DEVICE_CODE=1` selects this intentionally.
///
/// # Errors
/// Errors are build errors. Kernels that do not compile do not fail the build script: the package's compiler
/// reports most mistakes itself, and the device compiler's errors at the user's line.
///
/// # Panics
/// Outside of a build script, or if a file cannot be written.
pub fn compile(file: impl AsRef<Path>) {
    compile_all([file]);
}

/// Like [`compile`](fn@compile), for several files: `compile_all(["src/sort.rs", "src/scan.rs"])`. They form
/// one program on the GPU, so kernel names must be unique.
///
/// # Errors and panics
/// As for [`compile`](fn@compile). Also an error if it is called twice, or without files.
pub fn compile_all<P: AsRef<Path>>(files: impl IntoIterator<Item = P>) {
    static IS_DONE: AtomicBool = AtomicBool::new(false);
    if IS_DONE.swap(true, Ordering::Relaxed) {
        fail(
            "kernels are compiled once for a package: name all files in one call, \
             `warptrace_build::compile_all([\"src/one.rs\", \"src/two.rs\"])`",
        );
    }
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let (Some(package), Some(out)) = (variable("CARGO_MANIFEST_DIR"), variable("OUT_DIR")) else {
        panic!("CARGO_MANIFEST_DIR and OUT_DIR are set: call this from a build script");
    };
    let files: Vec<PathBuf> = files.into_iter().map(|file| package.join(file)).collect();
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={ROOT_VARIABLE}");
    for file in &files {
        println!("cargo::rerun-if-changed={}", file.display());
        if !file.is_file() {
            fail(&format!(
                "{} is no file: name the one with the kernels, relative to the package",
                file.display()
            ));
        }
    }
    for (file, text) in files.iter().filter_map(|file| Some((file, fs::read_to_string(file).ok()?))) {
        if let Some(problem) = no_kernels(&text) {
            let file = file.strip_prefix(&package).unwrap_or(file);
            fail(&format!("{} {problem}", file.display()));
        }
    }
    if files.is_empty() {
        fail("no file was named: `warptrace_build::compile(\"src/kernels.rs\")`");
    }
    let Some(root) = variable(ROOT_VARIABLE) else {
        fail("this package does not depend on `warptrace`: add it to [dependencies] in Cargo.toml");
    };

    let folder = out.join("kernels-crate");
    write(&folder.join("Cargo.toml"), &manifest(&root));
    write(&folder.join("src/lib.rs"), &library(&files));
    // Uses the package versions of the user's build, so that no further downloads are necessary.
    let lock = package.ancestors().map(|folder| folder.join("Cargo.lock")).find(|lock| lock.is_file());
    if let Some(lock) = lock.or_else(|| watch::lock(&out)) {
        println!("cargo::rerun-if-changed={}", lock.display());
        if let Ok(text) = fs::read_to_string(&lock) {
            write(&folder.join("Cargo.lock"), &text);
        }
    }
    let ptx = out.join("kernels.ptx");
    let compiled: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    write(&ptx.with_extension("files"), &compiled.join("\n"));
    let error = match try_compile(&folder, "kernels") {
        Ok(_) => String::new(),
        Err(BuildError::Compile { output, errors, .. }) if errors.is_empty() => {
            Diagnostic::write(&[Diagnostic { text: output, ..Diagnostic::default() }], &package)
        }
        Err(BuildError::Compile { errors, .. }) => Diagnostic::write(&errors, &package),
        Err(error) => fail(&error.to_string()),
    };
    if !error.is_empty() {
        write(&ptx, "");
    }
    write(&ptx.with_extension("error"), &error);
    println!("cargo::rustc-env={PTX_VARIABLE}={}", ptx.display());
}

/// Explains why a source cannot be compiled as kernels, as the end of a sentence. Returns `None` if it can.
fn no_kernels(text: &str) -> Option<&'static str> {
    let is_main = |line: &str| line.starts_with("fn main(") || line.starts_with("pub fn main(");
    let has_kernels = |line: &str| line.trim_start().starts_with("#[") && line.contains("kernels");
    if text.lines().any(is_main) {
        Some(
            "is the program, which has `std`: move the module with #[warptrace::kernels] to a file of its own, such as \
             src/kernels.rs, and name that in build.rs",
        )
    } else if !text.lines().any(has_kernels) {
        Some("has no module with #[warptrace::kernels]: name the file that has it in build.rs")
    } else {
        None
    }
}

/// Ends the build script with an error. Cargo shows only the message.
fn fail(message: &str) -> ! {
    for line in message.lines() {
        println!("cargo::error={line}");
    }
    exit(0)
}

/// Writes a file, unless it has that text already. Its modification time determines recompilation.
fn write(path: &Path, text: &str) {
    if fs::read_to_string(path).is_ok_and(|found| found == text) {
        return;
    }
    let folder = path.parent().unwrap_or(path);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(path, text));
    written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// Returns the crate's manifest. It is a separate workspace, independent of its location.
fn manifest(root: &Path) -> String {
    format!(
        "[package]\nname = \"kernels\"\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\n\
         [dependencies]\nwarptrace = {{ path = {} }}\n\n[workspace]\n",
        quoted(root)
    )
}

fn library(files: &[PathBuf]) -> String {
    let mut text = String::from("#![no_std]\n#![feature(abi_ptx, asm_experimental_arch)]\n");
    for (number, file) in files.iter().enumerate() {
        text += &format!("\n#[path = {}]\npub mod kernels_{number};\n", quoted(file));
    }
    text
}

/// Quotes a path as a string literal of Rust and TOML.
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
    fn programs_and_files_without_kernels_are_refused() {
        let module = "use a;\n  #[warptrace::kernels(first_id = 7)]\npub mod b {}\n";
        assert_eq!(no_kernels(module), None);
        assert!(
            no_kernels("mod kernels;\n\nfn main() {}\n")
                .is_some_and(|found| found.contains("file of its own"))
        );
        assert!(
            no_kernels(&format!("{module}fn main() {{}}"))
                .is_some_and(|found| found.contains("file of its own"))
        );
        assert!(
            no_kernels("// kernels\nfn helper() {}").is_some_and(|found| found.contains("has no module"))
        );
    }

    #[test]
    fn paths_are_quoted() {
        assert_eq!(quoted(Path::new("/a b/\"c\"\\d")), r#""/a b/\"c\"\\d""#);
        let library = library(&["/k.rs".into(), "/l.rs".into()]);
        assert!(library.ends_with(
            "\n#[path = \"/k.rs\"]\npub mod kernels_0;\n\n#[path = \"/l.rs\"]\npub mod kernels_1;\n"
        ));
    }
}
