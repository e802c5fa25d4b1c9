//! Launches that hang: asks the program's processes about them, and prints where their warps are.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::PROGRAM;
use crate::opened::said_of;
use crate::output::tell;
use signal_hook::consts::SIGUSR1;
use warptrace_abi::run::{ASKED, HANG_PREFIX};

/// Interval between checks for signals and answers.
const EVERY: Duration = Duration::from_millis(50);
/// A program that still runs this long after an answer continues.
const GOES_ON: Duration = Duration::from_millis(500);

/// Number of signals of the keyboard, and of SIGUSR1, so far.
pub(super) static INTERRUPTS: AtomicU32 = AtomicU32::new(0);
pub(super) static QUESTIONS: AtomicU32 = AtomicU32::new(0);

/// Thread that checks for signals and answers.
pub(super) struct Watch {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    pub(super) fn start(folder: &Path) -> std::io::Result<Self> {
        let ends = Arc::new(AtomicBool::new(false));
        let (ended, folder) = (Arc::clone(&ends), folder.to_owned());
        let watch = move || {
            let mut asker = Asker::new(folder);
            while !ended.load(SeqCst) {
                asker.look();
                std::thread::sleep(EVERY);
            }
            asker.answer();
        };
        let thread = std::thread::Builder::new().name("hangs".to_owned()).spawn(watch)?;
        Ok(Self { ends, thread: Some(thread) })
    }
}

impl Drop for Watch {
    /// Ends the thread after it has printed all answers.
    fn drop(&mut self) {
        self.ends.store(true, SeqCst);
        // A panic is ignored: nothing is left to print.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

struct Asker {
    folder: PathBuf,
    said: HashSet<OsString>,
    interrupts: u32,
    questions: u32,
    /// Time of the last answer, until the message that the program continues is printed.
    answered: Option<Instant>,
}

impl Asker {
    fn new(folder: PathBuf) -> Self {
        Self { folder, said: HashSet::new(), interrupts: 0, questions: 0, answered: None }
    }

    fn look(&mut self) {
        let (interrupts, questions) = (INTERRUPTS.load(SeqCst), QUESTIONS.load(SeqCst));
        let program = PROGRAM.load(SeqCst);
        if questions != self.questions {
            self.questions = questions;
            let _ = ask(&self.folder);
            if program != 0 && handles(program, SIGUSR1) {
                // SAFETY: `kill` accesses no memory of this process. The process ID is not reused before the
                // end of this tool, which waits for the program.
                let _ = unsafe { libc::kill(program, SIGUSR1) };
            }
        }
        if interrupts != self.interrupts {
            self.interrupts = interrupts;
            if self.said.is_empty() || interrupts < 2 {
                let _ = ask(&self.folder);
            } else if program != 0 {
                // SAFETY: as for the other `kill`.
                let _ = unsafe { libc::kill(program, libc::SIGKILL) };
            }
        }
        if self.answer() {
            self.answered = Some(Instant::now());
        }
        // A program that ends by the signal has ended by now.
        if self.answered.take_if(|at| at.elapsed() >= GOES_ON).is_some() && program != 0 {
            tell!("warptrace: the program goes on, untraced; a second Ctrl-C ends it");
        }
    }

    /// Prints the answers that were not printed before. Returns true if there were any.
    fn answer(&mut self) -> bool {
        let new: Vec<(OsString, PathBuf)> =
            answers(&self.folder).filter(|(name, _)| !self.said.contains(name)).collect();
        for (name, path) in &new {
            self.said.insert(name.clone());
            said_of(path).iter().for_each(|line| tell!("warptrace: {line}"));
        }
        !new.is_empty()
    }
}

/// Asks the processes that report in the folder about launches that hang.
pub(in super::super) fn ask(folder: &Path) -> std::io::Result<()> {
    let path = folder.join(ASKED);
    let before: u64 = fs::read_to_string(&path).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    fs::write(path, (before + 1).to_string())
}

/// Returns the names of the answers in a folder, and the traces that they name.
pub(in super::super) fn answers(folder: &Path) -> impl Iterator<Item = (OsString, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let found = entries.filter(|entry| entry.file_name().as_bytes().starts_with(HANG_PREFIX.as_bytes()));
    let read = |entry: fs::DirEntry| {
        let path = OsString::from_vec(fs::read(entry.path()).ok()?);
        Some((entry.file_name(), PathBuf::from(path)))
    };
    let mut all: Vec<(OsString, PathBuf)> = found.filter_map(read).collect();
    all.sort();
    all.into_iter()
}

/// Returns true if the process handles or ignores the signal; false also if that is unknown.
fn handles(process: i32, signal: i32) -> bool {
    let status = fs::read(format!("/proc/{process}/status")).unwrap_or_default();
    let has = |line: &[u8]| {
        let text = line.strip_prefix(b"SigCgt:").or_else(|| line.strip_prefix(b"SigIgn:"))?;
        let mask = u64::from_str_radix(OsStr::from_bytes(text).to_str()?.trim(), 16).ok()?;
        Some(mask >> (signal - 1) & 1 != 0)
    };
    status.split(|byte| *byte == b'\n').filter_map(has).any(|has| has)
}
