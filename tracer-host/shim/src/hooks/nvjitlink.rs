//! Hook for nvJitLink: linked code keeps its PTX.

use std::ffi::{CStr, CString, c_char, c_uint};

use super::Handle;
use crate::driver::{Answer, SUCCESS};
use crate::inside::guarded;
use crate::state::state;

/// Options that keep the PTX. With `-lto`, no others do. The hook adds the first.
const LINES: [&[u8]; 2] = [b"-lineinfo", b"-g"];

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
        // SAFETY: the program passes `count` strings.
        let mut given: Vec<*const c_char> =
            (0..count as usize).map(|at| unsafe { *options.add(at) }).collect();
        // SAFETY: the program passes `count` strings.
        if keeps_ptx(given.iter().map(|option| unsafe { CStr::from_ptr(*option) })) {
            return None;
        }
        let lines = CString::new(LINES[0]).ok()?;
        given.push(lines.as_ptr());
        // SAFETY: the program's own call, with one more option.
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
        // The options of Numba.
        assert!(!keeps_ptx([c"-arch=sm_90", c"-lto"].into_iter()));
    }
}
