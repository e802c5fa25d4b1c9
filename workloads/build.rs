//! Compiles the kernels to PTX.

use std::path::Path;

fn main() {
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    warptrace_build::embed(&kernels, "kernels");
}
