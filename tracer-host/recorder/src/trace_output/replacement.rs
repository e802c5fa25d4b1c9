//! A trace file before it replaces an existing file.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempPath;
use warptrace_format::file::{PREAMBLE_BYTES, SECTION_HEADER_BYTES, SectionHeader, SectionKind};

/// Name prefix of part files.
const PART: &str = ".warptrace-part-";

/// Whether the file from before the recording still exists.
#[derive(Clone, Debug, Default)]
pub struct Earlier(Arc<AtomicBool>);

impl Earlier {
    /// Returns true if a file existed and is still unchanged.
    pub fn is_kept(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A part file in the folder of the file that it will replace. Dropping it removes the part file.
#[derive(Debug)]
pub(super) struct Replacement {
    target: PathBuf,
    /// `None` if the part file is unnamed until it replaces the target, so that a killed process leaves no
    /// file.
    name: Option<TempPath>,
    sections: Sections,
    earlier: Earlier,
}

impl Replacement {
    /// Creates the part file for the file `old` at `target`.
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
        self.earlier.0.store(false, Ordering::Release);
        Ok(())
    }
}

/// Progress of a trace, from the headers of its sections.
#[derive(Debug)]
struct Sections {
    /// Bytes until the next header.
    skip: u64,
    /// Bytes of the next header so far.
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
