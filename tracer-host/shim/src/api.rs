//! What a program may call itself, if it knows of warptrace: `tracer-host/include/warptrace.h`, and the
//! Python package.

use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::inside::{Inside, guarded};
use crate::state::state;
use crate::trace;

/// The program is traced, and it was done.
const DONE: c_int = 0;
/// Nothing is traced in this process.
const NOT_TRACED: c_int = 1;
/// It could not be done; what `warptrace run` prints says why.
const FAILED: c_int = 2;

/// Runs `run` from inside of the tracer, where something is traced.
fn inside(run: impl FnOnce(&'static crate::state::State) -> c_int) -> c_int {
    let Some(_inside) = Inside::enter() else { return FAILED };
    guarded(|| state().map_or(NOT_TRACED, run)).unwrap_or(FAILED)
}

/// Ends the traces of this process, and records what is launched from now on into new files.
///
/// # Safety
/// The name is null or a string.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn warptrace_begin(file: *const c_char) -> c_int {
    let path = if file.is_null() {
        None
    } else {
        // SAFETY: the caller's promise.
        let bytes = unsafe { CStr::from_ptr(file) }.to_bytes();
        Some(PathBuf::from(OsStr::from_bytes(bytes)))
    };
    inside(|state| {
        if path.as_ref().is_some_and(|path| path.as_os_str().is_empty()) {
            return FAILED;
        }
        trace::begin_anew(state, path);
        DONE
    })
}

/// Ends the traces of this process: what is launched from now on runs untraced.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) extern "C" fn warptrace_end() -> c_int {
    inside(|state| {
        trace::pause(state);
        DONE
    })
}
