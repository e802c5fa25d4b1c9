//! Compiles the kernels that merge and encode, and assembles them for the architectures in wide use.

use std::path::Path;

fn main() {
    let encoder =
        std::env::var_os("DEP_WARPTRACE_ENCODE_ROOT").expect("the build script of warptrace-encode sets it");
    // `cargo xtask setup` keeps an assembler there, if this is a checkout.
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // Merging waits for memory most of the time: more warps at a time are worth more than registers.
    let limits = [("warptrace_merge", 64)];
    warptrace_build::embed_assembled(Path::new(&encoder), "encode", &limits, &workspace);
}
