//! Where commands write: files that come into being as a whole, or standard output.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{self, Path, PathBuf};

use anyhow::{Context, bail};
use warptrace_host::TraceOutput;

/// What is being written.
pub type Output = BufWriter<Box<dyn WriteSend>>;

/// What an output is written to; Parquet's writer wants it to be `Send`.
pub trait WriteSend: Write + Send {}
impl<W: Write + Send> WriteSend for W {}

/// Where a command writes.
#[derive(Debug)]
pub enum Target {
    /// Standard output, `-`.
    Standard,
    /// A file, or a pipe or device.
    File(PathBuf),
}

impl Target {
    /// A file that is none of `others`: what the command reads, and what else it writes.
    ///
    /// # Errors
    /// If it is one of them, under whatever name, a folder, or a file that is being recorded.
    pub fn new(path: &Path, others: &[&Path]) -> anyhow::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::Standard);
        }
        keep_apart(path, others)?;
        if path.is_dir() {
            bail!("{} is a folder: name a file", path.display());
        }
        Ok(Self::File(path.to_owned()))
    }

    /// As [`new`](Self::new); without a path it is standard output.
    pub fn or_standard(path: Option<&Path>, others: &[&Path]) -> anyhow::Result<Self> {
        Self::new(path.unwrap_or(Path::new("-")), others)
    }

    /// Has `write` write it. A file comes into being as a whole or not at all, and its size is returned; what is
    /// there and is no plain file, such as a pipe, is written to as it is, and has none.
    ///
    /// # Errors
    /// Those of `write`, and the system's; what was there is then as it was.
    pub fn write<T, E>(
        &self,
        write: impl FnOnce(&mut Output) -> Result<T, E>,
    ) -> anyhow::Result<(T, Option<u64>)>
    where
        anyhow::Error: From<E>,
    {
        let Self::File(path) = self else { return Ok((fill(Box::new(io::stdout()), write)?, None)) };
        let cannot = || format!("cannot write {}", path.display());
        // A link stays a link.
        let path: PathBuf = fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        let known = if path.exists() {
            // So a file that may not be written is not replaced either.
            let file = File::options().write(true).open(&path).with_context(cannot)?;
            let known = file.metadata().with_context(cannot)?;
            if !known.is_file() {
                return Ok((fill(Box::new(file), write).with_context(cannot)?, None));
            }
            if TraceOutput::is_recorded(&file) {
                bail!("cannot write {}: it is being recorded", path.display());
            }
            Some(known)
        } else {
            None
        };
        let part = new_part(&path)?;
        let file = part.reopen().with_context(cannot)?;
        let value = fill(Box::new(file), write).with_context(cannot)?;
        if let Some(known) = known {
            part.as_file().set_permissions(known.permissions()).with_context(cannot)?;
        }
        // Some file systems say only now that there was no room.
        part.as_file().sync_data().with_context(cannot)?;
        let size = part.as_file().metadata().with_context(cannot)?.len();
        part.persist(&path).with_context(cannot)?;
        Ok((value, Some(size)))
    }
}

fn fill<T, E>(file: Box<dyn WriteSend>, write: impl FnOnce(&mut Output) -> Result<T, E>) -> anyhow::Result<T>
where
    anyhow::Error: From<E>,
{
    let mut out = BufWriter::with_capacity(1 << 18, file);
    let value = write(&mut out)?;
    out.flush()?;
    Ok(value)
}

/// A file beside the one that it is to become.
fn new_part(path: &Path) -> anyhow::Result<tempfile::NamedTempFile> {
    let folder = folder_of(path);
    if !folder.is_dir() {
        bail!("cannot write {}: there is no folder {}", path.display(), folder.display());
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".warptrace-part-");
    #[cfg(unix)]
    builder.permissions(<fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o666));
    builder.tempfile_in(folder).with_context(|| format!("cannot write {}", path.display()))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Refuses a path that names one of `others`, by its own name, through a link or another spelling.
///
/// # Errors
/// If it does.
pub fn keep_apart(path: &Path, others: &[&Path]) -> anyhow::Result<()> {
    for other in others {
        if is_one(path, other) {
            bail!(
                "{} and {} are one file, which the command reads or writes already: name another file to write",
                path.display(),
                other.display()
            );
        }
    }
    Ok(())
}

/// Most links that are followed, as Linux does.
const LINKS: u32 = 40;

/// Whether two paths are one file: one that is there, or one that would be made.
fn is_one(one: &Path, other: &Path) -> bool {
    match (fs::metadata(one), fs::metadata(other)) {
        // A terminal or `/dev/null` can be many things at once.
        (Ok(found), Ok(_)) => found.is_file() && same_file::is_same_file(one, other).unwrap_or(false),
        (Err(_), Err(_)) => {
            let place = |path: &Path| -> Option<(PathBuf, Option<Box<OsStr>>)> {
                let mut path = path::absolute(path).ok()?;
                // Links that lead to no file yet; a circle of them is none that can be written.
                for _ in 0..LINKS {
                    let Ok(target) = fs::read_link(&path) else { break };
                    path = folder_of(&path).join(target);
                }
                Some((fs::canonicalize(folder_of(&path)).ok()?, path.file_name().map(Into::into)))
            };
            place(one).is_some() && place(one) == place(other)
        }
        _ => false,
    }
}
