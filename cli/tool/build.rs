//! Compiles the kernel of `warptrace demo` for GPUs, and finds the library that `warptrace run` loads.

use std::env::var;
use std::path::{Path, PathBuf};

fn main() {
    warptrace_build::compile("src/demo/picture.rs");
    println!("cargo::rustc-check-cfg=cfg(carries_shim)");
    if let Some(shim) = shim() {
        println!("cargo::rustc-cfg=carries_shim");
        println!("cargo::rustc-env=WARPTRACE_SHIM={}", shim.display());
    }
}

/// Returns where cargo writes the library of `warptrace-shim`, which it builds before the tool; `None` for
/// other targets, and where cargo uses another file name.
fn shim() -> Option<PathBuf> {
    let is = |name: &str, value: &str| var(name).is_ok_and(|found| found == value);
    let is_for = is("CARGO_CFG_TARGET_OS", "linux")
        && ["x86_64", "aarch64"].iter().any(|architecture| is("CARGO_CFG_TARGET_ARCH", architecture));
    // Cargo adds a hash to the file names of packages that are not in a local folder.
    let package = PathBuf::from(var("CARGO_MANIFEST_DIR").ok()?);
    let is_path = |path: &Path| {
        let text = path.to_string_lossy();
        !["/registry/src/", "/git/checkouts/"].iter().any(|folder| text.contains(folder))
            && !path.join(".cargo-checksum.json").exists()
    };
    // `OUT_DIR` is `target/PROFILE/build/PACKAGE/out`.
    let deps = PathBuf::from(var("OUT_DIR").ok()?).ancestors().nth(3)?.join("deps");
    (is_for && is_path(&package) && deps.is_dir()).then(|| deps.join("libwarptrace_shim.so"))
}
