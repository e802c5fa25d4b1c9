//! The few questions that the shim asks the driver itself, always from inside of the tracer.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;
use std::sync::Mutex;

use cudarc::driver::sys;

use crate::state::{Owner, lock};

/// The driver's answer to a call, as a number: 0 is success. (Not cudarc's enum: a driver may have others.)
pub(crate) type Answer = u32;
/// Success.
pub(crate) const SUCCESS: Answer = 0;
/// What a hook returns where a launch cannot be made: `CUDA_ERROR_INVALID_VALUE`.
pub(crate) const INVALID: Answer = 1;
/// What a hook returns if the driver has no such function: `CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND`.
pub(crate) const NOT_FOUND: Answer = 302;
/// The driver's mark of a thread's own default stream.
pub(crate) const PER_THREAD_STREAM: *mut c_void = std::ptr::without_provenance_mut(2);

fn ok(answer: sys::CUresult) -> bool {
    answer as u32 == SUCCESS
}

/// The handle that a call of the driver writes; `None` if it fails, or writes none.
fn handle<T>(call: impl FnOnce(*mut *mut T) -> sys::CUresult) -> Option<*mut c_void> {
    let mut found = null_mut();
    (ok(call(&raw mut found)) && !found.is_null()).then_some(found.cast())
}

/// The number that a call of the driver writes; `None` if it fails.
fn number(call: impl FnOnce(*mut c_int) -> sys::CUresult) -> Option<c_int> {
    let mut found = 0;
    ok(call(&raw mut found)).then_some(found)
}

/// The context of the thread; `None` without one.
pub(crate) fn current_context() -> Option<*mut c_void> {
    // SAFETY: writes a handle.
    handle(|context| unsafe { sys::cuCtxGetCurrent(context) })
}

/// The device of the current context.
pub(crate) fn current_device() -> Option<c_int> {
    // SAFETY: writes a number.
    number(|device| unsafe { sys::cuCtxGetDevice(device) })
}

/// An attribute of a device.
fn attribute(device: c_int, attribute: sys::CUdevice_attribute) -> Option<c_int> {
    // SAFETY: writes a number.
    number(|value| unsafe { sys::cuDeviceGetAttribute(value, attribute, device) })
}

/// The driver's version, 13000 for CUDA 13.0.
pub(crate) fn version() -> Option<c_int> {
    // SAFETY: writes a number.
    number(|version| unsafe { sys::cuDriverGetVersion(version) })
}

/// Makes the thread's context the current one again when it is dropped.
pub(crate) struct Current(sys::CUcontext);

impl Current {
    pub(crate) fn keep() -> Self {
        Self(current_context().map_or(null_mut(), |context| context.cast()))
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        // SAFETY: the context that the program had made current, or none.
        let _ = unsafe { sys::cuCtxSetCurrent(self.0) };
    }
}

/// The context of a green context.
pub(crate) fn context_of_green(green: *mut c_void) -> Option<*mut c_void> {
    // SAFETY: the program's green context.
    handle(|context| unsafe { sys::cuCtxFromGreenCtx(context, green.cast()) })
}

/// The primary context of a device, if there is one.
pub(crate) fn primary_context(device: c_int) -> Option<*mut c_void> {
    let (mut flags, mut active, mut context) = (0, 0, null_mut());
    // SAFETY: writes two numbers; a context that is active is retained and released once.
    unsafe {
        if !ok(sys::cuDevicePrimaryCtxGetState(device, &raw mut flags, &raw mut active)) || active == 0 {
            return None;
        }
        if !ok(sys::cuDevicePrimaryCtxRetain(&raw mut context, device)) {
            return None;
        }
        let _ = sys::cuDevicePrimaryCtxRelease_v2(device);
    }
    (!context.is_null()).then_some(context.cast())
}

/// The architecture for which code is chosen, 90 for `sm_90`: that of the current context's device, or the
/// lowest of all devices where a library may run on any. 0 if the driver does not say.
pub(crate) fn architecture() -> u32 {
    use sys::CUdevice_attribute as A;
    let of = |device: c_int| {
        let major = attribute(device, A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = attribute(device, A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        u32::try_from(10 * major + minor).ok()
    };
    // SAFETY: writes a number.
    let count = number(|count| unsafe { sys::cuDeviceGetCount(count) }).unwrap_or(0);
    (0..count).map(|device| of(device).unwrap_or(0)).min().unwrap_or(0)
}

/// How much more stack traced functions may need: they save more registers where they call.
const MORE_STACK: usize = 4;
/// The size of threads' stacks that was set here last, in bytes, by context.
static STACKS: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

/// Makes the stacks of the current context's threads larger than the program asked for, if they are not yet.
///
/// How much stack a kernel needs whose functions call themselves is not known: the driver gives it as
/// much as the context's limit says, and the program has chosen that for functions that record nothing.
pub(crate) fn grow_stack() {
    const LIMIT: sys::CUlimit = sys::CUlimit::CU_LIMIT_STACK_SIZE;
    let Some(context) = current_context() else { return };
    let mut stacks = lock(&STACKS);
    let mut bytes = 0;
    // SAFETY: reads and sets a number of the current context.
    unsafe {
        if ok(sys::cuCtxGetLimit(&raw mut bytes, LIMIT)) && stacks.get(&(context as usize)) != Some(&bytes) {
            let more = bytes.saturating_mul(MORE_STACK);
            let _ = sys::cuCtxSetLimit(LIMIT, more);
            // The driver rounds it.
            if ok(sys::cuCtxGetLimit(&raw mut bytes, LIMIT)) {
                stacks.insert(context as usize, bytes);
            }
        }
    }
}

/// Tells whether launches on a stream are put into a graph.
pub(crate) fn is_capturing(stream: *mut c_void) -> bool {
    let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    // SAFETY: the program's stream. An error says that another stream's capture forbids the use of this one.
    let answer = unsafe { sys::cuStreamIsCapturing(stream.cast(), &raw mut status) };
    !ok(answer) || status != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE
}

/// While this lives, calls of the thread do not spoil captures of the program's other streams.
pub(crate) struct Relaxed(Option<sys::CUstreamCaptureMode>);

impl Relaxed {
    pub(crate) fn enter() -> Self {
        let mut mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: exchanges the thread's mode.
        let answer = unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut mode) };
        Self(ok(answer).then_some(mode))
    }
}

impl Drop for Relaxed {
    fn drop(&mut self) {
        if let Some(mode) = &mut self.0 {
            // SAFETY: gives the thread's mode back.
            let _ = unsafe { sys::cuThreadExchangeStreamCaptureMode(mode) };
        }
    }
}

/// Loads an image as the program has loaded another: as a module of the current context, or as a library of
/// all.
pub(crate) fn load_like(like: Owner, image: *const c_void, loaded: &mut Option<Owner>) -> Answer {
    // SAFETY: the image is one that the driver may take, and stays.
    unsafe {
        match like {
            Owner::Module(_) => {
                let mut module = null_mut();
                let answer = sys::cuModuleLoadData(&raw mut module, image) as Answer;
                *loaded = (answer == SUCCESS).then_some(Owner::Module(module as usize));
                answer
            }
            Owner::Library(_) => {
                let (mut library, none, no_values) = (null_mut(), null_mut(), null_mut());
                let to = &raw mut library;
                let answer =
                    sys::cuLibraryLoadData(to, image, none, no_values, 0, null_mut(), no_values, 0) as Answer;
                *loaded = (answer == SUCCESS).then_some(Owner::Library(library as usize));
                answer
            }
        }
    }
}

/// Unloads what [`load_like`] has loaded.
pub(crate) fn unload(owner: Owner) {
    // SAFETY: nothing uses it any more: the program has unloaded what it was made of.
    let _ = unsafe {
        match owner {
            Owner::Module(module) => {
                sys::cuModuleUnload(std::ptr::with_exposed_provenance_mut::<c_void>(module).cast())
            }
            Owner::Library(library) => {
                sys::cuLibraryUnload(std::ptr::with_exposed_provenance_mut::<c_void>(library).cast())
            }
        }
    };
}

/// Whether the driver loads all functions of a module with it; else each when it is first used.
pub(crate) fn loads_eagerly() -> bool {
    let mut mode = sys::CUmoduleLoadingMode::CU_MODULE_LAZY_LOADING;
    // SAFETY: writes a number.
    ok(unsafe { sys::cuModuleGetLoadingMode(&raw mut mode) })
        && mode == sys::CUmoduleLoadingMode::CU_MODULE_EAGER_LOADING
}

/// A function of a module, or a kernel of a library.
pub(crate) fn function(owner: Owner, name: &CStr) -> Option<*mut c_void> {
    let of = std::ptr::with_exposed_provenance_mut::<c_void>;
    match owner {
        Owner::Module(module) => module_function(of(module), name),
        Owner::Library(library) => library_kernel(of(library), name),
    }
}

/// Returns a function of a module, or a kernel of a library, as a function of the current context.
pub(crate) fn in_context(owner: Owner, found: *mut c_void) -> Option<*mut c_void> {
    match owner {
        Owner::Module(_) => Some(found),
        Owner::Library(_) => kernel_function(found),
    }
}

/// What a hook answers for code that was loaded and cannot be used: `CUDA_ERROR_INVALID_PTX`.
pub(crate) const UNUSABLE: Answer = 218;

/// Tells whether a kernel of a module or library can be used: with lazy loading, the driver may compile code only
/// when it is looked up or loaded, after it has taken it.
pub(crate) fn is_usable(owner: Owner, name: &CStr) -> bool {
    if current_context().is_none() {
        // A library may be loaded before there is one.
        return true;
    }
    let found = function(owner, name).and_then(|found| in_context(owner, found));
    found.is_some_and(|function| registers(function).is_some())
}

/// A function of a module.
pub(crate) fn module_function(module: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the program's module.
    handle(|function| unsafe { sys::cuModuleGetFunction(function, module.cast(), name.as_ptr()) })
}

/// A kernel of a library.
pub(crate) fn library_kernel(library: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the program's library.
    handle(|kernel| unsafe { sys::cuLibraryGetKernel(kernel, library.cast(), name.as_ptr()) })
}

/// The function of a library's kernel in the current context.
pub(crate) fn kernel_function(kernel: *mut c_void) -> Option<*mut c_void> {
    // SAFETY: a kernel of a loaded library.
    handle(|function| unsafe { sys::cuKernelGetFunction(function, kernel.cast()) })
}

/// Loads a function, if the driver has not yet; returns how many registers it takes.
pub(crate) fn registers(function: *mut c_void) -> Option<c_int> {
    let registers = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_NUM_REGS;
    // SAFETY: a function of a module; what it asks for is known only when it is loaded.
    number(|value| unsafe { sys::cuFuncGetAttribute(value, registers, function.cast()) })
}

/// The name of a function.
pub(crate) fn function_name(function: *mut c_void) -> Option<String> {
    let mut name = std::ptr::null();
    // SAFETY: a loaded function, whose name lives as long.
    unsafe {
        let answer = sys::cuFuncGetName(&raw mut name, function.cast());
        (ok(answer) && !name.is_null()).then(|| CStr::from_ptr(name).to_string_lossy().into_owned())
    }
}

/// Allows a function at least so much dynamic shared memory; `false` if a block cannot have it.
pub(crate) fn allow_shared(function: *mut c_void, bytes: u64) -> bool {
    static LOCK: Mutex<()> = Mutex::new(());
    let attribute = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    let Ok(bytes) = c_int::try_from(bytes) else { return false };
    // Another thread may be about to launch it with more: the limit never shrinks.
    let _lock = lock(&LOCK);
    // SAFETY: a loaded function.
    let allowed = number(|value| unsafe { sys::cuFuncGetAttribute(value, attribute, function.cast()) });
    let is_allowed = allowed.is_some_and(|allowed| allowed >= bytes);
    // SAFETY: as above.
    is_allowed || ok(unsafe { sys::cuFuncSetAttribute(function.cast(), attribute, bytes) })
}

/// Blocks of a function that a multiprocessor can hold at once; `None` if the driver does not say.
pub(crate) fn blocks_at_once(function: *mut c_void, threads: u64, shared: u64) -> Option<u64> {
    let (threads, shared) = (c_int::try_from(threads).ok()?, usize::try_from(shared).ok()?);
    // SAFETY: a loaded function.
    let blocks = number(|blocks| unsafe {
        sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function.cast(), threads, shared)
    });
    blocks.map(|blocks| u64::try_from(blocks).unwrap_or(0))
}

/// Tells whether the current context's device reaches all memory of the host, or the driver does not say.
pub(crate) fn reaches_pageable() -> bool {
    let pageable = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS;
    current_device().and_then(|device| attribute(device, pageable)) != Some(0)
}

/// Finds a variable of a module or library: its address and its bytes.
pub(crate) fn variable(owner: Owner, name: &CStr) -> Option<(u64, u64)> {
    let (mut address, mut bytes) = (0, 0);
    let of = std::ptr::with_exposed_provenance_mut::<c_void>;
    // SAFETY: writes two numbers; what was loaded is there.
    let answer = unsafe {
        match owner {
            Owner::Module(module) => {
                sys::cuModuleGetGlobal_v2(&raw mut address, &raw mut bytes, of(module).cast(), name.as_ptr())
            }
            Owner::Library(library) => {
                sys::cuLibraryGetGlobal(&raw mut address, &raw mut bytes, of(library).cast(), name.as_ptr())
            }
        }
    };
    ok(answer).then_some((address, bytes as u64))
}

/// Registers of a multiprocessor of the current context's device; 0 if the driver does not say.
pub(crate) fn registers_per_multiprocessor() -> u64 {
    let count = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR;
    let count = current_device().and_then(|device| attribute(device, count));
    count.and_then(|count| u64::try_from(count).ok()).unwrap_or(0)
}

/// Multiprocessors of the current context's device; 0 if the driver does not say.
pub(crate) fn multiprocessors() -> u64 {
    let count = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
    let count = current_device().and_then(|device| attribute(device, count));
    count.and_then(|count| u64::try_from(count).ok()).unwrap_or(0)
}
