//! Launches: of traced kernels the copy is launched instead, with the launch's logs as one more argument.

use std::ffi::c_uint;
use std::ptr::null_mut;

use cudarc::driver::sys::CUlaunchConfig;
use warptrace_abi::log::LaunchLogs;
use warptrace_abi::shared::dynamic_shared;
use warptrace_host::{Blocks, LaunchShape};

use super::call::{AttributesLaunch, CooperativeLaunch, DriverCall, Launch, PlainLaunch};
use super::{Handle, List};
use crate::driver::{self, Answer, PER_THREAD_STREAM, Relaxed, SUCCESS};
use crate::exchange::Kernel;
use crate::inside::guarded;
use crate::state::{lock, state};
use crate::trace::{self, Item, Request, SAID};

/// Dynamic shared memory that a block may have without asking.
const ASKED_FOR_ABOVE: u64 = 16 << 10;

/// Records a launch; if it was not made so, makes the program's own.
///
/// # Safety
/// It is the program's own launch.
unsafe fn launched(launch: Launch) -> Answer {
    // What the driver has said, once it took the launch.
    let mut issued = None;
    guarded(|| {
        let state = state()?;
        let function = lock(&state.registry).function(launch.function as usize).cloned();
        if function.as_ref().is_some_and(|function| function.count_untraced(launch.true_stream)) {
            return None;
        }
        let _relaxed = Relaxed::enter();
        if driver::is_capturing(launch.true_stream) {
            // It becomes a node of a graph, whose launches are recorded.
            return None;
        }
        if !state.is_within() {
            return None;
        }
        let Some(function) = function else {
            lock(&state.summary).untraced("a kernel", "the program found it by a way that is not watched");
            return None;
        };
        let kernel = match function.kernel() {
            Ok(kernel) => kernel,
            Err(reason) => {
                function.stays_untraced(&state.summary, &reason);
                return None;
            }
        };
        let mut record = || {
            function.check_launches(state.settings.spec.recording.window.first, 0)?;
            let traced = function.traced(kernel).ok_or("its traced copy is not in the module")?;
            let context = driver::current_context().ok_or("the thread has no context")?;
            let (shape, shared) = checked(&launch, kernel, traced)?;
            if kernel.is_deep {
                driver::grow_stack();
            }
            let make = |logs: &[Option<LaunchLogs>]| {
                let answer = match logs.first().copied().flatten() {
                    // SAFETY: the copy of the launched function in its own module.
                    Some(logs) => unsafe { launch.traced(traced, kernel, &logs, shared) },
                    // SAFETY: the program's own launch.
                    None => unsafe { launch.own() },
                };
                issued = Some(answer).filter(|answer| *answer == SUCCESS);
                answer
            };
            let items = vec![Item { code: function.traced_code()?, kernel, shape }];
            let request = Request { context, stream: launch.true_stream, items, launch: make };
            trace::record(state, request)?;
            function.was_recorded();
            Ok(())
        };
        let recorded: Result<(), String> = record();
        if let Err(reason) = recorded
            && issued.is_none()
            && reason != SAID
        {
            lock(&state.summary).untraced(function.readable(), &reason);
        }
        Some(())
    });
    // SAFETY: the caller's promise.
    issued.unwrap_or_else(|| unsafe { launch.own() })
}

/// Tells the shape of a launch, and the dynamic shared memory of its traced copy, if that can be launched so.
fn checked(launch: &Launch, kernel: &Kernel, traced: Handle) -> Result<(LaunchShape, u64), String> {
    if launch.parameters.is_null() && launch.extra.is_null() && !kernel.parameters.is_empty() {
        return Err("it has no arguments".to_owned());
    }
    shape_of(launch.grid, launch.block, launch.shared, launch.is_cooperative(), kernel, traced)
}

/// The same by what decides it.
pub(super) fn shape_of(
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    is_cooperative: bool,
    kernel: &Kernel,
    traced: Handle,
) -> Result<(LaunchShape, u64), String> {
    let shape =
        LaunchShape { dynamic_shared: shared, ..LaunchShape::new(grid, block, Blocks::Communicating) };
    let threads = shape.block_threads();
    if threads == 0 || threads > 1024 || shape.block_count() == 0 {
        return Err("the driver refuses its grid or block".to_owned());
    }
    let shared = dynamic_shared(shared, shape.warps_per_block(), kernel.shared_bytes);
    if shared > ASKED_FOR_ABOVE && !driver::allow_shared(traced, shared) {
        return Err(format!(
            "with its records a block needs {shared} bytes of shared memory, more than it can have"
        ));
    }
    let Some(blocks) = driver::blocks_at_once(traced, threads, shared) else {
        return Err("the driver does not say how many blocks of its traced copy fit".to_owned());
    };
    if blocks == 0 {
        return Err(format!("its traced copy takes too many registers for blocks of {threads} threads"));
    }
    if is_cooperative && u128::from(blocks * driver::multiprocessors()) < shape.block_count() {
        return Err(
            "its blocks wait for each other, and those of its traced copy do not fit at once".to_owned()
        );
    }
    Ok((shape, shared))
}

/// The stream that a null stream stands for where each thread has its own.
pub(super) fn per_thread(stream: Handle) -> Handle {
    if stream.is_null() { PER_THREAD_STREAM } else { stream }
}

macro_rules! shaped {
    ($($name:ident, $call:ident($real:ident), $stream:path, ($extra:expr $(, $argument:ident)?);)*) => {
        $(
            #[expect(clippy::too_many_arguments, reason = "the driver's")]
            pub(super) unsafe fn $name(
                real: $real,
                function: Handle,
                gx: c_uint,
                gy: c_uint,
                gz: c_uint,
                bx: c_uint,
                by: c_uint,
                bz: c_uint,
                shared: c_uint,
                stream: Handle,
                parameters: List,
                $($argument: List,)?
            ) -> Answer {
                let (grid, block, true_stream) = ([gx, gy, gz], [bx, by, bz], $stream(stream));
                let (call, extra) = (DriverCall::$call(real), $extra);
                // SAFETY: the program's own launch.
                unsafe {
                    launched(Launch { call, function, grid, block, shared, stream, true_stream, parameters, extra })
                }
            }
        )*
    };
}

shaped! {
    plain, Plain(PlainLaunch), std::convert::identity, (extra, extra);
    plain_per_thread, Plain(PlainLaunch), per_thread, (extra, extra);
    cooperative, Cooperative(CooperativeLaunch), std::convert::identity, (null_mut());
    cooperative_per_thread, Cooperative(CooperativeLaunch), per_thread, (null_mut());
}

/// Launches a kernel with attributes.
///
/// # Safety
/// The program's own launch.
unsafe fn attributed(
    real: AttributesLaunch,
    config: *const CUlaunchConfig,
    function: Handle,
    parameters: List,
    extra: List,
    stream_of: impl FnOnce(Handle) -> Handle,
) -> Answer {
    if config.is_null() {
        // SAFETY: the driver says what is wrong with it.
        return unsafe { real(config, function, parameters, extra) };
    }
    // SAFETY: the program's configuration.
    let CUlaunchConfig {
        gridDimX: gx,
        gridDimY: gy,
        gridDimZ: gz,
        blockDimX: bx,
        blockDimY: by,
        blockDimZ: bz,
        sharedMemBytes: shared,
        hStream: stream,
        ..
    } = unsafe { *config };
    let (grid, block, stream) = ([gx, gy, gz], [bx, by, bz], stream.cast());
    let (call, true_stream) = (DriverCall::Attributes(real, config), stream_of(stream));
    // SAFETY: the caller's promise.
    unsafe {
        launched(Launch { call, function, grid, block, shared, stream, true_stream, parameters, extra })
    }
}

pub(super) unsafe fn with_attributes(
    real: AttributesLaunch,
    config: *const CUlaunchConfig,
    function: Handle,
    parameters: List,
    extra: List,
) -> Answer {
    // SAFETY: the program's own launch.
    unsafe { attributed(real, config, function, parameters, extra, std::convert::identity) }
}

pub(super) unsafe fn with_attributes_per_thread(
    real: AttributesLaunch,
    config: *const CUlaunchConfig,
    function: Handle,
    parameters: List,
    extra: List,
) -> Answer {
    // SAFETY: the program's own launch.
    unsafe { attributed(real, config, function, parameters, extra, per_thread) }
}
