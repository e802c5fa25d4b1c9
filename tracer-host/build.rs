//! Compiles the kernels that merge and encode, and assembles them for the architectures in wide use.

use std::path::Path;

fn main() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    // Merging waits for memory most of the time: more warps at a time are worth more than registers.
    let limits = [("warptrace_merge", 64)];
    warptrace_build::embed_assembled(&workspace.join("tracer-encode"), "encode", &limits, &workspace);
}
