//! What `warptrace run` says of a process when it has ended: a file of lines, written as they come to be
//! known.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use warptrace_abi::run::{HANG_PREFIX, REPORT_PREFIX};
use warptrace_format::shown;

use crate::ranges::Asked;

/// Kernels that are named as not traced; the others are counted.
const MAX_UNTRACED: usize = 8;

/// Characters of a kernel's name that are told: a template's name may fill a page.
pub(crate) const MAX_NAME_CHARS: usize = 100;

/// What a process did.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// `None` if it is not asked for.
    folder: Option<PathBuf>,
    process: u32,
    /// Files that this process writes.
    claimed: Vec<PathBuf>,
    /// A line for each trace, by its file.
    traces: Vec<(PathBuf, String)>,
    /// Kernels that ran untraced, why, and how often.
    untraced: Vec<Arc<Untraced>>,
    notes: Vec<String>,
    /// Traces that tell where launches hang.
    hangs: usize,
    /// Which ranges are recorded.
    pub(crate) asked: Option<Arc<Asked>>,
}

/// A kernel that runs untraced.
#[derive(Debug)]
pub(crate) struct Untraced {
    kernel: String,
    reason: String,
    launches: AtomicU64,
}

impl Untraced {
    /// Counts launches.
    pub(crate) fn count(&self, launches: u64) {
        self.launches.fetch_add(launches, Ordering::Relaxed);
    }
}

impl Summary {
    pub(crate) fn new(folder: Option<PathBuf>, process: u32) -> Self {
        Self { folder, process, ..Self::default() }
    }

    /// Says in the folder that this process writes a file; `false` if another does.
    pub(crate) fn claim(&mut self, file: &Path) -> bool {
        let Some(folder) = &self.folder else { return true };
        if self.claimed.iter().any(|known| known == file) {
            return true;
        }
        // A name for the path without its separators.
        let name: String = file
            .as_os_str()
            .as_encoded_bytes()
            .iter()
            .map(|byte| {
                if byte.is_ascii_alphanumeric() {
                    char::from(*byte).to_string()
                } else {
                    format!("_{byte:02x}")
                }
            })
            .collect();
        let tail: String = name.chars().rev().take(200).collect::<Vec<_>>().into_iter().rev().collect();
        let claimed = match fs::File::create_new(folder.join(format!("writes-{tail}"))) {
            Ok(_) => true,
            Err(error) => error.kind() != std::io::ErrorKind::AlreadyExists,
        };
        if claimed {
            self.claimed.push(file.to_owned());
        }
        claimed
    }

    /// Sets what is said of a trace.
    pub(crate) fn trace(&mut self, file: &Path, line: String) {
        match self.traces.iter_mut().find(|(known, _)| known == file) {
            Some((_, old)) if *old == line => return,
            Some((_, old)) => *old = line,
            None => self.traces.push((file.to_owned(), line)),
        }
        self.write();
    }

    /// Says that a trace tells where launches hang.
    pub(crate) fn hangs(&mut self, file: &Path) {
        let Some(folder) = &self.folder else { return };
        self.hangs += 1;
        let name = format!("{HANG_PREFIX}{}-{}", self.process, self.hangs);
        // It is there when it is whole.
        let part = folder.join(format!("part-{name}"));
        let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        if fs::write(&part, file.as_os_str().as_encoded_bytes()).is_ok() {
            let _ = fs::rename(part, folder.join(name));
        }
    }

    /// Adds a line, once.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
            self.write();
        }
    }

    /// Says why this process is not traced: in the folder, or, if nothing reads that, on standard error.
    pub(crate) fn refuse(&mut self, problem: &str) {
        if self.folder.is_none() {
            // A program may have closed it.
            let _ = writeln!(std::io::stderr(), "warptrace: nothing is traced: {}", shown(problem));
        }
        self.note(format!("nothing was traced: {problem}"));
    }

    /// Counts a launch of a kernel that ran untraced; returns where more of them are counted.
    pub(crate) fn untraced(&mut self, kernel: &str, reason: &str) -> Arc<Untraced> {
        let kernel = &*match kernel.char_indices().nth(MAX_NAME_CHARS) {
            None => kernel.to_owned(),
            Some((end, _)) => format!("{}…", &kernel[..end]),
        };
        let is_it = |known: &&Arc<Untraced>| known.kernel == kernel && known.reason == reason;
        if let Some(known) = self.untraced.iter().find(is_it) {
            known.count(1);
            return Arc::clone(known);
        }
        let (kernel, reason) = (kernel.to_owned(), reason.to_owned());
        let new = Arc::new(Untraced { kernel, reason, launches: AtomicU64::new(1) });
        self.untraced.push(Arc::clone(&new));
        self.write();
        new
    }

    /// Writes all lines. What goes wrong with that must not concern the program.
    pub(crate) fn write(&self) {
        let Some(folder) = &self.folder else { return };
        let path = folder.join(format!("{REPORT_PREFIX}{}", self.process));
        if let Ok(mut file) = fs::File::create(path) {
            let _ = file.write_all((self.lines().join("\n") + "\n").as_bytes());
        }
    }

    /// The lines; the first one names the process.
    fn lines(&self) -> Vec<String> {
        let program = std::env::current_exe().ok();
        let program = program.as_deref().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        let mut lines = vec![format!("{program}, process {}", self.process)];
        lines.extend(self.traces.iter().map(|(file, line)| format!("{}: {line}", file.display())));
        lines.extend(self.notes.iter().cloned());
        lines.extend(self.asked.as_ref().and_then(|asked| asked.line()));
        for untraced in self.untraced.iter().take(MAX_UNTRACED) {
            let Untraced { kernel, reason, launches } = &**untraced;
            let launches = match launches.load(Ordering::Relaxed) {
                1 => "1 launch".to_owned(),
                launches => format!("{launches} launches"),
            };
            lines.push(format!("not traced: {launches} of {kernel}: {reason}"));
        }
        if let Some(more) = self.untraced.len().checked_sub(MAX_UNTRACED).filter(|more| *more > 0) {
            lines.push(format!("not traced: {more} more kernels"));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_what_was_traced_and_what_was_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut summary = Summary::new(Some(folder.path().to_owned()), 7);
        summary.trace(Path::new("a.wtrc"), "recording".to_owned());
        summary.trace(Path::new("a.wtrc"), "3 events".to_owned());
        summary.untraced("k", "only machine code").count(3);
        summary.untraced("k", "only machine code");
        summary.note("once");
        summary.note("once");
        summary.write();
        let written = fs::read_to_string(folder.path().join("process-7")).expect("a report");
        let lines: Vec<&str> = written.lines().skip(1).collect();
        assert_eq!(lines, ["a.wtrc: 3 events", "once", "not traced: 5 launches of k: only machine code"]);
        // The process that writes a file may do so again.
        assert!(summary.claim(Path::new("/x/a.wtrc")) && summary.claim(Path::new("/x/a.wtrc")));
        let mut other = Summary::new(Some(folder.path().to_owned()), 8);
        assert!(!other.claim(Path::new("/x/a.wtrc")) && other.claim(Path::new("/x/b.wtrc")));
    }
}
