//! Exports the path of this package as `DEP_WARPTRACE_ENCODE_ROOT`. The build script of `warptrace-host`
//! compiles the package for GPUs.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::metadata=root={}", env!("CARGO_MANIFEST_DIR"));
}
