//! Compiles the kernels to PTX.

use std::path::Path;

fn main() {
    let kernels = std::env::var_os("DEP_WARPTRACE_KERNELS_ROOT")
        .expect("the build script of warptrace-kernels sets it");
    warptrace_build::embed(Path::new(&kernels), "kernels");
}
