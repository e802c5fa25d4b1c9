//! Files that come into being as a whole.

#[cfg(unix)]
use std::fs::Permissions;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// A file that is being written.
pub(crate) type Output = BufWriter<Box<dyn WriteSend>>;

/// What a file is written to; Parquet's writer wants it to be `Send`.
pub(crate) trait WriteSend: Write + Send {}
impl<W: Write + Send> WriteSend for W {}

/// Has `write` write a file that comes into being as a whole or not at all; answers its size. What is there
/// and is no plain file, such as a pipe, is written to as it is, and has none.
pub(crate) fn written<T, E>(
    path: &Path,
    write: impl FnOnce(&mut Output) -> Result<T, E>,
) -> anyhow::Result<(T, Option<u64>)>
where
    anyhow::Error: From<E>,
{
    let cannot = || format!("cannot write {}", path.display());
    // A link stays a link.
    let path: PathBuf = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let known = fs::metadata(&path).ok();
    if known.as_ref().is_some_and(fs::Metadata::is_dir) {
        bail!("{} is a folder: name a file", path.display());
    }
    if known.is_some_and(|known| !known.is_file()) {
        let file = File::options().write(true).open(&path).with_context(cannot)?;
        let mut out = BufWriter::with_capacity(1 << 16, Box::new(file) as Box<dyn WriteSend>);
        let value = write(&mut out)?;
        out.flush().with_context(cannot)?;
        return Ok((value, None));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        bail!("cannot write {}: there is no folder {}", path.display(), folder.display());
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".warptrace-part-");
    #[cfg(unix)]
    builder.permissions(<Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o666));
    let part = builder.tempfile_in(folder).with_context(cannot)?;
    let file = part.reopen().with_context(cannot)?;
    let mut out = BufWriter::with_capacity(1 << 20, Box::new(file) as Box<dyn WriteSend>);
    let value = write(&mut out)?;
    out.flush().with_context(cannot)?;
    drop(out);
    let size = part.as_file().metadata().with_context(cannot)?.len();
    part.persist(&path).with_context(cannot)?;
    Ok((value, Some(size)))
}
