//! The library that `run` loads into programs: a file, or embedded in this tool.

use std::env::consts::ARCH;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::output::shown_name;

pub(super) const SHIM: &str = "libwarptrace_shim.so";

#[cfg(carries_shim)]
mod carried;

/// A library file that exists at least as long as this value.
pub(super) struct Shim {
    pub(super) path: PathBuf,
    /// Locked, so that other tools do not remove the file.
    _open: Option<fs::File>,
}

/// Finds the library: the chosen file; the embedded library, unpacked into the user's cache or `folder`; or
/// without one, a file next to this tool or in the `lib` folder next to the tool's own. Fails if there is
/// none, if the file is not a library, or if `LD_PRELOAD` cannot contain its path.
pub(super) fn find(chosen: Option<&Path>, folder: &Path) -> anyhow::Result<Shim> {
    let (found, open) = match chosen {
        Some(file) if !file.is_file() => bail!(
            "the library that --shim names is not there: {}; leave --shim out to take the tool's own",
            shown_name(file)
        ),
        Some(file) => (file.to_owned(), None),
        None => own(folder)?,
    };
    let found = fs::canonicalize(&found).with_context(|| format!("cannot open {}", shown_name(&found)))?;
    if !is_loadable(&found) {
        bail!(
            "{} has a space, a colon or a control character in its path, which LD_PRELOAD cannot have: name a copy \
             elsewhere with --shim, or another folder for temporary files with TMPDIR",
            shown_name(&found)
        );
    }
    if !is_library(&found).with_context(|| format!("cannot open {}", shown_name(&found)))? {
        bail!(
            "the file that --shim names is no library for Linux on {ARCH}: {}; leave --shim out to take the tool's own",
            shown_name(&found)
        );
    }
    Ok(Shim { path: found, _open: open })
}

/// Returns true if `LD_PRELOAD` can contain the path, and it is printable: the loader does not escape it.
fn is_loadable(path: &Path) -> bool {
    let is_plain = path.as_os_str() == &*shown_name(path);
    is_plain && !path.as_os_str().as_bytes().iter().any(|byte| b": ".contains(byte))
}

/// Returns true if a file starts like an ELF library for this system. The loader ignores other files and runs
/// the program without them.
fn is_library(path: &Path) -> io::Result<bool> {
    // 64 bits, little-endian; at byte 16: shared object; at byte 18: x86-64 (62) or aarch64 (183).
    const MACHINE: u8 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
    const BEGIN: [&[u8]; 2] = [b"\x7fELF\x02\x01", &[3, 0, MACHINE, 0]];
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(20).read_to_end(&mut bytes)?;
    Ok(bytes.starts_with(BEGIN[0]) && bytes.ends_with(BEGIN[1]) && bytes.len() == 20)
}

/// Unpacks the embedded library, unless the user's cache contains it.
#[cfg(carries_shim)]
fn own(folder: &Path) -> anyhow::Result<(PathBuf, Option<fs::File>)> {
    if let Some((file, open)) = carried::kept() {
        return Ok((file, Some(open)));
    }
    let file = folder.join(SHIM);
    let write = || fs::write(&file, carried::unpack()?);
    write().with_context(|| format!("cannot write {}", shown_name(&file)))?;
    Ok((file, None))
}

#[cfg(not(carries_shim))]
fn own(_: &Path) -> anyhow::Result<(PathBuf, Option<fs::File>)> {
    let tool = std::env::current_exe().context("cannot tell where this tool is")?;
    let folder = tool.parent().unwrap_or(Path::new("."));
    let places = [folder.join(SHIM), folder.join("../lib").join(SHIM)];
    let shown = places.each_ref().map(shown_name).join(" or ");
    let found = places.into_iter().find(|file| file.is_file()).with_context(|| {
        format!(
            "`run` needs {SHIM}, which this tool was built without and which is not at {shown}: build it with \
             `cargo build --release -p warptrace-shim`, and name it with --shim"
        )
    })?;
    Ok((found, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_not_there_is_an_error_that_says_what_to_do() {
        let error = find(Some(Path::new("/nowhere/shim.so")), Path::new("/nowhere"))
            .err()
            .expect("it is not there")
            .to_string();
        assert!(error.contains("/nowhere/shim.so") && error.contains("--shim"), "{error}");
    }
}
