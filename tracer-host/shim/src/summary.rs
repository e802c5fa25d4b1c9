//! What `warptrace run` says of a process when it has ended: a file of lines, written as they come to be
//! known.

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

/// Kernels that are named as not traced; the others are counted.
const MAX_UNTRACED: usize = 8;

/// Characters of a kernel's name that are told: a template's name may fill a page.
pub(crate) const MAX_NAME_CHARS: usize = 100;

/// The first mistake of the tracer's own, without a lock that it might have been made under.
static PANIC: OnceLock<String> = OnceLock::new();

/// Notes that the tracer has failed where it must not break the program.
pub(crate) fn note_panic(what: &str) {
    let _ = PANIC.set(what.split_whitespace().collect::<Vec<_>>().join(" "));
}

/// How many launches the process has made, and how many of them were traced.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) seen: AtomicU64,
    pub(crate) traced: AtomicU64,
}

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
    pub(crate) counts: Arc<Counts>,
    /// Kernels that ran untraced, why, and how often.
    untraced: Vec<Arc<Untraced>>,
    notes: Vec<String>,
    /// What the trace of a context has to say besides.
    remarks: Vec<(usize, String)>,
    /// Traces that tell where launches hang.
    hangs: usize,
    /// Which ranges are recorded.
    pub(crate) asked: Option<Arc<Asked>>,
}

/// A kernel that runs untraced in a context.
#[derive(Debug)]
pub(crate) struct Untraced {
    context: usize,
    kernel: String,
    reason: String,
    launches: AtomicU64,
    /// How many of them a trace tells of.
    written: AtomicU64,
}

impl Untraced {
    /// Counts launches.
    pub(crate) fn count(&self, launches: u64) {
        self.launches.fetch_add(launches, Ordering::Relaxed);
    }

    /// The context in which it runs; 0 if that is not known.
    pub(crate) const fn context(&self) -> usize {
        self.context
    }

    /// Whether the user has asked for that, or the report says already why nothing was traced.
    fn is_expected(&self) -> bool {
        [NOT_ASKED, SAID].contains(&&*self.reason)
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

    /// Adds a line to what the trace of a context says, once.
    pub(crate) fn remark(&mut self, context: usize, remark: String) {
        let remark = (context, remark);
        if !self.remarks.contains(&remark) {
            self.remarks.push(remark);
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

    /// Counts a launch of a kernel that ran untraced in a context, 0 if that is not known; returns where more of them
    /// are counted.
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

    /// Takes what the trace of a context is to say: launches that were not traced and of which no trace tells yet, and
    /// remarks.
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
        lines.extend(PANIC.get().map(|what| format!("the tracer failed, which is a mistake in it: {what}")));
        lines
    }

    /// Says how many launches the process has made, where not all of them were traced.
    fn launches(&self) -> Option<String> {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (seen, traced) = (read(&self.counts.seen), read(&self.counts.traced));
        let untraced: u64 = self.untraced.iter().map(|untraced| read(&untraced.launches)).sum();
        // A launch that is under way is in none of the two.
        let unknown = match seen.saturating_sub(traced + untraced) {
            0 => String::new(),
            unknown => format!(", and of {unknown} it is not known"),
        };
        (seen > traced)
            .then(|| format!("{} seen: {traced} traced, {untraced} not{unknown}", launch_count(seen)))
    }
}

/// Writes a number of launches.
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
        // The process that writes a file may do so again.
        assert!(summary.claim(Path::new("/x/a.wtrc")) && summary.claim(Path::new("/x/a.wtrc")));
        let mut other = Summary::new(Some(folder.path().to_owned()), 8);
        assert!(!other.claim(Path::new("/x/a.wtrc")) && other.claim(Path::new("/x/b.wtrc")));
    }
}
