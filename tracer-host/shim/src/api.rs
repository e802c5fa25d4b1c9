//! Functions that the program may call, through `tracer-host/include/warptrace.h` or the Python package.

use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::inside::{Inside, guarded};
use crate::state::state;
use crate::trace;

const DONE: c_int = 0;
const NOT_TRACED: c_int = 1;
/// The call failed. `warptrace run` prints the reason.
const FAILED: c_int = 2;

/// Calls `run` as a call of the tracer. Returns [`NOT_TRACED`] if the process is not traced.
fn inside(run: impl FnOnce(&'static crate::state::State) -> c_int) -> c_int {
    let Some(_inside) = Inside::enter() else { return FAILED };
    guarded(|| state().map_or(NOT_TRACED, run)).unwrap_or(FAILED)
}

/// Ends the traces of this process. Records launches from now on into new files.
///
/// # Safety
/// `file` is null or a C string.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn warptrace_begin(file: *const c_char) -> c_int {
    let path = if file.is_null() {
        None
    } else {
        // SAFETY: guaranteed by the caller.
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

/// Ends the traces of this process. Launches from now on run untraced.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) extern "C" fn warptrace_end() -> c_int {
    inside(|state| {
        trace::pause(state);
        DONE
    })
}
