//! A trace file before it replaces an existing file.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tempfile::TempPath;
use warptrace_format::file::{MAGIC, PREAMBLE_BYTES, SECTION_HEADER_BYTES, SectionHeader, SectionKind};

const PART: &str = ".warptrace-part-";

/// The file from before the recording. None if there was no file, or an empty one.
#[derive(Clone, Debug, Default)]
pub struct Earlier(Option<(PathBuf, State)>);

/// Number, length and time of change of a file. Publishing a trace changes the number.
type State = (u64, u64, Option<SystemTime>);

fn state_of(found: &fs::Metadata) -> State {
    #[cfg(unix)]
    let number = std::os::unix::fs::MetadataExt::ino(found);
    #[cfg(not(unix))]
    let number = 0;
    (number, found.len(), found.modified().ok())
}

impl Earlier {
    /// Returns true if a file existed and is still unchanged.
    pub fn is_kept(&self) -> bool {
        let state = |path| fs::metadata(path).ok().map(|found| state_of(&found));
        self.0.as_ref().is_some_and(|(path, before)| state(path) == Some(*before))
    }

    /// Renames an earlier trace after a recording that recorded nothing, so that nobody takes it for this
    /// recording: `a.wtrc` becomes `a.earlier.wtrc`, or `a.earlier-2.wtrc` if that exists. Returns a message
    /// about the file; `None` if no file is kept. A file that is not a trace is left as it is.
    pub fn set_aside(&self) -> Option<String> {
        let (path, _) = self.0.as_ref().filter(|_| self.is_kept())?;
        let mut magic = [0; MAGIC.len()];
        let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
        if read.is_err() || magic != MAGIC {
            return Some(format!("nothing was recorded, and {} is as it was", path.display()));
        }
        let [stem, extension] = [path.file_stem(), path.extension()]
            .map(|part| part.unwrap_or_default().to_string_lossy().into_owned());
        let name = |number: u32| {
            let number = if number == 1 { String::new() } else { format!("-{number}") };
            path.with_file_name(format!("{stem}.earlier{number}.{extension}"))
        };
        let aside = (1..).map(name).find(|name| !name.exists())?;
        Some(match fs::rename(path, &aside) {
            Ok(()) => {
                format!("nothing was recorded; the earlier trace of this name is now {}", aside.display())
            }
            Err(_) => {
                format!("nothing was recorded; {} is still the trace of an earlier run", path.display())
            }
        })
    }
}

/// A part file in the folder of the file that it will replace. Dropping it removes the part file.
#[derive(Debug)]
pub(super) struct Replacement {
    target: PathBuf,
    /// `None` if the part file is unnamed until it replaces the target: a killed process then leaves no file.
    name: Option<TempPath>,
    sections: Sections,
}

impl Replacement {
    /// Creates the part file for the file `old` at `target`.
    pub(super) fn new(target: PathBuf, old: &File) -> io::Result<(Self, File, Earlier)> {
        let failed = |error: io::Error| {
            let words =
                format!("no file can be made beside it, which the recording needs to replace it: {error}");
            io::Error::new(error.kind(), words)
        };
        let (file, name) = match unnamed(folder_of(&target)) {
            Some(file) => (file, None),
            None => {
                let part = tempfile::Builder::new().prefix(PART).tempfile_in(folder_of(&target));
                let (file, name) = part.map_err(failed)?.into_parts();
                (file, Some(name))
            }
        };
        let found = old.metadata()?;
        let earlier = Earlier(Some((target.clone(), state_of(&found))));
        file.set_permissions(found.permissions()).map_err(failed)?;
        Ok((Self { target, name, sections: Sections::default() }, file, earlier))
    }

    pub(super) fn wrote(&mut self, bytes: &[u8]) {
        self.sections.add(bytes);
    }

    /// Returns true if the recording has begun, so that it may replace the file.
    pub(super) fn is_due(&self) -> bool {
        self.sections.has_begun
    }

    pub(super) fn publish(self, file: &File) -> io::Result<()> {
        // Some file systems report a full disk only here.
        file.sync_data()?;
        let name = match self.name {
            Some(name) => name,
            None => {
                let mut builder = tempfile::Builder::new();
                let named = builder.prefix(PART).make_in(folder_of(&self.target), |path| link(file, path));
                named?.into_temp_path()
            }
        };
        name.persist(&self.target).map_err(|error| error.error)?;
        Ok(())
    }
}

/// Progress of a trace, from the headers of its sections.
#[derive(Debug)]
struct Sections {
    skip: u64,
    header: Vec<u8>,
    has_failed: bool,
    /// Whether the trace has events or accounts of a launch, or is complete and no launch failed.
    has_begun: bool,
}

impl Default for Sections {
    fn default() -> Self {
        Self { skip: PREAMBLE_BYTES as u64, header: Vec::new(), has_failed: false, has_begun: false }
    }
}

impl Sections {
    fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let skipped = usize::try_from(self.skip).unwrap_or(usize::MAX).min(bytes.len());
            self.skip -= skipped as u64;
            let rest = &bytes[skipped..];
            let (now, after) = rest.split_at(rest.len().min(SECTION_HEADER_BYTES - self.header.len()));
            bytes = after;
            self.header.extend_from_slice(now);
            if self.header.len() == SECTION_HEADER_BYTES {
                // After an invalid header no further header can be found.
                self.skip = SectionHeader::parse(&self.header, 0).map_or(u64::MAX, |header| {
                    let is = |kind: SectionKind| header.tag == kind.tag();
                    self.has_failed |= is(SectionKind::EarlyEnd);
                    self.has_begun |= is(SectionKind::Frame) || is(SectionKind::Accounts);
                    self.has_begun |= is(SectionKind::Trailer) && !self.has_failed;
                    header.length
                });
                self.header.clear();
            }
        }
    }
}

/// Creates an unnamed file, if the system supports it.
#[cfg(target_os = "linux")]
fn unnamed(folder: &Path) -> Option<File> {
    use std::os::unix::fs::OpenOptionsExt;

    let flags = rustix::fs::OFlags::TMPFILE.bits();
    // An unnamed file gets its name through this folder.
    let is_named = Path::new("/proc/self/fd").is_dir();
    is_named.then(|| File::options().write(true).mode(0o600).custom_flags(flags as i32).open(folder).ok())?
}

#[cfg(not(target_os = "linux"))]
fn unnamed(_folder: &Path) -> Option<File> {
    None
}

#[cfg(target_os = "linux")]
fn link(file: &File, path: &Path) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    use rustix::fs::{AtFlags, CWD, linkat};

    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, own, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(not(target_os = "linux"))]
fn link(_file: &File, _path: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns the canonical path of an open file; `None` if `path` does not lead to it.
pub(super) fn name_of(path: &Path, file: &File) -> io::Result<Option<PathBuf>> {
    let Ok(target) = fs::canonicalize(path) else { return Ok(None) };
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;

        let place = |found: &fs::Metadata| (found.dev(), found.ino());
        let own = place(&file.metadata()?);
        if fs::metadata(&target).map_or(true, |found| place(&found) != own) {
            return Ok(None);
        }
    }
    #[cfg(not(unix))]
    let _ = file;
    Ok(Some(target))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}
