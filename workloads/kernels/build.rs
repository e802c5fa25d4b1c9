//! Passes the path of this package to the build script of `warptrace-workloads`, which compiles it for GPUs,
//! in `DEP_WARPTRACE_KERNELS_ROOT`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::metadata=root={}", env!("CARGO_MANIFEST_DIR"));
}
