//! The handler for the end of the process, and the signal masks of threads of the shim.

use std::sync::TryLockError;
use std::time::{Duration, Instant};

use super::{PATIENCE, Traces};
use crate::inside::{Inside, guarded};
use crate::state::{lock, state};

/// Blocks all signals for this thread while it lives. Threads started meanwhile keep all signals blocked.
pub(super) struct Signals(libc::sigset_t);

impl Signals {
    pub(super) fn block() -> Self {
        // SAFETY: both sets have the system's type, and the system fills them.
        unsafe {
            let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
            Self(before)
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // SAFETY: restores the thread's mask.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut()) };
    }
}

/// Ends all traces of the process. The exiting thread has already freed its thread-local data, which
/// libraries need, so the recorders' threads end the traces.
pub(super) extern "C" fn at_exit() {
    let Some(_inside) = Inside::enter() else { return };
    let _ = guarded(|| {
        let Some(state) = state() else { return };
        super::noted::begin_waiting(state, None);
        let started = Instant::now();
        let recorders = loop {
            match state.traces.try_lock() {
                Ok(mut traces) => break traces.close(),
                Err(TryLockError::Poisoned(poisoned)) => break poisoned.into_inner().close(),
                // Another thread is starting a trace.
                Err(TryLockError::WouldBlock) if started.elapsed() > PATIENCE => break Vec::new(),
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        super::hang::wait();
        // The process's end frees the driver's objects.
        std::mem::forget(Traces::finish(state, recorders));
        lock(&state.summary).write();
    });
}
