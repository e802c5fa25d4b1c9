//! Launches that hang: asks the program's processes about them, and says where their warps are.

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

/// How often it is looked for signals and answers.
const EVERY: Duration = Duration::from_millis(50);
/// A program that has not ended by then goes on.
const GOES_ON: Duration = Duration::from_millis(500);

/// How often the keyboard's signals have come, and how often SIGUSR1.
pub(super) static INTERRUPTS: AtomicU32 = AtomicU32::new(0);
pub(super) static QUESTIONS: AtomicU32 = AtomicU32::new(0);

/// Looks for signals and answers on a thread of its own.
pub(super) struct Watch {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Starts it, for the folder in which processes report.
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
    /// Ends it, once all answers have been said.
    fn drop(&mut self) {
        self.ends.store(true, SeqCst);
        // It does not panic; if it did, nothing more is to be said.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

struct Asker {
    folder: PathBuf,
    said: HashSet<OsString>,
    interrupts: u32,
    questions: u32,
    /// When something was said, if it was not said since that the program goes on.
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
                // SAFETY: the program is waited for only at the end of this tool.
                let _ = unsafe { libc::kill(program, SIGUSR1) };
            }
        }
        if interrupts != self.interrupts {
            self.interrupts = interrupts;
            if self.said.is_empty() || interrupts < 2 {
                let _ = ask(&self.folder);
            } else if program != 0 {
                // SAFETY: as above.
                let _ = unsafe { libc::kill(program, libc::SIGKILL) };
            }
        }
        if self.answer() {
            self.answered = Some(Instant::now());
        }
        // What ends by the signal has ended by then.
        if self.answered.take_if(|at| at.elapsed() >= GOES_ON).is_some() && program != 0 {
            tell!("warptrace: the program goes on, untraced; a second Ctrl-C ends it");
        }
    }

    /// Says what traces tell that were not read before; returns whether there were any.
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

/// Asks the processes that report in a folder about launches that hang.
pub(in super::super) fn ask(folder: &Path) -> std::io::Result<()> {
    let path = folder.join(ASKED);
    let before: u64 = fs::read_to_string(&path).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    fs::write(path, (before + 1).to_string())
}

/// The answers in a folder: their names, and the traces that they name.
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

/// Whether a process handles a signal, or ignores it; `false` if that is not known.
fn handles(process: i32, signal: i32) -> bool {
    let status = fs::read(format!("/proc/{process}/status")).unwrap_or_default();
    let has = |line: &[u8]| {
        let text = line.strip_prefix(b"SigCgt:").or_else(|| line.strip_prefix(b"SigIgn:"))?;
        let mask = u64::from_str_radix(OsStr::from_bytes(text).to_str()?.trim(), 16).ok()?;
        Some(mask >> (signal - 1) & 1 != 0)
    };
    status.split(|byte| *byte == b'\n').filter_map(has).any(|has| has)
}
