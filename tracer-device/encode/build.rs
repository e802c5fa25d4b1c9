//! Exports this package's path (`DEP_WARPTRACE_ENCODE_ROOT`) to `warptrace-host`, which compiles it for GPUs.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::metadata=root={}", env!("CARGO_MANIFEST_DIR"));
}
