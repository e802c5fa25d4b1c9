//! Follows the program's changes of executable graphs.

use std::ffi::{c_uint, c_void};
use std::ptr::null_mut;

use cudarc::driver::sys::CUDA_KERNEL_NODE_PARAMS as NodeParameters;

use super::Handle;
use crate::driver::{Answer, Relaxed, SUCCESS};
use crate::graphs::Executable;
use crate::inside::guarded;
use crate::state::{State, lock, state};

/// Applies a change to an executable graph, if the driver's call succeeded.
fn changed(answer: Answer, exec: Handle, change: impl FnOnce(&State, &mut Executable)) -> Answer {
    if answer == SUCCESS {
        guarded(|| {
            let state = state()?;
            let executable = lock(&state.graphs).executable(exec)?;
            let _relaxed = Relaxed::enter();
            change(state, &mut lock(&executable));
            Some(())
        });
    }
    answer
}

/// Layout of version 1 of the driver's kernel node parameters.
#[repr(C)]
struct FirstParameters {
    function: Handle,
    sizes: [c_uint; 7],
    parameters: *mut Handle,
    extra: *mut Handle,
}

/// Like [`changed`], for changes that need no [`State`].
pub(super) fn note(answer: Answer, exec: Handle, change: impl FnOnce(&mut Executable)) -> Answer {
    changed(answer, exec, |_, executable| change(executable))
}

/// # Safety
/// The driver has read the parameters.
pub(super) unsafe fn set_parameters(
    answer: Answer,
    exec: Handle,
    node: Handle,
    parameters: *const c_void,
) -> Answer {
    changed(answer, exec, |state, executable| {
        // SAFETY: guaranteed by the caller.
        let FirstParameters { function, sizes, parameters, extra } =
            unsafe { parameters.cast::<FirstParameters>().read() };
        let [gx, gy, gz, bx, by, bz, shared] = sizes;
        let parameters = NodeParameters {
            func: function.cast(),
            gridDimX: gx,
            gridDimY: gy,
            gridDimZ: gz,
            blockDimX: bx,
            blockDimY: by,
            blockDimZ: bz,
            sharedMemBytes: shared,
            kernelParams: parameters,
            extra,
            kern: null_mut(),
            ctx: null_mut(),
        };
        // SAFETY: guaranteed by the caller.
        unsafe { executable.set(state, node, &parameters) };
    })
}

/// # Safety
/// The driver has read the parameters.
pub(super) unsafe fn set_parameters_v2(
    answer: Answer,
    exec: Handle,
    node: Handle,
    parameters: *const c_void,
) -> Answer {
    // SAFETY: guaranteed by the caller.
    changed(answer, exec, |state, executable| unsafe {
        executable.set(state, node, &parameters.cast::<NodeParameters>().read());
    })
}
