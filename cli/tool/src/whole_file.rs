//! Where commands write: files that come into being as a whole, or standard output.

mod signals;

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{self, Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use same_file::Handle;
use tempfile::{NamedTempFile, TempPath};
use warptrace_host::TraceOutput;

use self::signals::unfinished;
pub use self::signals::watch_signals;
use crate::output::{StandardOutput, divert_errors, is_broken_pipe, shown_name, url_of};

/// What is being written.
pub type Output = BufWriter<Box<dyn WriteSend>>;

/// What an output is written to; Parquet's writer wants it to be `Send`.
pub trait WriteSend: Write + Send {}
impl<W: Write + Send> WriteSend for W {}

/// Another file of a command, and what it is: `("the trace", path)`.
pub type Other<'a> = (&'a str, &'a Path);

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
    /// If it is one of them, under whatever name, a folder, or in a folder that is not there.
    pub fn new(path: &Path, others: &[Other<'_>]) -> anyhow::Result<Self> {
        for (_, other) in others {
            spares(other);
        }
        keep_apart(path, others)?;
        if path == Path::new("-") {
            return Ok(Self::Standard);
        }
        if path.is_dir() {
            bail!("{} is a folder: name a file", shown_name(path));
        }
        // What is there is found, whatever its name; the folder of what is not there may be.
        if !path.exists() {
            folder_for(&end_of_links(path).with_context(|| cannot_write(path))?)?;
        }
        Ok(Self::File(path.to_owned()))
    }

    /// As [`new`](Self::new); without a path it is standard output.
    pub fn or_standard(path: Option<&Path>, others: &[Other<'_>]) -> anyhow::Result<Self> {
        Self::new(path.unwrap_or(Path::new("-")), others)
    }

    /// Has `write` write it. A file comes into being as a whole or not at all, and its size is returned; what
    /// is there and is no plain file, such as a pipe, is written to as it is, and has none.
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
        let (value, draft) = self.draft(write)?;
        let _kept = unfinished();
        Ok((value, draft.map(Draft::publish).transpose()?))
    }

    /// Has `write` write to a part, which becomes the file when it is published; `None`: what is written to
    /// as it is.
    fn draft<T, E>(
        &self,
        write: impl FnOnce(&mut Output) -> Result<T, E>,
    ) -> anyhow::Result<(T, Option<Draft>)>
    where
        anyhow::Error: From<E>,
    {
        let Self::File(path) = self else { return Ok((fill(Box::new(StandardOutput), write)?, None)) };
        let cannot = || cannot_write(path);
        // A link stays a link. `/dev/stdout` leads to what has no path of its own, or to a file that was
        // deleted.
        let path = match fs::metadata(path) {
            Ok(found) if !found.is_file() => path.clone(),
            _ => {
                let end = end_of_links(path).with_context(cannot)?;
                if path.is_file() && !same_file::is_same_file(path, &end).unwrap_or(false) {
                    let file = File::create(path).with_context(cannot)?;
                    return Ok((fill(Box::new(file), write).with_context(cannot)?, None));
                }
                end
            }
        };
        let known = if path.exists() {
            // So a file that may not be written is not replaced either.
            let file = File::options().write(true).open(&path).with_context(cannot)?;
            let known = file.metadata().with_context(cannot)?;
            if !known.is_file() {
                // The stream that is open: opening a pipe once more would be a reader of it.
                let written = file.try_clone().and_then(Handle::from_file);
                let is_standard =
                    Handle::stdout().is_ok_and(|stdout| written.is_ok_and(|written| written == stdout));
                let written = fill(Box::new(file), write).map_err(|error| match is_broken_pipe(&error) {
                    // Of what was asked for by name, a part is not enough.
                    true if !is_standard => anyhow!("its reader has gone before the end"),
                    _ => error,
                });
                return Ok((written.with_context(cannot)?, None));
            }
            if TraceOutput::is_recorded(&file) {
                bail!("{}: it is being recorded", cannot());
            }
            Some(known)
        } else {
            None
        };
        let part = new_part(&path)?;
        let file = part.reopen().with_context(cannot)?;
        let value = fill(Box::new(file), write).with_context(cannot)?;
        if let Some(known) = known {
            part.as_file().set_permissions(plain(known.permissions())).with_context(cannot)?;
        }
        // Some file systems say only now that there was no room.
        part.as_file().sync_data().with_context(cannot)?;
        let size = part.as_file().metadata().with_context(cannot)?.len();
        Ok((value, Some(Draft { part: part.into_temp_path(), path, size })))
    }
}

/// A file that is whole, but not yet in its place.
#[derive(Debug)]
struct Draft {
    // Not open: there may be more of them than files can be open.
    part: TempPath,
    path: PathBuf,
    size: u64,
}

impl Draft {
    /// Gives the file its name; returns its size.
    fn publish(self) -> anyhow::Result<u64> {
        let Self { part, path, size } = self;
        part.persist(&path).map_err(|refused| refused.error).with_context(|| cannot_write(&path))?;
        Ok(size)
    }
}

/// Files of a folder that come into being together: none of them is replaced before all are whole. Folders
/// that were made for them go with them if that does not come to be.
#[derive(Debug)]
pub struct Files<'a> {
    // Dropped before the folders that they are in.
    drafts: Vec<Draft>,
    made: MadeFolders,
    folder: &'a Path,
    others: &'a [Other<'a>],
    paths: Vec<PathBuf>,
    /// What of `others` and `paths` is there.
    known: HashSet<Identity>,
    /// Of one that is a link to what is not there, only its comparison with each other tells what it will be.
    has_open_links: bool,
}

impl<'a> Files<'a> {
    /// Begins files in a folder, which is made where it is missing. None of them may be one of `others`, which the
    /// command reads.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn new(folder: &'a Path, others: &'a [Other<'a>]) -> anyhow::Result<Self> {
        let mut made = MadeFolders::default();
        made.make(folder)?;
        let known = others.iter().filter_map(|(_, other)| identity(other)).collect();
        Ok(Self { drafts: Vec::new(), made, folder, others, paths: Vec::new(), known, has_open_links: false })
    }

    /// Has `write` write the file `file` of the folder; its own folder is made where it is missing. Returns
    /// the path and the size.
    ///
    /// # Errors
    /// If the file is one of the others or of those before, and as [`Target::write`].
    pub fn add<T, E>(
        &mut self,
        file: impl AsRef<Path>,
        write: impl FnOnce(&mut Output) -> Result<T, E>,
    ) -> anyhow::Result<(T, PathBuf, Option<u64>)>
    where
        anyhow::Error: From<E>,
    {
        let path = self.folder.join(file);
        self.made.make(folder_of(&path))?;
        let found = identity(&path);
        self.has_open_links |= found.is_none() && path.is_symlink();
        let is_known = found.is_some_and(|found| !self.known.insert(found));
        let made = self.paths.iter().map(|path| ("the output", path.as_path()));
        // Which one it is, of thousands, is asked only of what may be one of them.
        let may_be = |other: &Path| is_known || self.has_open_links || path == other;
        let others: Vec<Other<'_>> =
            self.others.iter().copied().chain(made).filter(|(_, other)| may_be(other)).collect();
        let (value, draft) = Target::new(&path, &others)?.draft(write)?;
        let size = draft.as_ref().map(|draft| draft.size);
        self.drafts.extend(draft);
        self.paths.push(path.clone());
        Ok((value, path, size))
    }

    /// Gives all files their names.
    ///
    /// # Errors
    /// The system's.
    pub fn publish(mut self) -> anyhow::Result<()> {
        // A signal that comes meanwhile waits.
        let _kept = unfinished();
        for draft in self.drafts.drain(..) {
            draft.publish()?;
        }
        Ok(())
    }
}

/// What two paths of one plain file have in common; a [`Handle`] would keep each of thousands open.
#[cfg(unix)]
type Identity = (u64, u64);
#[cfg(not(unix))]
type Identity = PathBuf;

/// Returns what tells a plain file that is there from all others, links followed.
fn identity(path: &Path) -> Option<Identity> {
    let found = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    #[cfg(unix)]
    return Some((std::os::unix::fs::MetadataExt::dev(&found), std::os::unix::fs::MetadataExt::ino(&found)));
    #[cfg(not(unix))]
    return fs::canonicalize(path).ok().filter(|_| found.is_file());
}

/// Folders that were made, outer ones first; the empty ones among them are removed in the end.
#[derive(Debug, Default)]
struct MadeFolders(Vec<PathBuf>);

impl MadeFolders {
    fn make(&mut self, folder: &Path) -> anyhow::Result<()> {
        let missing: Vec<&Path> = folder
            .ancestors()
            .take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists())
            .collect();
        let cannot = || format!("cannot make the folder {}", shown_name(folder));
        if folder.is_file() {
            bail!("{} is a file: name a folder", shown_name(folder));
        }
        if let Some(link) = missing.iter().find(|folder| folder.is_symlink()) {
            bail!("{}: {} is a link to what is not there", cannot(), shown_name(link));
        }
        let missing = missing.into_iter().rev().map(Path::to_owned);
        let mut unfinished = unfinished();
        let before = self.0.len();
        self.0.extend(missing);
        unfinished.extend_from_slice(&self.0[before..]);
        fs::create_dir_all(folder).with_context(cannot)
    }
}

impl Drop for MadeFolders {
    fn drop(&mut self) {
        for folder in self.0.iter().rev() {
            // One that is not empty stays, as it must.
            let _ = fs::remove_dir(folder);
        }
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

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", shown_name(path))
}

/// The folder of a file that is to be made.
fn folder_for(path: &Path) -> anyhow::Result<&Path> {
    let folder = folder_of(path);
    if !folder.is_dir() {
        bail!("{}: there is no folder {}", cannot_write(path), shown_name(folder));
    }
    Ok(folder)
}

/// A file beside the one that it is to become.
fn new_part(path: &Path) -> anyhow::Result<NamedTempFile> {
    let folder = folder_for(path)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".warptrace-part-");
    #[cfg(unix)]
    builder.permissions(<fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o666));
    let mut unfinished = unfinished();
    let part = builder.tempfile_in(folder).with_context(|| {
        format!("{}: no file can be made in its folder, {}", cannot_write(path), shown_name(folder))
    })?;
    unfinished.push(part.path().to_owned());
    Ok(part)
}

/// Permissions without those to run as another user: the owner of what is replaced may be another one.
#[cfg(unix)]
fn plain(permissions: fs::Permissions) -> fs::Permissions {
    use std::os::unix::fs::PermissionsExt;

    fs::Permissions::from_mode(permissions.mode() & 0o777)
}

#[cfg(not(unix))]
fn plain(permissions: fs::Permissions) -> fs::Permissions {
    permissions
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Refuses an output that is one of `others`, by its own name, through a link or another spelling, or that is
/// what standard output is redirected to, and a URL. `-` is standard output.
///
/// # Errors
/// If it is.
pub fn keep_apart(path: &Path, others: &[Other<'_>]) -> anyhow::Result<()> {
    if url_of(path).is_some() {
        bail!(
            "{}: traces are read from stores, nothing is written there: name a file, and upload it",
            shown_name(path)
        );
    }
    if path == Path::new("-") {
        return others.iter().try_for_each(|(_, other)| keep_from_standard_output(other));
    }
    keep_from_standard_output(path)?;
    for (what, other) in others {
        if is_one(path, other) {
            bail!(
                "the output {} and {what} {} are one file: name another file to write",
                shown_name(path),
                shown_name(other)
            );
        }
    }
    Ok(())
}

/// Refuses a file to read that standard output or standard error is redirected to. An error is not told there
/// then.
///
/// # Errors
/// If it is.
pub fn keep_from_streams(path: &Path) -> anyhow::Result<()> {
    if !spares(path) {
        return keep_from_standard_output(path);
    }
    bail!(
        "{} and standard error are one file, which the command reads already: redirect it to another",
        shown_name(path)
    );
}

/// Whether standard error is redirected to a file, to which nothing is told from now on.
fn spares(path: &Path) -> bool {
    let is_error = is_redirected(path, Handle::stderr);
    if is_error {
        divert_errors(!is_redirected(path, Handle::stdout));
    }
    is_error
}

/// Refuses a file that standard output is redirected to.
///
/// # Errors
/// If it is.
pub fn keep_from_standard_output(path: &Path) -> anyhow::Result<()> {
    if is_redirected(path, Handle::stdout) {
        bail!(
            "{} and standard output are one file, which the command reads or writes already: redirect it to another",
            shown_name(path)
        );
    }
    Ok(())
}

/// Whether a file is what a stream of this process is redirected to or from.
pub fn is_redirected(path: &Path, stream: fn() -> io::Result<Handle>) -> bool {
    // A terminal or `/dev/null` can be many things at once.
    path.is_file()
        && stream().and_then(|stream| Handle::from_path(path).map(|file| file == stream)).unwrap_or(false)
}

/// Most links that are followed, as Linux does.
const LINKS: u32 = 40;

/// The path to which links lead, whether there is a file or not.
fn end_of_links(path: &Path) -> anyhow::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let Ok(target) = fs::read_link(&path) else { return Ok(path) };
        path = folder_of(&path).join(target);
    }
    bail!("it is a circle of links")
}

/// Whether two paths are one file: one that is there, or one that would be made.
fn is_one(one: &Path, other: &Path) -> bool {
    match (fs::metadata(one), fs::metadata(other)) {
        // A terminal or `/dev/null` can be many things at once.
        (Ok(found), Ok(_)) => found.is_file() && same_file::is_same_file(one, other).unwrap_or(false),
        (Err(_), Err(_)) => {
            let place = |path: &Path| -> Option<(PathBuf, Option<Box<OsStr>>)> {
                let path = end_of_links(&path::absolute(path).ok()?).ok()?;
                Some((fs::canonicalize(folder_of(&path)).ok()?, path.file_name().map(Into::into)))
            };
            place(one).is_some() && place(one) == place(other)
        }
        _ => false,
    }
}
