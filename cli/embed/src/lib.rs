//! Compresses the library that `warptrace run` loads, while the tool is compiled. A build script cannot: it runs
//! before the library is linked.

use std::path::Path;
use std::{env, fs, io};

use proc_macro::TokenStream;

/// Level 19 takes 15 times as long as 9, and saves a tenth. Libraries for tests are larger.
const LEVEL: i32 = if cfg!(debug_assertions) { 1 } else { 9 };

/// Expands to the length, the CRC-32 and the zstd-compressed bytes of the file that the variable `WARPTRACE_SHIM` names.
/// If the file does not exist, expands to `(0, 0, &[])`: `cargo check` links no library.
#[proc_macro]
pub fn shim(_: TokenStream) -> TokenStream {
    let expanded = expand().unwrap_or_else(|problem| format!("compile_error!({problem:?})"));
    expanded.parse().unwrap_or_default()
}

fn expand() -> Result<String, String> {
    let variable = |name| env::var(name).map_err(|error| format!("{name}: {error}"));
    let (shim, folder) = (variable("WARPTRACE_SHIM")?, variable("OUT_DIR")?);
    let bytes = match fs::read(&shim) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok("(0, 0, &[])".to_owned()),
        read => read.map_err(|error| format!("{shim}: {error}"))?,
    };
    let (length, crc) = (bytes.len(), crc32fast::hash(&bytes));
    // The library and its tests may be compiled at the same time, so `write` renames a finished file.
    let packed = format!("{folder}/shim-{length}-{crc:08x}.zst");
    write(Path::new(&packed), &shim, &bytes).map_err(|error| format!("{packed}: {error}"))?;
    Ok(format!("({length}, {crc}, include_bytes!({packed:?}))"))
}

fn write(packed: &Path, shim: &str, bytes: &[u8]) -> io::Result<()> {
    if packed.exists() {
        return Ok(());
    }
    let part = packed.with_extension(std::process::id().to_string());
    fs::write(&part, zstd::bulk::compress(bytes, LEVEL)?)?;
    // Cargo recompiles a crate if a file that the crate includes is newer than the start of the crate's last
    // compilation. So this file gets the modification time of the shim.
    fs::File::options().append(true).open(&part)?.set_modified(fs::metadata(shim)?.modified()?)?;
    fs::rename(part, packed)
}
