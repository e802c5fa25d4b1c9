//! Tells build scripts of packages that depend on this one where it is, as `DEP_WARPTRACE_ROOT`: with it
//! `warptrace_build::compile` builds their kernels.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::metadata=root={}", env!("CARGO_MANIFEST_DIR"));
}
