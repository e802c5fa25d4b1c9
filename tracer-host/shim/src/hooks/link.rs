//! Linking at run time. If PTX is the only input, the program gets it as the result: the driver loads it too.

use std::collections::HashMap;
use std::ffi::{CString, c_int, c_void};
use std::sync::Mutex;

use super::Handle;
use crate::driver::{Answer, SUCCESS};
use crate::inside::guarded;
use crate::state::{lock, state};

const PTX: c_int = 1;

#[derive(Default)]
struct Inputs {
    count: usize,
    /// The only input, if it is PTX. Kept until the link is destroyed, since the program reads it.
    ptx: Option<CString>,
}

/// Links that are not destroyed.
static LINKS: Mutex<Option<HashMap<usize, Inputs>>> = Mutex::new(None);

fn note(link: Handle, ptx: Option<CString>) {
    let mut links = lock(&LINKS);
    let inputs = links.get_or_insert_with(HashMap::new).entry(link as usize).or_default();
    inputs.count += 1;
    inputs.ptx = ptx.filter(|_| inputs.count == 1);
}

/// # Safety
/// If `answer` is success, `data` is null or has `size` readable bytes.
pub(super) unsafe fn add_data(
    answer: Answer,
    link: Handle,
    kind: c_int,
    data: *const c_void,
    size: usize,
) -> Answer {
    if answer == SUCCESS {
        guarded(|| {
            state()?;
            let text = (kind == PTX && !data.is_null()).then(|| {
                // SAFETY: guaranteed by the caller.
                let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), size) };
                let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(size);
                CString::new(&bytes[..end]).ok()
            });
            note(link, text.flatten());
            Some(())
        });
    }
    answer
}

pub(super) fn add_file(answer: Answer, link: Handle) -> Answer {
    if answer == SUCCESS {
        guarded(|| note(link, None));
    }
    answer
}

/// Replaces the linked code by the PTX, if that is the only input.
///
/// # Safety
/// If `answer` is success, the driver has written code and size.
pub(super) unsafe fn complete(answer: Answer, link: Handle, code: *mut Handle, size: *mut usize) -> Answer {
    if answer == SUCCESS && !code.is_null() {
        guarded(|| {
            let links = lock(&LINKS);
            let text = links.as_ref()?.get(&(link as usize))?.ptx.as_ref()?;
            // SAFETY: guaranteed by the caller. The text lives until the link is destroyed, like the code.
            unsafe {
                *code = text.as_ptr().cast_mut().cast();
                if !size.is_null() {
                    *size = text.as_bytes_with_nul().len();
                }
            }
            Some(())
        });
    }
    answer
}

pub(super) fn destroy(link: Handle) {
    guarded(|| lock(&LINKS).as_mut().and_then(|links| links.remove(&(link as usize))));
}
