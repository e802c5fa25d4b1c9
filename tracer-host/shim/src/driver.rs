//! The shim's own calls to the driver. Callers are inside the tracer, so hooks pass these calls through.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;
use std::sync::Mutex;

use cudarc::driver::sys;

use crate::state::{Owner, lock};

/// Result of a driver call. A number and not cudarc's enum, since drivers may return other values.
pub(crate) type Answer = u32;
pub(crate) const SUCCESS: Answer = 0;
/// Returned by a hook if a launch cannot be made: `CUDA_ERROR_INVALID_VALUE`.
pub(crate) const INVALID: Answer = 1;
/// Returned by a hook if the driver has no such function: `CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND`.
pub(crate) const NOT_FOUND: Answer = 302;
pub(crate) const PER_THREAD_STREAM: *mut c_void = std::ptr::without_provenance_mut(2);

fn ok(answer: sys::CUresult) -> bool {
    answer as u32 == SUCCESS
}

/// Returns the handle that a driver call writes; `None` if the call fails or writes null.
fn handle<T>(call: impl FnOnce(*mut *mut T) -> sys::CUresult) -> Option<*mut c_void> {
    let mut found = null_mut();
    (ok(call(&raw mut found)) && !found.is_null()).then_some(found.cast())
}

fn number(call: impl FnOnce(*mut c_int) -> sys::CUresult) -> Option<c_int> {
    let mut found = 0;
    ok(call(&raw mut found)).then_some(found)
}

pub(crate) fn current_context() -> Option<*mut c_void> {
    // SAFETY: writes a handle.
    handle(|context| unsafe { sys::cuCtxGetCurrent(context) })
}

pub(crate) fn current_device() -> Option<c_int> {
    // SAFETY: writes a number.
    number(|device| unsafe { sys::cuCtxGetDevice(device) })
}

fn attribute(device: c_int, attribute: sys::CUdevice_attribute) -> Option<c_int> {
    // SAFETY: writes a number.
    number(|value| unsafe { sys::cuDeviceGetAttribute(value, attribute, device) })
}

/// Returns the driver's version; 13000 means CUDA 13.0.
pub(crate) fn version() -> Option<c_int> {
    // SAFETY: writes a number.
    number(|version| unsafe { sys::cuDriverGetVersion(version) })
}

/// Restores the thread's current context on drop.
pub(crate) struct Current(sys::CUcontext);

impl Current {
    pub(crate) fn keep() -> Self {
        Self(current_context().map_or(null_mut(), |context| context.cast()))
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        // SAFETY: the context that was current before, or null.
        let _ = unsafe { sys::cuCtxSetCurrent(self.0) };
    }
}

pub(crate) fn context_of_green(green: *mut c_void) -> Option<*mut c_void> {
    // SAFETY: the program's green context.
    handle(|context| unsafe { sys::cuCtxFromGreenCtx(context, green.cast()) })
}

/// Returns the primary context of a device if it is active.
pub(crate) fn primary_context(device: c_int) -> Option<*mut c_void> {
    let (mut flags, mut active, mut context) = (0, 0, null_mut());
    // SAFETY: the calls write to locals. An active context is retained and released once.
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

/// Returns the lowest architecture of all devices, 90 for `sm_90`: libraries run on any. 0 if it is unknown.
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

/// Factor by which the stack grows. Traced functions save more registers around calls.
const MORE_STACK: usize = 4;
/// Stack size that [`grow_stack`] set last, in bytes, by context.
static STACKS: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

/// Grows the thread stacks of the current context, once for each limit that the program sets. For recursive
/// functions the driver reserves this limit, which the program chose for untraced functions.
pub(crate) fn grow_stack() {
    const LIMIT: sys::CUlimit = sys::CUlimit::CU_LIMIT_STACK_SIZE;
    let Some(context) = current_context() else { return };
    let mut stacks = lock(&STACKS);
    let mut bytes = 0;
    // SAFETY: the calls read and set a limit of the current context.
    unsafe {
        if ok(sys::cuCtxGetLimit(&raw mut bytes, LIMIT)) && stacks.get(&(context as usize)) != Some(&bytes) {
            let more = bytes.saturating_mul(MORE_STACK);
            let _ = sys::cuCtxSetLimit(LIMIT, more);
            // The driver rounds the size.
            if ok(sys::cuCtxGetLimit(&raw mut bytes, LIMIT)) {
                stacks.insert(context as usize, bytes);
            }
        }
    }
}

pub(crate) fn is_capturing(stream: *mut c_void) -> bool {
    let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    // SAFETY: the program's stream. An error means that the capture of another stream forbids its use.
    let answer = unsafe { sys::cuStreamIsCapturing(stream.cast(), &raw mut status) };
    !ok(answer) || status != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE
}

/// While this value lives, calls of the thread do not invalidate captures of the program's streams.
pub(crate) struct Relaxed(Option<sys::CUstreamCaptureMode>);

impl Relaxed {
    pub(crate) fn enter() -> Self {
        let mut mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: exchanges the capture mode of the thread.
        let answer = unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut mode) };
        Self(ok(answer).then_some(mode))
    }
}

impl Drop for Relaxed {
    fn drop(&mut self) {
        if let Some(mode) = &mut self.0 {
            // SAFETY: restores the capture mode of the thread.
            let _ = unsafe { sys::cuThreadExchangeStreamCaptureMode(mode) };
        }
    }
}

/// Loads an image in the same way as `like`: as a module of the current context, or as a library.
pub(crate) fn load_like(like: Owner, image: *const c_void, loaded: &mut Option<Owner>) -> Answer {
    // SAFETY: the image is complete, and outlives the module or library.
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

pub(crate) fn unload(owner: Owner) {
    // SAFETY: no longer in use: the program has unloaded the code from which it was made.
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

/// Returns true if the driver loads all functions of a module at once, not each at its first use.
pub(crate) fn loads_eagerly() -> bool {
    let mut mode = sys::CUmoduleLoadingMode::CU_MODULE_LAZY_LOADING;
    // SAFETY: writes a number.
    ok(unsafe { sys::cuModuleGetLoadingMode(&raw mut mode) })
        && mode == sys::CUmoduleLoadingMode::CU_MODULE_EAGER_LOADING
}

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

/// Returned by a hook if code was loaded but cannot be used: `CUDA_ERROR_INVALID_PTX`.
pub(crate) const UNUSABLE: Answer = 218;

/// Returns true if a kernel is usable. With lazy loading, the driver may compile it only when it is loaded.
pub(crate) fn is_usable(owner: Owner, name: &CStr) -> bool {
    if current_context().is_none() {
        // Libraries can be loaded before a context exists.
        return true;
    }
    let found = function(owner, name).and_then(|found| in_context(owner, found));
    found.is_some_and(|function| registers(function).is_some())
}

pub(crate) fn module_function(module: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the program's module.
    handle(|function| unsafe { sys::cuModuleGetFunction(function, module.cast(), name.as_ptr()) })
}

pub(crate) fn library_kernel(library: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the program's library.
    handle(|kernel| unsafe { sys::cuLibraryGetKernel(kernel, library.cast(), name.as_ptr()) })
}

pub(crate) fn kernel_function(kernel: *mut c_void) -> Option<*mut c_void> {
    // SAFETY: a kernel of a loaded library.
    handle(|function| unsafe { sys::cuKernelGetFunction(function, kernel.cast()) })
}

/// Loads a function if necessary. Returns its registers per thread.
pub(crate) fn registers(function: *mut c_void) -> Option<c_int> {
    let registers = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_NUM_REGS;
    // SAFETY: a function of a module. The driver loads it to read this attribute.
    number(|value| unsafe { sys::cuFuncGetAttribute(value, registers, function.cast()) })
}

pub(crate) fn function_name(function: *mut c_void) -> Option<String> {
    let mut name = std::ptr::null();
    // SAFETY: a loaded function. Its name lives as long as the function.
    unsafe {
        let answer = sys::cuFuncGetName(&raw mut name, function.cast());
        (ok(answer) && !name.is_null()).then(|| CStr::from_ptr(name).to_string_lossy().into_owned())
    }
}

/// Raises a function's limit of dynamic shared memory to at least `bytes`. Returns false on failure.
pub(crate) fn allow_shared(function: *mut c_void, bytes: u64) -> bool {
    static LOCK: Mutex<()> = Mutex::new(());
    let attribute = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    let Ok(bytes) = c_int::try_from(bytes) else { return false };
    // Another thread may be about to launch the function with more, so the limit never shrinks.
    let _lock = lock(&LOCK);
    // SAFETY: a loaded function.
    let allowed = number(|value| unsafe { sys::cuFuncGetAttribute(value, attribute, function.cast()) });
    let is_allowed = allowed.is_some_and(|allowed| allowed >= bytes);
    // SAFETY: a loaded function.
    is_allowed || ok(unsafe { sys::cuFuncSetAttribute(function.cast(), attribute, bytes) })
}

/// Returns how many blocks of a function a multiprocessor can hold at once; `None` if it is unknown.
pub(crate) fn blocks_at_once(function: *mut c_void, threads: u64, shared: u64) -> Option<u64> {
    let (threads, shared) = (c_int::try_from(threads).ok()?, usize::try_from(shared).ok()?);
    // SAFETY: a loaded function.
    let blocks = number(|blocks| unsafe {
        sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function.cast(), threads, shared)
    });
    blocks.map(|blocks| u64::try_from(blocks).unwrap_or(0))
}

/// Returns false if the current context's device cannot access pageable host memory.
pub(crate) fn reaches_pageable() -> bool {
    let pageable = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS;
    current_device().and_then(|device| attribute(device, pageable)) != Some(0)
}

/// Returns the address of a variable of a module or library, and its size in bytes.
pub(crate) fn variable(owner: Owner, name: &CStr) -> Option<(u64, u64)> {
    let (mut address, mut bytes) = (0, 0);
    let of = std::ptr::with_exposed_provenance_mut::<c_void>;
    // SAFETY: writes two numbers. The module or library is loaded.
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

/// Returns the registers of a multiprocessor of the current context's device; 0 if they are unknown.
pub(crate) fn registers_per_multiprocessor() -> u64 {
    let count = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR;
    let count = current_device().and_then(|device| attribute(device, count));
    count.and_then(|count| u64::try_from(count).ok()).unwrap_or(0)
}

/// Returns the multiprocessors of the current context's device; 0 if they are unknown.
pub(crate) fn multiprocessors() -> u64 {
    let count = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
    let count = current_device().and_then(|device| attribute(device, count));
    count.and_then(|count| u64::try_from(count).ok()).unwrap_or(0)
}
