//! Contexts that the program ends: their traces are ended before.

use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::Mutex;

use super::Handle;
use crate::driver::{self, Answer, SUCCESS};
use crate::inside::guarded;
use crate::state::{lock, state};
use crate::trace;

/// How often each device's primary context is retained: it ends with the last release.
static RETAINED: Mutex<Option<HashMap<c_int, u64>>> = Mutex::new(None);

/// Changes how often a device's context is retained, and returns that.
fn count(device: c_int, change: impl FnOnce(u64) -> u64) -> u64 {
    let mut retained = lock(&RETAINED);
    let count = retained.get_or_insert_with(HashMap::new).entry(device).or_default();
    *count = change(*count);
    *count
}

fn end(context: Handle) {
    guarded(|| {
        let (_current, _relaxed) = (driver::Current::keep(), driver::Relaxed::enter());
        state().map(|state| trace::end(state, context))
    });
}

pub(super) unsafe fn destroy(real: unsafe extern "C" fn(Handle) -> Answer, context: Handle) -> Answer {
    end(context);
    // SAFETY: the program's own call.
    unsafe { real(context) }
}

/// Ends the trace of a context that has a part of a device, and the context.
///
/// # Safety
/// The program's own call.
pub(super) unsafe fn destroy_green(real: unsafe extern "C" fn(Handle) -> Answer, green: Handle) -> Answer {
    if let Some(Some(context)) = guarded(|| driver::context_of_green(green)) {
        end(context);
    }
    // SAFETY: the caller's promise.
    unsafe { real(green) }
}

pub(super) unsafe fn retain(
    real: unsafe extern "C" fn(*mut Handle, c_int) -> Answer,
    context: *mut Handle,
    device: c_int,
) -> Answer {
    // SAFETY: the program's own call.
    let answer = unsafe { real(context, device) };
    if answer == SUCCESS {
        guarded(|| count(device, |retained| retained + 1));
    }
    answer
}

pub(super) unsafe fn release(real: unsafe extern "C" fn(c_int) -> Answer, device: c_int) -> Answer {
    guarded(|| {
        if count(device, |retained| retained.saturating_sub(1)) == 0
            && let Some(context) = driver::primary_context(device)
        {
            end(context);
        }
    });
    // SAFETY: the program's own call.
    unsafe { real(device) }
}

pub(super) unsafe fn reset(real: unsafe extern "C" fn(c_int) -> Answer, device: c_int) -> Answer {
    guarded(|| {
        count(device, |_| 0);
        if let Some(context) = driver::primary_context(device) {
            end(context);
        }
    });
    // SAFETY: the program's own call.
    unsafe { real(device) }
}
