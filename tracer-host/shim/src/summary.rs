//! The process's report for `warptrace run`: a text file, which is rewritten when a line is added, and at
//! exit.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use warptrace_abi::run::{HANG_PREFIX, REPORT_PREFIX};
use warptrace_format::file::{Unrecorded, UnrecordedLaunches};
use warptrace_format::shown;

use crate::exchange::NOT_ASKED;
use crate::ranges::Asked;
use crate::trace::SAID;

/// Maximum number of untraced kernels that the report names. Further kernels are only counted.
const MAX_UNTRACED: usize = 8;

/// Maximum number of characters of a kernel's name in the report.
pub(crate) const MAX_NAME_CHARS: usize = 100;

/// The first panic of the tracer. Setting it takes no lock, because the thread that panics may hold one.
static PANIC: OnceLock<String> = OnceLock::new();

pub(crate) fn note_panic(what: &str) {
    let _ = PANIC.set(what.split_whitespace().collect::<Vec<_>>().join(" "));
}

/// Number of launches that the process made, and number of traced launches.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) seen: AtomicU64,
    pub(crate) traced: AtomicU64,
}

#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// Folder of the report; `None` if no report is requested.
    folder: Option<PathBuf>,
    process: u32,
    /// Trace files reserved for this process.
    claimed: Vec<PathBuf>,
    /// One line for each trace, with its file.
    traces: Vec<(PathBuf, String)>,
    pub(crate) counts: Arc<Counts>,
    untraced: Vec<Arc<Untraced>>,
    notes: Vec<String>,
    /// Notes for trace files, with their contexts.
    remarks: Vec<(usize, String)>,
    /// Number of traces that show a hang.
    hangs: usize,
    pub(crate) asked: Option<Arc<Asked>>,
}

/// Untraced launches of one kernel in one context, for one reason.
#[derive(Debug)]
pub(crate) struct Untraced {
    context: usize,
    kernel: String,
    reason: String,
    launches: AtomicU64,
    /// How many of the launches are listed in a trace.
    written: AtomicU64,
}

impl Untraced {
    pub(crate) fn count(&self, launches: u64) {
        self.launches.fetch_add(launches, Ordering::Relaxed);
    }

    /// Returns the context; 0 if it is unknown.
    pub(crate) const fn context(&self) -> usize {
        self.context
    }

    /// Returns true if the user excluded the launches, or if the report already has the reason.
    fn is_expected(&self) -> bool {
        [NOT_ASKED, SAID].contains(&&*self.reason)
    }
}

impl Summary {
    pub(crate) fn new(folder: Option<PathBuf>, process: u32) -> Self {
        Self { folder, process, ..Self::default() }
    }

    /// Reserves a trace file in the folder. Returns false if another process has reserved it.
    pub(crate) fn claim(&mut self, file: &Path) -> bool {
        let Some(folder) = &self.folder else { return true };
        if self.claimed.iter().any(|known| known == file) {
            return true;
        }
        // The file name is made from the path; it must not contain separators.
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

    pub(crate) fn trace(&mut self, file: &Path, line: String) {
        match self.traces.iter_mut().find(|(known, _)| known == file) {
            Some((_, old)) if *old == line => return,
            Some((_, old)) => *old = line,
            None => self.traces.push((file.to_owned(), line)),
        }
        self.write();
    }

    /// Reports that a trace shows a hang.
    pub(crate) fn hangs(&mut self, file: &Path) {
        let Some(folder) = &self.folder else { return };
        self.hangs += 1;
        let name = format!("{HANG_PREFIX}{}-{}", self.process, self.hangs);
        // Written under another name, then renamed: readers never see part of the file.
        let part = folder.join(format!("part-{name}"));
        let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        if fs::write(&part, file.as_os_str().as_encoded_bytes()).is_ok() {
            let _ = fs::rename(part, folder.join(name));
        }
    }

    /// Adds a line to the report, unless the report has it already.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
            self.write();
        }
    }

    /// Adds a note to the trace of a context, unless the note is already waiting.
    pub(crate) fn remark(&mut self, context: usize, remark: String) {
        let remark = (context, remark);
        if !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }

    /// Reports why this process is not traced: in the report, or on standard error if no report is requested.
    pub(crate) fn refuse(&mut self, problem: &str) {
        if self.folder.is_none() {
            // The program may have closed standard error.
            let _ = writeln!(std::io::stderr(), "warptrace: nothing is traced: {}", shown(problem));
        }
        self.note(format!("nothing was traced: {problem}"));
    }

    /// Counts an untraced launch; `context` is 0 if unknown. Returns its entry, for counting more launches.
    pub(crate) fn untraced(&mut self, context: usize, kernel: &str, reason: &str) -> Arc<Untraced> {
        let kernel = &*match kernel.char_indices().nth(MAX_NAME_CHARS) {
            None => kernel.to_owned(),
            Some((end, _)) => format!("{}…", &kernel[..end]),
        };
        let is_it = |known: &&Arc<Untraced>| {
            known.kernel == kernel && known.reason == reason && known.context == context
        };
        if let Some(known) = self.untraced.iter().find(is_it) {
            known.count(1);
            return Arc::clone(known);
        }
        let (kernel, reason) = (kernel.to_owned(), reason.to_owned());
        let (launches, written) = (AtomicU64::new(1), AtomicU64::new(0));
        let new = Arc::new(Untraced { context, kernel, reason, launches, written });
        self.untraced.push(Arc::clone(&new));
        self.write();
        new
    }

    /// Takes the notes of a context, and its untraced launches that no trace lists yet.
    pub(crate) fn take_unrecorded(&mut self, context: usize) -> Unrecorded {
        let take = |untraced: &Arc<Untraced>| {
            let launches = untraced.launches.load(Ordering::Relaxed);
            let new = launches.saturating_sub(untraced.written.swap(launches, Ordering::Relaxed));
            let Untraced { kernel, reason, .. } = &**untraced;
            (new > 0).then(|| UnrecordedLaunches {
                kernel: kernel.clone(),
                reason: reason.clone(),
                launches: new,
            })
        };
        let launches =
            self.untraced.iter().filter(|untraced| untraced.context == context).filter_map(take).collect();
        let notes = self.remarks.extract_if(.., |(of, _)| *of == context).map(|(_, remark)| remark).collect();
        Unrecorded { launches, notes }
    }

    /// Writes the report. Ignores errors, which must not disturb the program.
    pub(crate) fn write(&self) {
        let Some(folder) = &self.folder else { return };
        let path = folder.join(format!("{REPORT_PREFIX}{}", self.process));
        if let Ok(mut file) = fs::File::create(path) {
            let _ = file.write_all((self.lines().join("\n") + "\n").as_bytes());
        }
    }

    /// Returns the report's lines. The first line names the process.
    fn lines(&self) -> Vec<String> {
        let program = std::env::current_exe().ok();
        let program = program.as_deref().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        let mut lines = vec![format!("{program}, process {}", self.process)];
        lines.extend(self.traces.iter().map(|(file, line)| format!("{}: {line}", file.display())));
        lines.extend(self.notes.iter().cloned());
        lines.extend(self.asked.as_ref().and_then(|asked| asked.line()));
        let (expected, told): (Vec<_>, Vec<_>) =
            self.untraced.iter().partition(|untraced| untraced.is_expected());
        for untraced in told.iter().take(MAX_UNTRACED) {
            let Untraced { kernel, reason, launches, .. } = &***untraced;
            let launches = launch_count(launches.load(Ordering::Relaxed));
            lines.push(format!("not traced: {launches} of {kernel}: {reason}"));
        }
        if let Some(more) = told.len().checked_sub(MAX_UNTRACED).filter(|more| *more > 0) {
            lines.push(format!("not traced: {more} more kernels"));
        }
        let unasked = expected.iter().filter(|untraced| untraced.reason == NOT_ASKED);
        let unasked = unasked.map(|untraced| untraced.launches.load(Ordering::Relaxed)).sum();
        if unasked > 0 {
            lines.push(format!("not traced, as asked: {}", launch_count(unasked)));
        }
        lines.extend(self.launches());
        // An option that names no kernel is easily mistyped.
        if unasked > 0 && told.is_empty() && self.counts.traced.load(Ordering::Relaxed) == 0 {
            let kernels: BTreeSet<&str> = expected.iter().map(|untraced| &*untraced.kernel).collect();
            let kernels: Vec<&str> = kernels.into_iter().take(MAX_UNTRACED).collect();
            lines.push(format!("no launch was asked for; launched were {}", kernels.join(", ")));
        }
        lines.extend(PANIC.get().map(|what| format!("the tracer failed, which is a mistake in it: {what}")));
        lines
    }

    /// Returns a line with the numbers of launches, unless all of them were traced.
    fn launches(&self) -> Option<String> {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (seen, traced) = (read(&self.counts.seen), read(&self.counts.traced));
        let untraced: u64 = self.untraced.iter().map(|untraced| read(&untraced.launches)).sum();
        // A launch in progress is in neither count.
        let unknown = match seen.saturating_sub(traced + untraced) {
            0 => String::new(),
            unknown => format!(", and of {unknown} it is not known"),
        };
        (seen > traced)
            .then(|| format!("{} seen: {traced} traced, {untraced} not{unknown}", launch_count(seen)))
    }
}

fn launch_count(launches: u64) -> String {
    if launches == 1 { "1 launch".to_owned() } else { format!("{launches} launches") }
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
        summary.untraced(0, "k", "only machine code").count(3);
        summary.untraced(0, "k", "only machine code");
        summary.untraced(0, "k", NOT_ASKED).count(1);
        summary.counts.seen.store(9, Ordering::Relaxed);
        summary.counts.traced.store(2, Ordering::Relaxed);
        summary.note("once");
        summary.note("once");
        summary.remark(0, "for the file".to_owned());
        summary.write();
        let written = fs::read_to_string(folder.path().join("process-7")).expect("a report");
        let lines: Vec<&str> = written.lines().skip(1).collect();
        let expected = [
            "a.wtrc: 3 events",
            "once",
            "not traced: 5 launches of k: only machine code",
            "not traced, as asked: 2 launches",
            "9 launches seen: 2 traced, 7 not",
        ];
        assert_eq!(lines, expected);
        let mut taken = |context| {
            let Unrecorded { launches, notes } = summary.take_unrecorded(context);
            (launches.iter().map(|unrecorded| unrecorded.launches).collect::<Vec<_>>(), notes.len())
        };
        assert_eq!((taken(1), taken(0), taken(0)), ((vec![], 0), (vec![5, 2], 1), (vec![], 0)));
        // A process may reserve the same file again.
        assert!(summary.claim(Path::new("/x/a.wtrc")) && summary.claim(Path::new("/x/a.wtrc")));
        let mut other = Summary::new(Some(folder.path().to_owned()), 8);
        assert!(!other.claim(Path::new("/x/a.wtrc")) && other.claim(Path::new("/x/b.wtrc")));
    }
}
