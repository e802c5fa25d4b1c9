//! The output file of a recording.

mod replacement;

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub use self::replacement::Earlier;
use self::replacement::Replacement;

/// A file that one recording writes while others may read it. The file is locked until this is dropped, and
/// removed if it is new and nothing was written. An existing file is kept until the new trace has events or
/// accounts of a launch, or is complete and no launch failed. Until then the trace goes to a part file in the
/// same folder, which then replaces the existing file.
#[derive(Debug)]
pub struct TraceOutput {
    /// `None` for standard output.
    file: Option<File>,
    replacement: Option<Replacement>,
    earlier: Earlier,
    /// The replaced file. Readers that opened it earlier see its lock.
    _old: Option<File>,
    /// The path, if this created the file and nothing was written yet.
    made: Option<PathBuf>,
    has_failed: bool,
}

impl TraceOutput {
    /// Opens `path` for writing, and creates it if it does not exist; `-` is standard output. Fails if the
    /// file cannot be written, no part file can be created in its folder, or another recording writes it
    /// ([`io::ErrorKind::ResourceBusy`]).
    pub fn open(path: &Path) -> io::Result<Self> {
        let plain = |file: Option<File>| Self {
            file,
            replacement: None,
            earlier: Earlier::default(),
            _old: None,
            made: None,
            has_failed: false,
        };
        if path == Path::new("-") {
            return Ok(plain(None));
        }
        let is_new = !path.exists();
        let file = File::options().write(true).create(true).truncate(false).open(path)?;
        // Pipes and devices have no content to keep.
        if !file.metadata()?.is_file() {
            return Ok(plain(Some(file)));
        }
        lock(&file)?;
        if file.metadata()?.len() == 0 {
            // The link's target, if `path` is a dangling link.
            let made = if is_new { Some(fs::canonicalize(path)?) } else { None };
            let mut output = plain(Some(file));
            output.made = made;
            return Ok(output);
        }
        let Some(target) = replacement::name_of(path, &file)? else {
            // A file without a name cannot be replaced.
            file.set_len(0)?;
            return Ok(plain(Some(file)));
        };
        let (replacement, part, earlier) = Replacement::new(target, &file)?;
        lock(&part)?;
        // On other systems than Unix, an open file cannot be replaced.
        let old = cfg!(unix).then_some(file);
        Ok(Self {
            file: Some(part),
            replacement: Some(replacement),
            earlier,
            _old: old,
            made: None,
            has_failed: false,
        })
    }

    /// Returns the existing file, which a recording that records nothing [sets aside](Earlier::set_aside).
    pub fn earlier(&self) -> Earlier {
        self.earlier.clone()
    }

    /// Returns true if a recording currently writes the file. Otherwise no recording can begin to write it until
    /// `file` is closed.
    pub fn is_recorded(file: &File) -> bool {
        cfg!(unix) && matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
    }

    /// Waits until the bytes are on disk. Fails with [`io::ErrorKind::NotFound`] if the file was deleted.
    pub fn sync(&self) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let found = file.metadata()?;
        if !found.is_file() {
            return Ok(());
        }
        #[cfg(unix)]
        if std::os::unix::fs::MetadataExt::nlink(&found) == 0 {
            let words =
                "the file was deleted or replaced while it was recorded, and the trace is gone with it";
            return Err(io::Error::new(io::ErrorKind::NotFound, words));
        }
        file.sync_all()
    }
}

/// Returns how many more bytes may be written to a file. Writing more would end the process with SIGXFSZ.
#[cfg(unix)]
fn may_grow(file: &mut File) -> io::Result<u64> {
    use std::io::Seek;

    let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
    match limit {
        Some(limit) if file.metadata()?.is_file() => Ok(limit.saturating_sub(file.stream_position()?)),
        _ => Ok(u64::MAX),
    }
}

#[cfg(not(unix))]
fn may_grow(_file: &mut File) -> io::Result<u64> {
    Ok(u64::MAX)
}

/// Locks a file for one recording. On other systems than Unix, a lock would also keep readers out.
fn lock(file: &File) -> io::Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            let words = "another recording writes it: wait for its end, or name another file";
            Err(io::Error::new(io::ErrorKind::ResourceBusy, words))
        }
        // The file system may not support locks.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}

impl Write for TraceOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(file) = &mut self.file else { return io::stdout().write(bytes) };
        let may_grow = usize::try_from(may_grow(file)?).unwrap_or(usize::MAX);
        let written = match may_grow {
            0 if !bytes.is_empty() => Err(io::ErrorKind::FileTooLarge.into()),
            most => file.write(&bytes[..bytes.len().min(most)]),
        };
        self.has_failed |= written.is_err();
        let written = written?;
        self.made = None;
        if let Some(replacement) = &mut self.replacement {
            replacement.wrote(&bytes[..written]);
        }
        Ok(written)
    }

    /// Publishes the part file if it is due. The writer flushes only after whole sections.
    fn flush(&mut self) -> io::Result<()> {
        let Some(file) = &mut self.file else { return io::stdout().flush() };
        file.flush()?;
        match self.replacement.take_if(|replacement| replacement.is_due()) {
            Some(replacement) => replacement.publish(file),
            None => Ok(()),
        }
    }
}

impl Drop for TraceOutput {
    fn drop(&mut self) {
        // The writer does not flush a recording that failed after its first launch.
        if !self.has_failed {
            let _ = self.flush();
        }
        if let Some(path) = &self.made {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use warptrace_format::account::WarpAccount;
    use warptrace_format::codec::CodecSpec;
    use warptrace_format::file::{DeviceInfo, MAGIC};

    use super::*;
    use crate::writer::{ChunkRef, EarlyEnd, LaunchInfo, Metadata, TraceWriter, WriterOptions};

    #[test]
    fn a_second_recording_is_refused_and_one_that_writes_nothing_leaves_what_was_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.wtrc");
        drop(TraceOutput::open(&path).expect("it can be made"));
        assert!(!path.exists(), "nothing was written");
        #[cfg(unix)]
        {
            let link = folder.path().join("link");
            std::os::unix::fs::symlink("a.wtrc", &link).expect("a link can be made");
            drop(TraceOutput::open(&link).expect("its file can be made"));
            assert!(link.is_symlink() && !path.exists(), "the link stays, the file goes");
        }

        fs::write(&path, "an earlier trace").expect("it can be written");
        let first = TraceOutput::open(&path).expect("it can be opened");
        assert_eq!(fs::read(&path).expect("it is there"), b"an earlier trace");
        if cfg!(unix) {
            let refused = TraceOutput::open(&path).expect_err("the first has it");
            assert_eq!(refused.kind(), io::ErrorKind::ResourceBusy);
            assert!(TraceOutput::is_recorded(&File::open(&path).expect("it can be read")));
        }
        drop(first);
        assert!(!TraceOutput::is_recorded(&File::open(&path).expect("it can be read")));
        assert_eq!(fs::read(&path).expect("it is there"), b"an earlier trace", "nothing was recorded");
    }

    #[test]
    fn an_earlier_trace_is_renamed_if_nothing_was_recorded() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.wtrc");
        for name in ["a.earlier.wtrc", "a.earlier-2.wtrc"] {
            let trace = [&MAGIC[..], name.as_bytes()].concat();
            fs::write(&path, &trace).expect("it can be written");
            let earlier = TraceOutput::open(&path).expect("it can be opened").earlier();
            let words = earlier.set_aside().expect("it is kept");
            assert!(words.contains(name), "{words}");
            assert!(!path.exists() && fs::read(folder.path().join(name)).expect("it is there") == trace);
            assert_eq!(earlier.set_aside(), None);
        }
        fs::write(&path, "no trace").expect("it can be written");
        let earlier = TraceOutput::open(&path).expect("it can be opened").earlier();
        assert!(earlier.set_aside().is_some_and(|words| words.contains("as it was")) && path.exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_was_deleted_meanwhile_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.wtrc");
        let mut output = TraceOutput::open(&path).expect("it can be made");
        output.write_all(b"a trace").expect("there is room");
        output.sync().expect("it is there");
        fs::remove_file(&path).expect("it is there");
        assert_eq!(output.sync().expect_err("it is gone").kind(), io::ErrorKind::NotFound);
    }

    const ENDS: [&str; 5] = ["events", "accounts", "a whole trace", "a failed launch", "nothing"];

    /// Records a launch into `output`, up to the point that decides about an earlier file.
    fn record(output: TraceOutput, end: &str) -> Option<TraceOutput> {
        let metadata =
            Metadata::new("p", DeviceInfo::simulator("s"), vec![CodecSpec::Raw]).with_kernel("k", "");
        let mut writer =
            TraceWriter::create(output, &metadata, WriterOptions::default()).expect("there is room");
        let launch = LaunchInfo::new(0, 0, [1, 1, 1], [32, 1, 1], 0).expect("it has a warp");
        writer.begin_launch(&launch).expect("there is room");
        let chunk =
            ChunkRef { track: 0, warp: 0, sequence: 0, events: 1, payload: &[1, 0, 255, 255, 255, 255] };
        let account = WarpAccount { attempted: 1, recorded: 1, lost: 0, chunks: 1, finished: 1 };
        match end {
            "events" => writer.write_chunks(0, &[chunk]).expect("there is room"),
            "accounts" => writer.end_launch(0, 0, &[account]).expect("there is room"),
            "a failed launch" => writer.end_early(0, &EarlyEnd::failed("no memory")).expect("there is room"),
            "a whole trace" => {}
            _ => return None,
        }
        Some(writer.finish().expect("there is room").0)
    }

    #[test]
    fn a_recording_that_has_begun_replaces_what_was_there_and_no_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.wtrc");
        let names = || fs::read_dir(folder.path()).expect("a folder").count();
        for end in ENDS {
            fs::write(&path, "an earlier trace").expect("it can be written");
            let output = TraceOutput::open(&path).expect("it can be opened");
            let earlier = output.earlier();
            let old = File::open(&path).expect("it can be read");
            let output = record(output, end);
            let found = fs::read(&path).expect("it is there");
            let is_kept = found == b"an earlier trace";
            assert_eq!(is_kept, ["a failed launch", "nothing"].contains(&end), "{end}");
            assert_eq!(earlier.is_kept(), is_kept, "{end}");
            assert!(is_kept || found.starts_with(&MAGIC), "{end}");
            if cfg!(unix) && output.is_some() {
                let refused = TraceOutput::open(&path).expect_err("the first has it");
                assert_eq!(refused.kind(), io::ErrorKind::ResourceBusy);
                assert!(TraceOutput::is_recorded(&old), "also for who has opened it before");
            }
            drop(output);
            assert!(!TraceOutput::is_recorded(&old), "{end}");
            drop(old);
            assert_eq!(names(), 1, "{end}: no part stays");
            // If no file existed, or an empty one, the trace is written directly.
            fs::write(&path, "").expect("it can be written");
            drop(record(TraceOutput::open(&path).expect("it can be opened"), end));
            assert!(fs::read(&path).expect("it is there").starts_with(&MAGIC), "{end}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link_and_permissions_stay() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().expect("a folder");
        let (path, link) = (folder.path().join("a.wtrc"), folder.path().join("link"));
        fs::write(&path, "an earlier trace").expect("it can be written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("it is ours");
        std::os::unix::fs::symlink("a.wtrc", &link).expect("a link can be made");
        drop(record(TraceOutput::open(&link).expect("it can be opened"), "events"));
        assert!(link.is_symlink());
        assert!(fs::read(&path).expect("it is there").starts_with(&MAGIC));
        assert_eq!(fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o640);
    }
}
