//! Launches: of traced kernels the copy is launched instead, with the launch's logs as one more argument.

use std::ffi::{c_uint, c_void};
use std::ptr::null_mut;

use cudarc::driver::sys::{CUlaunchAttributeID, CUlaunchConfig};
use warptrace_format::log::LaunchLogs;
use warptrace_host::{Blocks, ForeignArguments, LaunchShape, Launching};

use super::{Handle, List};
use crate::driver::{self, Answer, PER_THREAD_STREAM, Relaxed, SUCCESS};
use crate::exchange::{Kernel, NOT_ASKED};
use crate::inside::guarded;
use crate::names;
use crate::state::{lock, state};
use crate::trace::{Issued, Request, SAID};

/// Marks the buffer, its size and the end in the list of a launch whose arguments are in a buffer.
const BUFFER: usize = 1;
const BUFFER_SIZE: usize = 2;
/// The most bytes of arguments that a kernel takes.
const MAX_ARGUMENT_BYTES: usize = 1 << 16;
/// Dynamic shared memory that a block may have without asking.
const ASKED_FOR_ABOVE: u64 = 16 << 10;
/// What the driver answers where a launch cannot be made here: `CUDA_ERROR_INVALID_VALUE`.
const INVALID: Answer = 1;

/// The three ways to launch, with the driver's function.
#[derive(Clone, Copy)]
enum Way {
    Plain(PlainLaunch),
    Cooperative(CooperativeLaunch),
    Attributes(AttributesLaunch, *const CUlaunchConfig),
}

type PlainLaunch = unsafe extern "C" fn(
    Handle,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    Handle,
    List,
    List,
) -> Answer;
type CooperativeLaunch = unsafe extern "C" fn(
    Handle,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    Handle,
    List,
) -> Answer;
type AttributesLaunch = unsafe extern "C" fn(*const CUlaunchConfig, Handle, List, List) -> Answer;

/// A launch of the program.
#[derive(Clone, Copy)]
struct Launch {
    way: Way,
    function: Handle,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    /// As the program named it.
    stream: Handle,
    /// The stream that this is: a null stream may be the thread's own.
    true_stream: Handle,
    parameters: List,
    extra: List,
}

// SAFETY: the launch is made while the program waits for it, so that its addresses stay valid.
unsafe impl Send for Launch {}

impl Launch {
    /// Calls the driver with another function, other arguments and other shared memory.
    ///
    /// # Safety
    /// The arguments are those of the function.
    unsafe fn call(&self, function: Handle, shared: c_uint, parameters: List, extra: List) -> Answer {
        let ([gx, gy, gz], [bx, by, bz]) = (self.grid, self.block);
        // SAFETY: the caller's promise.
        unsafe {
            match self.way {
                Way::Plain(real) => {
                    real(function, gx, gy, gz, bx, by, bz, shared, self.stream, parameters, extra)
                }
                Way::Cooperative(real) => {
                    real(function, gx, gy, gz, bx, by, bz, shared, self.stream, parameters)
                }
                Way::Attributes(real, config) => {
                    let config = CUlaunchConfig { sharedMemBytes: shared, ..*config };
                    real(&raw const config, function, parameters, extra)
                }
            }
        }
    }

    /// Makes the program's own call.
    ///
    /// # Safety
    /// It is the program's own.
    unsafe fn own(&self) -> Answer {
        // SAFETY: the caller's promise; an unchanged configuration is the program's own.
        unsafe {
            match self.way {
                Way::Attributes(real, config) => real(config, self.function, self.parameters, self.extra),
                _ => self.call(self.function, self.shared, self.parameters, self.extra),
            }
        }
    }

    /// Launches the traced copy with its logs.
    ///
    /// # Safety
    /// `traced` is the copy of the function that the program launches.
    unsafe fn traced(&self, traced: Handle, kernel: &Kernel, logs: &LaunchLogs, shared: u64) -> Answer {
        let Ok(shared) = c_uint::try_from(shared) else { return INVALID };
        let logs: *mut c_void = (&raw const *logs).cast_mut().cast();
        if !self.parameters.is_null() || kernel.parameters == 0 {
            let mut parameters = Vec::with_capacity(kernel.parameters + 1);
            // SAFETY: the program gives an address for each parameter that the kernel has.
            unsafe {
                for at in 0..kernel.parameters {
                    parameters.push(*self.parameters.add(at));
                }
                parameters.push(logs);
                return self.call(traced, shared, parameters.as_mut_ptr(), null_mut());
            }
        }
        // SAFETY: the program's own list.
        let Some(mut bytes) = (unsafe { buffer_of(self.extra) }) else { return INVALID };
        bytes.resize(kernel.logs_offset, 0);
        // SAFETY: a kernel takes as much of the logs as it declares, at most all.
        bytes.extend_from_slice(unsafe {
            std::slice::from_raw_parts(logs.cast::<u8>(), size_of::<LaunchLogs>())
        });
        let mut size = kernel.logs_offset + LOGS_BYTES;
        let mut extra: [*mut c_void; 5] = [
            std::ptr::without_provenance_mut(BUFFER),
            bytes.as_mut_ptr().cast(),
            std::ptr::without_provenance_mut(BUFFER_SIZE),
            (&raw mut size).cast(),
            null_mut(),
        ];
        // SAFETY: the buffer holds the kernel's arguments at their offsets, and the logs behind them.
        unsafe { self.call(traced, shared, null_mut(), extra.as_mut_ptr()) }
    }

    fn is_cooperative(&self) -> bool {
        match self.way {
            Way::Plain(_) => false,
            Way::Cooperative(_) => true,
            Way::Attributes(_, config) => {
                self.has_attribute(config, CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
            }
        }
    }

    fn has_attribute(&self, config: *const CUlaunchConfig, wanted: CUlaunchAttributeID) -> bool {
        // SAFETY: the program's configuration, with as many attributes as it says. Of an attribute only its
        // number is read, as a number: a driver may know more of them.
        unsafe {
            let CUlaunchConfig { attrs, numAttrs: count, .. } = *config;
            (0..count as usize)
                .filter(|_| !attrs.is_null())
                .any(|at| (&raw const (*attrs.add(at)).id).cast::<u32>().read() == wanted as u32)
        }
    }
}

/// Bytes of the logs that a traced kernel declares: those of warps that are chosen are left out.
const LOGS_BYTES: usize = std::mem::offset_of!(LaunchLogs, chosen);

/// Copies the arguments of a launch that gives them in a buffer.
///
/// # Safety
/// The list is null, or one that the driver takes.
unsafe fn buffer_of(extra: List) -> Option<Vec<u8>> {
    if extra.is_null() {
        return None;
    }
    let (mut buffer, mut bytes, mut at) = (null_mut::<c_void>(), 0, 0);
    // SAFETY: pairs of a mark and an address, up to the mark of the end.
    unsafe {
        loop {
            match (*extra.add(at)).addr() {
                0 => break,
                BUFFER => buffer = *extra.add(at + 1),
                BUFFER_SIZE => bytes = *(*extra.add(at + 1)).cast::<usize>(),
                _ => return None,
            }
            at += 2;
        }
        if buffer.is_null() || bytes > MAX_ARGUMENT_BYTES {
            return None;
        }
        Some(std::slice::from_raw_parts(buffer.cast::<u8>(), bytes).to_vec())
    }
}

/// Records a launch; if it was not made so, makes the program's own.
///
/// # Safety
/// It is the program's own launch.
unsafe fn launched(launch: Launch) -> Answer {
    let issued = Issued::new();
    let known = issued.clone();
    guarded(|| {
        let state = state()?;
        let _relaxed = Relaxed::enter();
        let function = lock(&state.registry).function(launch.function as usize).cloned();
        let Some(function) = function else {
            lock(&state.summary).untraced("a kernel", "the program found it by a way that is not watched");
            return None;
        };
        let recorded = function.kernel().and_then(|kernel| {
            let traced = function.traced(kernel).ok_or("its traced copy is not in the module")?;
            let context = driver::current_context().ok_or("the thread has no context")?;
            let request = Request {
                context,
                stream: launch.true_stream,
                code: &function.code,
                kernel,
                shape: checked(&launch, kernel, traced)?,
                launch: launching(launch, traced, kernel.clone(), known),
            };
            if kernel.is_deep {
                driver::grow_stack();
            }
            lock(&state.traces).record(state, request)
        });
        if let Err(reason) = recorded
            && issued.answer().is_none()
            && ![NOT_ASKED, SAID].contains(&&*reason)
        {
            lock(&state.summary).untraced(&names::readable(&function.name), &reason);
        }
        Some(())
    });
    // SAFETY: the caller's promise.
    issued.answer().unwrap_or_else(|| unsafe { launch.own() })
}

/// Makes the call that the session brackets.
fn launching(launch: Launch, traced: Handle, kernel: Kernel, issued: Issued) -> Launching {
    let traced = traced as usize;
    Box::new(move |arguments: &ForeignArguments<'_>| {
        // The whole launch goes into this function, which another thread may call.
        let launch: Launch = launch;
        let traced = std::ptr::with_exposed_provenance_mut(traced);
        let answer = match arguments.logs {
            // SAFETY: the copy of the launched function in its own module.
            Some(logs) => unsafe { launch.traced(traced, &kernel, logs, arguments.dynamic_shared) },
            // SAFETY: the program's own launch.
            None => unsafe { launch.own() },
        };
        issued.set(answer);
        answer
    })
}

/// Tells the shape of a launch, if its traced copy can be launched so.
fn checked(launch: &Launch, kernel: &Kernel, traced: Handle) -> Result<LaunchShape, String> {
    let shape = LaunchShape {
        grid: launch.grid,
        block: launch.block,
        dynamic_shared: launch.shared,
        blocks: Blocks::Communicating,
    };
    let threads = shape.block_threads();
    if threads == 0 || threads > 1024 || shape.block_count() == 0 {
        return Err("the driver refuses its grid or block".to_owned());
    }
    if launch.parameters.is_null() && launch.extra.is_null() && kernel.parameters != 0 {
        return Err("it has no arguments".to_owned());
    }
    if driver::is_capturing(launch.true_stream) {
        return Err("its stream was captured into a graph, whose launches are not recorded".to_owned());
    }
    let own = u64::from(launch.shared);
    let shared = match kernel.shared_bytes {
        0 => own,
        each => own.next_multiple_of(16) + shape.warps_per_block() * u64::from(each),
    };
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
    if launch.is_cooperative() && u128::from(blocks * driver::multiprocessors()) < shape.block_count() {
        return Err(
            "its blocks wait for each other, and those of its traced copy do not fit at once".to_owned()
        );
    }
    Ok(shape)
}

/// The stream that a null stream stands for where each thread has its own.
fn per_thread(stream: Handle) -> Handle {
    if stream.is_null() { PER_THREAD_STREAM } else { stream }
}

macro_rules! shaped {
    ($($name:ident, $stream:path;)*) => {
        $(
            #[expect(clippy::too_many_arguments, reason = "the driver's")]
            pub(super) unsafe fn $name(
                real: PlainLaunch,
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
                extra: List,
            ) -> Answer {
                let (grid, block, true_stream) = ([gx, gy, gz], [bx, by, bz], $stream(stream));
                let way = Way::Plain(real);
                // SAFETY: the program's own launch.
                unsafe {
                    launched(Launch { way, function, grid, block, shared, stream, true_stream, parameters, extra })
                }
            }
        )*
    };
}

shaped! {
    plain, std::convert::identity;
    plain_per_thread, per_thread;
}

/// Launches a kernel whose blocks wait for each other.
///
/// # Safety
/// The program's own launch.
#[expect(clippy::too_many_arguments, reason = "the driver's")]
pub(super) unsafe fn cooperative(
    real: CooperativeLaunch,
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
) -> Answer {
    let (grid, block, extra) = ([gx, gy, gz], [bx, by, bz], null_mut());
    let (way, true_stream) = (Way::Cooperative(real), stream);
    // SAFETY: the caller's promise.
    unsafe { launched(Launch { way, function, grid, block, shared, stream, true_stream, parameters, extra }) }
}

/// The same where each thread has a default stream of its own.
///
/// # Safety
/// The program's own launch.
#[expect(clippy::too_many_arguments, reason = "the driver's")]
pub(super) unsafe fn cooperative_per_thread(
    real: CooperativeLaunch,
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
) -> Answer {
    let (grid, block, extra) = ([gx, gy, gz], [bx, by, bz], null_mut());
    let (way, true_stream) = (Way::Cooperative(real), per_thread(stream));
    // SAFETY: the caller's promise.
    unsafe { launched(Launch { way, function, grid, block, shared, stream, true_stream, parameters, extra }) }
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
    let (way, true_stream) = (Way::Attributes(real, config), stream_of(stream));
    // SAFETY: the caller's promise.
    unsafe { launched(Launch { way, function, grid, block, shared, stream, true_stream, parameters, extra }) }
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

/// Adds a launch to a graph that the program builds, untraced.
///
/// # Safety
/// The program's own call.
pub(super) unsafe fn graph_node(
    real: unsafe extern "C" fn(*mut Handle, Handle, *const Handle, usize, *const c_void) -> Answer,
    node: *mut Handle,
    graph: Handle,
    dependencies: *const Handle,
    count: usize,
    parameters: *const c_void,
) -> Answer {
    // SAFETY: the caller's promise.
    let answer = unsafe { real(node, graph, dependencies, count, parameters) };
    if answer == SUCCESS {
        guarded(|| {
            state().map(|state| {
                lock(&state.summary)
                    .untraced("graphs that the program builds", "their launches are not recorded");
            })
        });
    }
    answer
}
