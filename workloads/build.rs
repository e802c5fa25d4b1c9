//! Compiles the kernels to PTX, in every variant.

use std::path::Path;

fn main() {
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    warptrace_build::embed(&kernels, warptrace_build::VARIANTS);
}
