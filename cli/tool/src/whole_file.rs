//! Output of commands: standard output, or files that are created completely or not at all.

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

/// Buffered output of a command.
pub type Output = BufWriter<Box<dyn WriteSend>>;

/// Writer that is `Send`, as Parquet's writer requires.
pub trait WriteSend: Write + Send {}
impl<W: Write + Send> WriteSend for W {}

/// Another file of a command, with its role: `("the trace", path)`.
pub type Other<'a> = (&'a str, &'a Path);

/// Destination of a command's output.
#[derive(Debug)]
pub enum Target {
    /// Standard output, `-`.
    Standard,
    /// A file, pipe or device.
    File(PathBuf),
}

impl Target {
    /// Creates a target for `path`. It must not be one of `others`, which the command reads or writes. Fails
    /// if [`keep_apart`] refuses the path, if it is a folder, or if its folder does not exist.
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
        // Only a new file needs an existing folder. An existing path may be of any kind, such as
        // `/dev/stdout`.
        if !path.exists() {
            folder_for(&end_of_links(path).with_context(|| cannot_write(path))?)?;
        }
        Ok(Self::File(path.to_owned()))
    }

    /// Like [`new`](Self::new), but `None` is standard output.
    pub fn or_standard(path: Option<&Path>, others: &[Other<'_>]) -> anyhow::Result<Self> {
        Self::new(path.unwrap_or(Path::new("-")), others)
    }

    /// Calls `write` with the output. A file is created completely or not at all, and its size is returned;
    /// after an error, an existing file is unchanged. A pipe or device is written in place, with size `None`.
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

    /// Calls `write` with a temporary file, which becomes the file when it is published. Returns no draft if
    /// the target is written in place.
    fn draft<T, E>(
        &self,
        write: impl FnOnce(&mut Output) -> Result<T, E>,
    ) -> anyhow::Result<(T, Option<Draft>)>
    where
        anyhow::Error: From<E>,
    {
        let Self::File(path) = self else { return Ok((fill(Box::new(StandardOutput), write)?, None)) };
        let cannot = || cannot_write(path);
        // Links are followed, so that a link stays a link. `/dev/stdout` may lead to a deleted file or to no
        // path; then it is written in place.
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
            // A file without write permission must not be replaced either.
            let file = File::options().write(true).open(&path).with_context(cannot)?;
            let known = file.metadata().with_context(cannot)?;
            if !known.is_file() {
                // Compares the open file: opening a pipe by its path would add a reader.
                let written = file.try_clone().and_then(Handle::from_file);
                let is_standard =
                    Handle::stdout().is_ok_and(|stdout| written.is_ok_and(|written| written == stdout));
                let written = fill(Box::new(file), write).map_err(|error| match is_broken_pipe(&error) {
                    // A target that the user named must be complete, so a broken pipe is an error.
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
        // Some file systems report a lack of space only here.
        part.as_file().sync_data().with_context(cannot)?;
        let size = part.as_file().metadata().with_context(cannot)?.len();
        Ok((value, Some(Draft { part: part.into_temp_path(), path, size })))
    }
}

/// A complete file that does not have its final name yet.
#[derive(Debug)]
struct Draft {
    // Closed, since there may be more drafts than a process can have open files.
    part: TempPath,
    path: PathBuf,
    size: u64,
}

impl Draft {
    /// Renames the part to its final name; returns its size. Refuses to replace a trace that is being recorded
    /// by now.
    fn publish(self) -> anyhow::Result<u64> {
        let Self { part, path, size } = self;
        // Open until the end, so that no recording begins meanwhile.
        let replaced = File::open(&path).ok();
        if replaced.as_ref().is_some_and(TraceOutput::is_recorded) {
            bail!("{}: it is being recorded", cannot_write(&path));
        }
        part.persist(&path).map_err(|refused| refused.error).with_context(|| cannot_write(&path))?;
        Ok(size)
    }
}

/// Files of one folder that are published together: existing files stay until all new ones are complete. If
/// they are not published, folders created for them are removed.
#[derive(Debug)]
pub struct Files<'a> {
    // Dropped before `made`, so that the folders are empty by then.
    drafts: Vec<Draft>,
    made: MadeFolders,
    folder: &'a Path,
    others: &'a [Other<'a>],
    paths: Vec<PathBuf>,
    /// Identities of the existing files among `others` and `paths`.
    known: HashSet<Identity>,
    /// True if a path is a link to a missing file, which has no identity and must be compared with each path.
    has_open_links: bool,
}

impl<'a> Files<'a> {
    /// Starts a set of files in `folder`, which is created if it is missing. No file of the set may be one of
    /// `others`, which the command reads. Fails if the folder cannot be created.
    pub fn new(folder: &'a Path, others: &'a [Other<'a>]) -> anyhow::Result<Self> {
        let mut made = MadeFolders::default();
        made.make(folder)?;
        let known = others.iter().filter_map(|(_, other)| identity(other)).collect();
        Ok(Self { drafts: Vec::new(), made, folder, others, paths: Vec::new(), known, has_open_links: false })
    }

    /// Calls `write` with the new file `file` of the folder, and creates missing parents. Returns the value
    /// of `write`, the path and the size. Fails like [`Target::write`], or if the file is one of `others` or
    /// was added before.
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
        // There may be thousands of paths, so only those that can be equal are compared.
        let may_be = |other: &Path| is_known || self.has_open_links || path == other;
        let others: Vec<Other<'_>> =
            self.others.iter().copied().chain(made).filter(|(_, other)| may_be(other)).collect();
        let (value, draft) = Target::new(&path, &others)?.draft(write)?;
        let size = draft.as_ref().map(|draft| draft.size);
        self.drafts.extend(draft);
        self.paths.push(path.clone());
        Ok((value, path, size))
    }

    /// Gives all files their final names. Fails if a file cannot be renamed.
    pub fn publish(mut self) -> anyhow::Result<()> {
        // A signal waits until all files are published.
        let _kept = unfinished();
        for draft in self.drafts.drain(..) {
            draft.publish()?;
        }
        Ok(())
    }
}

/// Identity of a plain file. A [`Handle`] would keep each of thousands of files open.
#[cfg(unix)]
type Identity = (u64, u64);
#[cfg(not(unix))]
type Identity = PathBuf;

/// Returns the identity of an existing plain file. Follows links.
fn identity(path: &Path) -> Option<Identity> {
    let found = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    #[cfg(unix)]
    return Some((std::os::unix::fs::MetadataExt::dev(&found), std::os::unix::fs::MetadataExt::ino(&found)));
    #[cfg(not(unix))]
    return fs::canonicalize(path).ok().filter(|_| found.is_file());
}

/// Folders that were created, outer ones first. Empty ones are removed on drop.
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
            // A folder that is not empty stays.
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

/// Returns the folder of a new file. Fails if the folder does not exist.
fn folder_for(path: &Path) -> anyhow::Result<&Path> {
    let folder = folder_of(path);
    if !folder.is_dir() {
        bail!("{}: there is no folder {}", cannot_write(path), shown_name(folder));
    }
    Ok(folder)
}

/// Creates a temporary file in the folder of `path`, its final path.
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

/// Removes the set-user-ID, set-group-ID and sticky bits, since the replaced file may have another owner.
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

/// Refuses an output path that is a URL, that is one of `others` (also through a link or another spelling),
/// or that standard output is redirected to. The path `-` is standard output.
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

/// Refuses an input file that standard output or standard error is redirected to. In the second case, diverts
/// messages from standard error.
pub fn keep_from_streams(path: &Path) -> anyhow::Result<()> {
    if !spares(path) {
        return keep_from_standard_output(path);
    }
    bail!(
        "{} and standard error are one file, which the command reads already: redirect it to another",
        shown_name(path)
    );
}

/// Returns true if standard error is redirected to the file; then also diverts all further messages.
fn spares(path: &Path) -> bool {
    let is_error = is_redirected(path, Handle::stderr);
    if is_error {
        divert_errors(!is_redirected(path, Handle::stdout));
    }
    is_error
}

/// Refuses a file that standard output is redirected to.
pub fn keep_from_standard_output(path: &Path) -> anyhow::Result<()> {
    if is_redirected(path, Handle::stdout) {
        bail!(
            "{} and standard output are one file, which the command reads or writes already: redirect it to another",
            shown_name(path)
        );
    }
    Ok(())
}

/// Returns true if a stream of this process is redirected to or from the file.
pub fn is_redirected(path: &Path, stream: fn() -> io::Result<Handle>) -> bool {
    // A terminal or `/dev/null` can be input and output at once.
    path.is_file()
        && stream().and_then(|stream| Handle::from_path(path).map(|file| file == stream)).unwrap_or(false)
}

/// Maximum number of links that are followed, as in Linux.
const LINKS: u32 = 40;

/// Follows links to the final path, which need not exist.
fn end_of_links(path: &Path) -> anyhow::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let Ok(target) = fs::read_link(&path) else { return Ok(path) };
        path = folder_of(&path).join(target);
    }
    bail!("it is a circle of links")
}

/// Returns true if two paths name the same file, or would create the same file.
fn is_one(one: &Path, other: &Path) -> bool {
    match (fs::metadata(one), fs::metadata(other)) {
        // A terminal or `/dev/null` can be input and output at once.
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
