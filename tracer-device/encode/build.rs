//! Tells the build script of `warptrace-host`, which compiles it for GPUs, where this package is, as
//! `DEP_WARPTRACE_ENCODE_ROOT`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::metadata=root={}", env!("CARGO_MANIFEST_DIR"));
}
