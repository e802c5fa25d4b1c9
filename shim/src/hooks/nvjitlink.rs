//! Code that a program links with NVIDIA's library for that: its PTX is kept in it.

use std::ffi::{CStr, CString, c_char, c_uint};

use super::Handle;
use crate::driver::{Answer, SUCCESS};
use crate::inside::guarded;
use crate::state::state;

/// Options with which the PTX is kept; the first is the one that is added.
const LINES: [&[u8]; 3] = [b"-lineinfo", b"-g", b"-lto"];

pub(super) unsafe fn create(
    real: unsafe extern "C" fn(*mut Handle, c_uint, *const *const c_char) -> Answer,
    link: *mut Handle,
    count: c_uint,
    options: *const *const c_char,
) -> Answer {
    let with_lines = guarded(|| {
        state()?;
        // SAFETY: as many strings as the program says.
        let mut given: Vec<*const c_char> =
            (0..count as usize).map(|at| unsafe { *options.add(at) }).collect();
        // SAFETY: as above.
        let has_lines =
            given.iter().any(|option| LINES.contains(&unsafe { CStr::from_ptr(*option) }.to_bytes()));
        if has_lines {
            return None;
        }
        let lines = CString::new(LINES[0]).ok()?;
        given.push(lines.as_ptr());
        // SAFETY: the program's own call, with an option more.
        let answer = unsafe { real(link, c_uint::try_from(given.len()).ok()?, given.as_ptr()) };
        (answer == SUCCESS).then_some(answer)
    });
    // SAFETY: the program's own call.
    with_lines.flatten().unwrap_or_else(|| unsafe { real(link, count, options) })
}
