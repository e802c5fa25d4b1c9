//! Repeats settings of the program's kernels on their traced copies.

use std::ffi::c_int;

use cudarc::driver::sys;

use super::Handle;
use crate::driver::{Answer, SUCCESS};
use crate::exchange::Kernel;
use crate::inside::guarded;
use crate::state::{Function, lock, state};

/// Not repeated: each launch sets this limit on the copy.
pub(super) const MAX_DYNAMIC_SHARED: c_int =
    sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as c_int;

/// Repeats a setting on the traced copy of a function, now or when the copy is made. `find` finds the copy. A
/// setting of a library's kernel applies to the device that the program names, whichever context is current.
pub(super) fn repeat(
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
