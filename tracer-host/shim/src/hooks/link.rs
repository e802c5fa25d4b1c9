//! Code that a program links while it runs: where it links a single PTX text, it gets that text instead of
//! machine code, which the driver takes as well.

use std::collections::HashMap;
use std::ffi::{CString, c_int, c_void};
use std::sync::Mutex;

use super::Handle;
use crate::driver::{Answer, SUCCESS};
use crate::inside::guarded;
use crate::state::{lock, state};

/// The driver's number of PTX as an input.
const PTX: c_int = 1;

/// What a link was given.
#[derive(Default)]
struct Inputs {
    count: usize,
    /// The only one, if it is PTX. It stays until the link's end: the program reads it.
    ptx: Option<CString>,
}

/// Links that have not ended.
static LINKS: Mutex<Option<HashMap<usize, Inputs>>> = Mutex::new(None);

/// Notes an input that the driver has taken.
fn note(link: Handle, ptx: Option<CString>) {
    let mut links = lock(&LINKS);
    let inputs = links.get_or_insert_with(HashMap::new).entry(link as usize).or_default();
    inputs.count += 1;
    inputs.ptx = ptx.filter(|_| inputs.count == 1);
}

/// Notes what a link was given in memory.
///
/// # Safety
/// There are as many bytes as the program says, if the driver has read them.
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
                // SAFETY: the caller's promise.
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

/// Gives the program the text that a link was given alone.
///
/// # Safety
/// The driver has written code and size if it succeeded.
pub(super) unsafe fn complete(answer: Answer, link: Handle, code: *mut Handle, size: *mut usize) -> Answer {
    if answer == SUCCESS && !code.is_null() {
        guarded(|| {
            let links = lock(&LINKS);
            let text = links.as_ref()?.get(&(link as usize))?.ptx.as_ref()?;
            // SAFETY: the caller's promise; the text stays until the link's end, as its code does.
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
