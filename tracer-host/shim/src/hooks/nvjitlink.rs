//! Code that a program links with NVIDIA's library for that: its PTX is kept in it.

use std::ffi::{CStr, CString, c_char, c_uint};

use super::Handle;
use crate::driver::{Answer, SUCCESS};
use crate::inside::guarded;
use crate::state::state;

/// Options with which the PTX is kept; the first is the one that is added. Code that is optimised as a whole
/// (`-lto`) keeps it no other way.
const LINES: [&[u8]; 2] = [b"-lineinfo", b"-g"];

/// Tells whether code that is linked with these options has its PTX.
fn keeps_ptx<'a>(mut options: impl Iterator<Item = &'a CStr>) -> bool {
    options.any(|option| LINES.contains(&option.to_bytes()))
}

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
        if keeps_ptx(given.iter().map(|option| unsafe { CStr::from_ptr(*option) })) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_asked_for_unless_the_program_does() {
        assert!(keeps_ptx([c"-arch=sm_90", c"-lineinfo"].into_iter()));
        assert!(keeps_ptx([c"-g"].into_iter()));
        // As Numba links.
        assert!(!keeps_ptx([c"-arch=sm_90", c"-lto"].into_iter()));
    }
}
