//! Compiles the merge and encode kernels, assembles them for common GPU architectures, and compresses the
//! results.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

/// zstd level. Slow, but the input is only 1.6 MB.
const LEVEL: i32 = 19;

fn main() {
    let encoder =
        env::var_os("DEP_WARPTRACE_ENCODE_ROOT").expect("the build script of warptrace-encode sets it");
    // `cargo xtask setup` installs an assembler here in a checkout.
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // Merging mostly waits for memory: more resident warps gain more than more registers per thread.
    let limits = [("warptrace_merge", 64)];
    let cubins = warptrace_build::embed_assembled(Path::new(&encoder), "encode", &limits, &workspace);

    let out = env::var_os("OUT_DIR").expect("cargo sets it");
    let out = Path::new(&out);
    pack(&out.join("encode.ptx"));
    let mut table = String::new();
    for (architecture, cubin) in cubins {
        writeln!(table, "({architecture}, include_bytes!({:?})),", pack(&cubin))
            .expect("writing to a string");
    }
    write(&out.join("encode.cubins.rs"), format!("&[{table}]").as_bytes());
}

/// Compresses a file into `PATH.zst`; returns that path.
fn pack(path: &Path) -> String {
    let problem = |error| -> ! { panic!("{}: {error}", path.display()) };
    let bytes = fs::read(path).unwrap_or_else(|error| problem(error));
    let packed = format!("{}.zst", path.display());
    write(Path::new(&packed), &zstd::bulk::compress(&bytes, LEVEL).unwrap_or_else(|error| problem(error)));
    packed
}

fn write(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
