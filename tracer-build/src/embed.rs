//! For build scripts: compile all variants and write the table that the crate includes.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::{Build, BuildError, Compiler, DEVICE_COMPILER_VARIABLE, Variant};

/// Skips the compilation: the table stays empty.
const SKIP_VARIABLE: &str = "WARPTRACE_NO_DEVICE_CODE";

/// Compiles `crate_folder` for the device, once for each variant, and writes `$OUT_DIR/ptx_table.rs`: an
/// expression of type `&'static [PtxModule]`.
///
/// Without a device compiler the table is empty and cargo shows a warning. Set `WARPTRACE_NO_DEVICE_CODE=1` to
/// leave it empty on purpose.
///
/// # Panics
/// In a build script that is the way to fail: when kernels do not compile, or outside a build script.
pub fn embed(crate_folder: &Path, variants: &[Variant]) {
    let out: PathBuf =
        std::env::var_os("OUT_DIR").expect("OUT_DIR is set: call this from a build script").into();
    for variable in [DEVICE_COMPILER_VARIABLE, SKIP_VARIABLE, "PATH", "RUSTUP_HOME"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    println!("cargo::rerun-if-changed={}", crate_folder.join("Cargo.toml").display());
    // Debian's compiler and its sources appear and go with packages.
    for place in ["/usr/bin/rustc", "/usr/lib/rustlib/src"] {
        println!("cargo::rerun-if-changed={place}");
    }
    let table = if std::env::var_os(SKIP_VARIABLE).is_some_and(|value| !value.is_empty() && value != "0") {
        String::from("&[]")
    } else {
        match Compiler::find() {
            Ok(compiler) => {
                compile_all(&compiler, crate_folder, &out, variants).unwrap_or_else(|error| panic!("{error}"))
            }
            Err(error) => {
                println!("cargo::warning=building without GPU code: {error}");
                String::from("&[]")
            }
        }
    };
    let path = out.join("ptx_table.rs");
    std::fs::write(&path, table).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

fn compile_all(
    compiler: &Compiler,
    crate_folder: &Path,
    out: &Path,
    variants: &[Variant],
) -> Result<String, BuildError> {
    let build = Build { crate_folder: crate_folder.to_owned(), output_folder: out.join("ptx") };
    let mut table = String::from("&[\n");
    for variant in variants {
        let compiled = build.compile(compiler, variant)?;
        for source in &compiled.sources {
            println!("cargo::rerun-if-changed={}", source.display());
        }
        let name = variant.name;
        let ptx = compiled.ptx.display().to_string();
        writeln!(table, "    PtxModule {{ variant: {name:?}, text: include_str!({ptx:?}) }},")
            .expect("writing to a string");
    }
    table.push(']');
    Ok(table)
}
