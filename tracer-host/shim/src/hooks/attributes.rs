//! What the program sets on its kernels is set on their traced copies, too.

use std::ffi::c_int;

use cudarc::driver::sys;

use super::Handle;
use crate::driver::{Answer, SUCCESS};
use crate::exchange::Kernel;
use crate::inside::guarded;
use crate::state::{Function, lock, state};

/// A launch sets it on the copy, by what it needs.
const MAX_DYNAMIC_SHARED: c_int =
    sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as c_int;

/// Does to the traced copy of a function what was done to it, now or when there is one. `find` finds the
/// copy.
fn repeat(
    answer: Answer,
    function: Handle,
    find: impl Fn(&Function, &Kernel) -> Option<Handle> + Send + 'static,
    set: impl Fn(Handle) + Send + 'static,
) -> Answer {
    if answer == SUCCESS {
        guarded(|| {
            let state = state()?;
            let function = lock(&state.registry).function(function as usize).cloned()?;
            function.set(move |function| {
                if let Some(copy) = function.kernel().ok().and_then(|kernel| find(function, kernel)) {
                    set(copy);
                }
            });
            Some(())
        });
    }
    answer
}

pub(super) unsafe fn function(
    real: unsafe extern "C" fn(Handle, c_int, c_int) -> Answer,
    function: Handle,
    attribute: c_int,
    value: c_int,
) -> Answer {
    // SAFETY: the program's own call, and the same of a function that takes what it does.
    unsafe {
        let answer = real(function, attribute, value);
        if attribute == MAX_DYNAMIC_SHARED {
            return answer;
        }
        repeat(answer, function, Function::traced, move |traced| {
            let _ = real(traced, attribute, value);
        })
    }
}

pub(super) unsafe fn kernel(
    real: unsafe extern "C" fn(c_int, c_int, Handle, c_int) -> Answer,
    attribute: c_int,
    value: c_int,
    kernel: Handle,
    device: c_int,
) -> Answer {
    // SAFETY: as above.
    unsafe {
        let answer = real(attribute, value, kernel, device);
        if attribute == MAX_DYNAMIC_SHARED {
            return answer;
        }
        // On the device that the program names, whatever context is current.
        repeat(answer, kernel, Function::traced_kernel, move |traced| {
            let _ = real(attribute, value, traced, device);
        })
    }
}

pub(super) unsafe fn function_cache(
    real: unsafe extern "C" fn(Handle, c_int) -> Answer,
    function: Handle,
    config: c_int,
) -> Answer {
    // SAFETY: as above.
    unsafe {
        repeat(real(function, config), function, Function::traced, move |traced| {
            let _ = real(traced, config);
        })
    }
}

pub(super) unsafe fn kernel_cache(
    real: unsafe extern "C" fn(Handle, c_int, c_int) -> Answer,
    kernel: Handle,
    config: c_int,
    device: c_int,
) -> Answer {
    // SAFETY: as above.
    unsafe {
        repeat(real(kernel, config, device), kernel, Function::traced_kernel, move |traced| {
            let _ = real(traced, config, device);
        })
    }
}
