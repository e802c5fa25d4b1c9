//! What the program changes of graphs that it has made ready.

use std::ffi::{c_uint, c_void};
use std::ptr::null_mut;

use cudarc::driver::sys::CUDA_KERNEL_NODE_PARAMS as NodeParameters;

use super::Handle;
use crate::driver::{Answer, Relaxed, SUCCESS};
use crate::graphs::Executable;
use crate::inside::guarded;
use crate::state::{State, lock, state};

/// Notes a change of an executable graph, if the driver has made it.
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

/// Parameters of a node in the first version of the interface.
#[repr(C)]
struct FirstParameters {
    function: Handle,
    sizes: [c_uint; 7],
    parameters: *mut Handle,
    extra: *mut Handle,
}

/// Notes a change that needs no state.
pub(super) fn note(answer: Answer, exec: Handle, change: impl FnOnce(&mut Executable)) -> Answer {
    changed(answer, exec, |_, executable| change(executable))
}

/// Notes a node's parameters in the first version of the interface.
///
/// # Safety
/// The driver has read the parameters.
pub(super) unsafe fn set_parameters(
    answer: Answer,
    exec: Handle,
    node: Handle,
    parameters: *const c_void,
) -> Answer {
    changed(answer, exec, |state, executable| {
        // SAFETY: the caller's promise.
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
        // SAFETY: the caller's promise.
        unsafe { executable.set(state, node, &parameters) };
    })
}

/// Notes a node's parameters.
///
/// # Safety
/// The driver has read the parameters.
pub(super) unsafe fn set_parameters_v2(
    answer: Answer,
    exec: Handle,
    node: Handle,
    parameters: *const c_void,
) -> Answer {
    // SAFETY: the caller's promise.
    changed(answer, exec, |state, executable| unsafe {
        executable.set(state, node, &parameters.cast::<NodeParameters>().read());
    })
}
