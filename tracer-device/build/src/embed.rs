//! Compilation from build scripts. Writes the code to a file that the crate can include.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::compile::INSIDE_VARIABLE;
use crate::ptxas::ARCHITECTURES;
use crate::{Build, BuildError, Compiler, DEVICE_COMPILER_VARIABLE, Ptxas, packaged, watch};

/// Path of a lock file. Build scripts search for the device compiler when they can lock it: `cargo xtask
/// demo` holds the lock while it installs the compiler.
pub const SETUP_LOCK_VARIABLE: &str = "WARPTRACE_SETUP_LOCK";

/// Skips the compilation, which leaves the PTX empty.
const SKIP_VARIABLE: &str = "WARPTRACE_NO_DEVICE_CODE";

/// Compiles `crate_folder` for the device and writes `$OUT_DIR/NAME.ptx`.
///
/// Without a device compiler, the file is empty and cargo shows a warning. `WARPTRACE_NO_DEVICE_CODE=1`
/// leaves it empty intentionally.
///
/// # Panics
/// If kernels do not compile, a file cannot be written, or the function runs outside of a build script.
pub fn embed(crate_folder: &Path, name: &str) {
    compile(crate_folder, name);
}

/// Like [`embed`], and assembles the PTX for the architectures in wide use, if NVIDIA's assembler is
/// installed. The driver then does not need to assemble it when a program first runs. Returns the
/// architectures (`90` for `sm_90`) and the files with their code; empty without an assembler.
///
/// - `limits` sets the maximum registers of the named kernels.
/// - `workspace` is the folder that may contain the assembler from `cargo xtask setup`.
///
/// # Panics
/// As for [`embed`]; also if a kernel in `limits` does not exist.
pub fn embed_assembled(
    crate_folder: &Path,
    name: &str,
    limits: &[(&str, u32)],
    workspace: &Path,
) -> Vec<(u32, PathBuf)> {
    let ptx = compile(crate_folder, name);
    limit_registers(&ptx, limits);
    watch::path(&workspace.join(crate::TOOLCHAIN_FOLDER));
    let Ok(ptxas) = Ptxas::find(workspace) else { return Vec::new() };
    if ptx.metadata().map_or(0, |file| file.len()) == 0 {
        return Vec::new();
    }
    let mut cubins = Vec::new();
    for architecture in ARCHITECTURES {
        match ptxas.assemble(&ptx, architecture) {
            Ok(_) => {
                let number = architecture.trim_start_matches("sm_").parse().expect("a number");
                cubins.push((number, Ptxas::cubin(&ptx, architecture)));
            }
            // This assembler does not support the architecture. The driver will assemble the PTX.
            Err(error) => println!("cargo::warning=not assembled for {architecture}: {error}"),
        }
    }
    cubins
}

fn limit_registers(ptx: &Path, limits: &[(&str, u32)]) {
    let problem = |error: &dyn std::fmt::Display| -> ! { panic!("{}: {error}", ptx.display()) };
    let mut text = std::fs::read_to_string(ptx).unwrap_or_else(|error| problem(&error));
    if text.is_empty() {
        return;
    }
    for (kernel, registers) in limits {
        let body = text
            .find(&format!(".entry {kernel}("))
            .and_then(|entry| text[entry..].find("\n{").map(|body| entry + body))
            .unwrap_or_else(|| problem(&format!("there is no kernel `{kernel}`")));
        text.insert_str(body, &format!("\n.maxnreg {registers}"));
    }
    std::fs::write(ptx, text).unwrap_or_else(|error| problem(&error));
}

fn compile(crate_folder: &Path, name: &str) -> PathBuf {
    try_compile(crate_folder, name).unwrap_or_else(|error| panic!("{error}"))
}

/// Like [`compile`], but returns compilation errors. Panics outside of a build script, in a build that this
/// crate started, or if a file cannot be written.
pub(crate) fn try_compile(crate_folder: &Path, name: &str) -> Result<PathBuf, BuildError> {
    let out: PathBuf =
        std::env::var_os("OUT_DIR").expect("OUT_DIR is set: call this from a build script").into();
    assert!(
        std::env::var_os(INSIDE_VARIABLE).is_none(),
        "the kernels crate {} depends on a package whose build script compiles kernels, perhaps on itself: \
         this would not end. Keep kernels in a package without such a build script, or call \
         `warptrace_build::compile` with the file of the kernels",
        crate_folder.display()
    );
    for variable in [DEVICE_COMPILER_VARIABLE, SKIP_VARIABLE, "PATH", "RUSTUP_HOME"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    depend_on(&crate_folder.join("Cargo.toml"), &out);
    let path = out.join(format!("{name}.ptx"));
    let skips = std::env::var_os(SKIP_VARIABLE).is_some_and(|value| !value.is_empty() && value != "0");
    let text = if skips {
        String::new()
    } else {
        await_setup();
        let compiler = Compiler::find();
        watch::compiler(&compiler);
        match compiler {
            Ok(compiler) => run(&compiler, &packaged::writable(crate_folder, &out)?, &out, name)?,
            Err(error) => {
                println!("cargo::warning=building without GPU code: {error}");
                String::new()
            }
        }
    };
    std::fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Ok(path)
}

fn await_setup() -> Option<()> {
    let file = File::open(std::env::var_os(SETUP_LOCK_VARIABLE)?).ok()?;
    file.lock_shared().ok()
}

/// Makes cargo rerun the build script when a file changes, unless the script itself wrote it into `out`. Such
/// a file is always newer than the run that wrote it.
fn depend_on(file: &Path, out: &Path) {
    if !file.starts_with(out) {
        println!("cargo::rerun-if-changed={}", file.display());
    }
}

fn run(compiler: &Compiler, crate_folder: &Path, out: &Path, name: &str) -> Result<String, BuildError> {
    let build = Build {
        crate_folder: crate_folder.to_owned(),
        output_folder: out.join("device"),
        shared_folder: shared_folder(out),
        name: name.to_owned(),
        features: Vec::new(),
    };
    let compiled = build.compile(compiler)?;
    for source in &compiled.sources {
        depend_on(source, out);
    }
    std::fs::read_to_string(&compiled.ptx).map_err(BuildError::file(&compiled.ptx))
}

/// Returns the folder that all device compilations share, in the outermost cargo-tagged folder around `out`.
fn shared_folder(out: &Path) -> PathBuf {
    let is_cargos = |folder: &&Path| {
        std::fs::read_to_string(folder.join("CACHEDIR.TAG")).is_ok_and(|tag| tag.contains("created by cargo"))
    };
    out.ancestors().filter(is_cargos).last().unwrap_or(out).join("device")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilations_below_one_target_folder_share() {
        let root = tempfile::tempdir().expect("a folder");
        let inner = root.path().join("target/tests/target");
        let out = inner.join("debug/build/kernels-1/out");
        std::fs::create_dir_all(&out).expect("folders");
        assert_eq!(shared_folder(&out), out.join("device"), "no folder of cargo's");
        for target in [inner, root.path().join("target")] {
            std::fs::write(target.join("CACHEDIR.TAG"), "# a tag created by cargo.\n").expect("a tag");
            assert_eq!(shared_folder(&out), target.join("device"));
        }
        std::fs::write(root.path().join("CACHEDIR.TAG"), "# Another's.\n").expect("a tag");
        assert_eq!(shared_folder(&out), root.path().join("target/device"), "only cargo's folders count");
    }
}
