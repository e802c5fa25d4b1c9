//! A recording that is to replace a file, before it does.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempPath;
use warptrace_format::file::{PREAMBLE_BYTES, SECTION_HEADER_BYTES, SectionHeader, SectionKind};

/// How names of parts begin.
const PART: &str = ".warptrace-part-";

/// Whether what was there before a recording still is.
#[derive(Clone, Debug, Default)]
pub struct Earlier(Arc<AtomicBool>);

impl Earlier {
    /// Returns whether there was a file, and still is as it was.
    pub fn is_kept(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A part beside the file that it is to replace. Dropped, it is gone.
#[derive(Debug)]
pub(super) struct Replacement {
    target: PathBuf,
    /// `None`: the part gets its first name when it replaces the file, so that no end of the process leaves
    /// it.
    name: Option<TempPath>,
    sections: Sections,
    earlier: Earlier,
}

impl Replacement {
    /// Makes the part for the file `old`, which is found at `target`.
    pub(super) fn new(target: PathBuf, old: &File) -> io::Result<(Self, File)> {
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
        file.set_permissions(old.metadata()?.permissions()).map_err(failed)?;
        let earlier = Earlier(Arc::new(AtomicBool::new(true)));
        Ok((Self { target, name, sections: Sections::default(), earlier }, file))
    }

    pub(super) fn earlier(&self) -> Earlier {
        self.earlier.clone()
    }

    /// Notes what was written.
    pub(super) fn wrote(&mut self, bytes: &[u8]) {
        self.sections.add(bytes);
    }

    /// Whether the recording has begun, so that it may replace the file.
    pub(super) fn is_due(&self) -> bool {
        self.sections.has_begun
    }

    /// Replaces the file by the part `file`.
    pub(super) fn publish(self, file: &File) -> io::Result<()> {
        // Some file systems say only now that there was no room.
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
        self.earlier.0.store(false, Ordering::Release);
        Ok(())
    }
}

/// What has come of a trace, seen by the headers of its sections.
#[derive(Debug)]
struct Sections {
    /// Bytes up to the next header.
    skip: u64,
    /// What has come of it.
    header: Vec<u8>,
    has_failed: bool,
    /// Whether there are events or accounts of a launch, or a whole trace in which no launch failed.
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
                // Behind what is no header, none can be found.
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

/// Makes a file without a name, where the system has such.
#[cfg(target_os = "linux")]
fn unnamed(folder: &Path) -> Option<File> {
    use std::os::unix::fs::OpenOptionsExt;

    let flags = rustix::fs::OFlags::TMPFILE.bits();
    // Without it, it could not be named.
    let is_named = Path::new("/proc/self/fd").is_dir();
    is_named.then(|| File::options().write(true).mode(0o600).custom_flags(flags as i32).open(folder).ok())?
}

#[cfg(not(target_os = "linux"))]
fn unnamed(_folder: &Path) -> Option<File> {
    None
}

/// Gives a file without a name one.
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

/// Finds the name of a file that is open, where it has one.
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
