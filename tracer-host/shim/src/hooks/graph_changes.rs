//! What the program changes of graphs that it has made ready.

use std::ffi::{c_int, c_uint, c_void};
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

pub(super) unsafe fn set_parameters(
    real: unsafe extern "C" fn(Handle, Handle, *const c_void) -> Answer,
    exec: Handle,
    node: Handle,
    parameters: *const c_void,
) -> Answer {
    // SAFETY: the program's own call; the driver has read the parameters.
    unsafe {
        let answer = real(exec, node, parameters);
        changed(answer, exec, |state, executable| {
            let FirstParameters { function, sizes, parameters, extra } =
                parameters.cast::<FirstParameters>().read();
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
            executable.set(state, node, &parameters);
        })
    }
}

pub(super) unsafe fn set_parameters_v2(
    real: unsafe extern "C" fn(Handle, Handle, *const c_void) -> Answer,
    exec: Handle,
    node: Handle,
    parameters: *const c_void,
) -> Answer {
    // SAFETY: the program's own call; the driver has read the parameters.
    unsafe {
        let answer = real(exec, node, parameters);
        changed(answer, exec, |state, executable| {
            executable.set(state, node, &parameters.cast::<NodeParameters>().read());
        })
    }
}

pub(super) unsafe fn set_any_parameters(
    real: unsafe extern "C" fn(Handle, Handle, *mut c_void) -> Answer,
    exec: Handle,
    node: Handle,
    parameters: *mut c_void,
) -> Answer {
    // SAFETY: the program's own call.
    let answer = unsafe { real(exec, node, parameters) };
    changed(answer, exec, |_, executable| executable.changed(Some(node)))
}

pub(super) unsafe fn set_enabled(
    real: unsafe extern "C" fn(Handle, Handle, c_uint) -> Answer,
    exec: Handle,
    node: Handle,
    enabled: c_uint,
) -> Answer {
    // SAFETY: the program's own call.
    let answer = unsafe { real(exec, node, enabled) };
    changed(answer, exec, |_, executable| executable.enable(node, enabled != 0))
}

pub(super) unsafe fn update(
    real: unsafe extern "C" fn(Handle, Handle, *mut Handle, *mut c_int) -> Answer,
    exec: Handle,
    graph: Handle,
    node: *mut Handle,
    result: *mut c_int,
) -> Answer {
    // SAFETY: the program's own call.
    let answer = unsafe { real(exec, graph, node, result) };
    changed(answer, exec, |_, executable| executable.changed(None))
}

pub(super) unsafe fn update_v2(
    real: unsafe extern "C" fn(Handle, Handle, *mut c_void) -> Answer,
    exec: Handle,
    graph: Handle,
    result: *mut c_void,
) -> Answer {
    // SAFETY: the program's own call.
    let answer = unsafe { real(exec, graph, result) };
    changed(answer, exec, |_, executable| executable.changed(None))
}
