//! What signals leave: no parts of files, and no folders that were made for them.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
#[cfg(unix)]
use std::{fs, io, mem, ptr, thread};

#[cfg(unix)]
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
#[cfg(unix)]
use signal_hook::{iterator::Signals, low_level};

/// Parts, and folders that were made, outer ones first. What has got its name or was removed may stay in the
/// list: the name of a part is used once, and only empty folders are removed.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The list, which also keeps a signal waiting.
pub(super) fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on SIGHUP, SIGINT, SIGQUIT and SIGTERM remove what is unfinished, and then end the process as
/// without this. Where the process was started to ignore one of them, that is so.
///
/// # Errors
/// The system's.
#[cfg(unix)]
pub fn watch_signals() -> io::Result<()> {
    if crate::output::is_kept() {
        // The process is a test's.
        return Ok(());
    }
    let ends = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];
    let mut signals = Signals::new(ends.into_iter().filter(|signal| !is_ignored(*signal)))?;
    thread::spawn(move || {
        for signal in signals.forever() {
            // Held until the end: from now on nothing is made, and nothing gets its name.
            let unfinished = unfinished();
            for path in unfinished.iter().rev() {
                // What is not there any more, and folders that are not empty, are left.
                let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
            }
            let _ = low_level::emulate_default_handler(signal);
        }
    });
    Ok(())
}

/// Does nothing: there are no such signals.
///
/// # Errors
/// None.
#[cfg(not(unix))]
pub fn watch_signals() -> std::io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    // SAFETY: all-zero bytes are a `sigaction`; the system writes it, and changes nothing.
    let (failed, action) = unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        (libc::sigaction(signal, ptr::null(), &raw mut action), action)
    };
    failed == 0 && action.sa_sigaction == libc::SIG_IGN
}
