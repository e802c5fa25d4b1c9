//! Removes temporary files and created folders when a signal ends the process.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
#[cfg(unix)]
use std::{fs, io, mem, ptr, thread};

#[cfg(unix)]
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
#[cfg(unix)]
use signal_hook::{iterator::Signals, low_level};

/// Temporary files and created folders, outer folders first. Entries may stay when their file is gone: names
/// of temporary files are used once, and only empty folders are removed.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Locks the list. While it is locked, signals wait.
pub(super) fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a thread that handles SIGHUP, SIGINT, SIGQUIT and SIGTERM: it removes unfinished files and folders,
/// then applies the signal's default action. Signals that the process was started to ignore stay ignored.
/// Fails if the handlers cannot be registered.
#[cfg(unix)]
pub fn watch_signals() -> io::Result<()> {
    if crate::output::is_kept() {
        // The process belongs to a test.
        return Ok(());
    }
    let ends = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];
    let mut signals = Signals::new(ends.into_iter().filter(|signal| !is_ignored(*signal)))?;
    thread::spawn(move || {
        for signal in signals.forever() {
            // Locked until the process ends, so that no file is created or renamed any more.
            let unfinished = unfinished();
            for path in unfinished.iter().rev() {
                // Missing files and folders that are not empty are skipped.
                let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
            }
            let _ = low_level::emulate_default_handler(signal);
        }
    });
    Ok(())
}

/// Does nothing: these signals exist only on Unix.
#[cfg(not(unix))]
pub fn watch_signals() -> std::io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    // SAFETY: all-zero bytes are a valid `sigaction`. With a null new action, the call only writes the
    // current action to `action`.
    let (failed, action) = unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        (libc::sigaction(signal, ptr::null(), &raw mut action), action)
    };
    failed == 0 && action.sa_sigaction == libc::SIG_IGN
}
