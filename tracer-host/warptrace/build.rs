//! Passes this folder to build scripts of dependent packages as `DEP_WARPTRACE_ROOT`.
//! `warptrace_build::compile` uses it to build their kernels.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::metadata=root={}", env!("CARGO_MANIFEST_DIR"));
}
