//! Compiles the kernels that merge and encode, and assembles them for the architectures in wide use.

use std::path::Path;

fn main() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    warptrace_build::embed_assembled(&workspace.join("tracer-encode"), "encode", &workspace);
}
