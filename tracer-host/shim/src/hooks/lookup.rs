//! Hooks for functions and kernels that the program looks up. They hide traced copies from the program.

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::ptr::null;

use cudarc::driver::sys;
use warptrace_ptx::splice::TRACED_SUFFIX;

use super::{Handle, Hook};
use crate::driver::{self, Answer, Relaxed, SUCCESS};
use crate::inside::guarded;
use crate::state::{Owner, Registry, lock, state};

/// Limit on the functions in a list from which copies are removed. Longer lists contain the copies.
const MAX_LISTED: c_uint = 1 << 20;

/// Updates the registry if the driver's call succeeded.
fn note(answer: Answer, take: impl FnOnce(&mut Registry)) -> Answer {
    if answer == SUCCESS {
        guarded(|| state().map(|state| take(&mut lock(&state.registry))));
    }
    answer
}

/// # Safety
/// If `answer` is success, the driver has read the name and written the handle.
pub(super) unsafe fn module_function(
    answer: Answer,
    function: *const Handle,
    module: Handle,
    name: *const c_char,
) -> Answer {
    // SAFETY: guaranteed by the caller.
    unsafe {
        note(answer, |registry| {
            let name = CStr::from_ptr(name).to_string_lossy();
            registry.found(Owner::Module(module as usize), &name, *function as usize);
        });
        if answer == SUCCESS { known(answer, *function) } else { answer }
    }
}

/// # Safety
/// Same as [`module_function`].
pub(super) unsafe fn library_kernel(
    answer: Answer,
    kernel: *const Handle,
    library: Handle,
    name: *const c_char,
) -> Answer {
    // SAFETY: guaranteed by the caller.
    note(answer, |registry| unsafe {
        let name = CStr::from_ptr(name).to_string_lossy();
        registry.found(Owner::Library(library as usize), &name, *kernel as usize);
    })
}

/// # Safety
/// If `answer` is success, the driver has written the handle.
pub(super) unsafe fn library_module(answer: Answer, module: *const Handle, library: Handle) -> Answer {
    // SAFETY: guaranteed by the caller.
    note(answer, |registry| registry.alias(library as usize, unsafe { *module } as usize))
}

/// # Safety
/// Same as [`library_module`].
pub(super) unsafe fn kernel_function(answer: Answer, function: *const Handle, kernel: Handle) -> Answer {
    // SAFETY: guaranteed by the caller.
    note(answer, |registry| registry.is_function(kernel as usize, unsafe { *function } as usize));
    known(answer, kernel)
}

/// Loads the traced copy of a function that the program has loaded. The driver waits for all running kernels
/// when it loads a function. Programs whose kernels wait for each other therefore load them first.
pub(super) fn loaded(answer: Answer, function: Handle) -> Answer {
    load_copy(answer, function, true)
}

/// Like [`loaded`], for a function that the program has only looked up. Loads only an existing copy.
fn known(answer: Answer, function: Handle) -> Answer {
    load_copy(answer, function, false)
}

fn load_copy(answer: Answer, function: Handle, makes: bool) -> Answer {
    if answer == SUCCESS {
        guarded(|| {
            let state = state()?;
            let function = lock(&state.registry).function(function as usize).cloned()?;
            if !makes && !function.has_copy() || function.is_loaded(driver::current_context()?) {
                return None;
            }
            let _relaxed = Relaxed::enter();
            driver::registers(function.traced(function.kernel().ok()?)?);
            Some(())
        });
    }
    answer
}

/// Like [`loaded`], for a kernel. Does nothing if `device` is not the current one.
pub(super) fn loaded_on(answer: Answer, kernel: Handle, device: c_int) -> Answer {
    let is_here = guarded(driver::current_device) == Some(Some(device));
    if answer == SUCCESS && is_here { loaded(answer, kernel) } else { answer }
}

type Count = unsafe extern "C" fn(*mut c_uint, Handle) -> Answer;
type List = unsafe extern "C" fn(*mut Handle, c_uint, Handle) -> Answer;

/// Returns the functions of a module, or the kernels of a library, without the traced copies.
fn listed(
    owner: Owner,
    count: impl FnOnce(&mut c_uint) -> Answer,
    list: impl FnOnce(*mut Handle, c_uint) -> Answer,
    name: impl Fn(Handle) -> *const c_char,
) -> Option<Vec<Handle>> {
    guarded(|| {
        let state = state()?;
        let mut all = 0;
        if !lock(&state.registry).is_traced(owner) || count(&mut all) != SUCCESS || all > MAX_LISTED {
            return None;
        }
        let mut handles = vec![std::ptr::null_mut(); all as usize];
        if list(handles.as_mut_ptr(), all) != SUCCESS {
            return None;
        }
        let mut registry = lock(&state.registry);
        handles.retain(|handle| {
            let name = name(*handle);
            if name.is_null() {
                return true;
            }
            // SAFETY: a string of the driver.
            let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
            let is_copy = name.ends_with(TRACED_SUFFIX);
            if !is_copy {
                registry.found(owner, &name, *handle as usize);
            }
            !is_copy
        });
        Some(handles)
    })
    .flatten()
}

fn function_name(function: Handle) -> *const c_char {
    let mut name = null();
    // SAFETY: a function that the driver has listed.
    let answer = unsafe { sys::cuFuncGetName(&raw mut name, function.cast()) } as Answer;
    if answer == SUCCESS { name } else { null() }
}

fn kernel_name(kernel: Handle) -> *const c_char {
    let mut name = null();
    // SAFETY: a kernel that the driver has listed.
    let answer = unsafe { sys::cuKernelGetName(&raw mut name, kernel.cast()) } as Answer;
    if answer == SUCCESS { name } else { null() }
}

fn functions_of(module: Handle) -> Option<Vec<Handle>> {
    let count: Count = Hook::cuModuleGetFunctionCount.function()?;
    let list: List = Hook::cuModuleEnumerateFunctions.function()?;
    // SAFETY: the program's own module. The list has room for `all` handles.
    unsafe {
        listed(
            Owner::Module(module as usize),
            |all| count(all, module),
            |to, all| list(to, all, module),
            function_name,
        )
    }
}

fn kernels_of(library: Handle) -> Option<Vec<Handle>> {
    let count: Count = Hook::cuLibraryGetKernelCount.function()?;
    let list: List = Hook::cuLibraryEnumerateKernels.function()?;
    // SAFETY: the program's own library. The list has room for `all` handles.
    unsafe {
        listed(
            Owner::Library(library as usize),
            |all| count(all, library),
            |to, all| list(to, all, library),
            kernel_name,
        )
    }
}

/// Returns the list `found` to the program, or calls the driver if there is none.
///
/// # Safety
/// `to` is null or has room for `count` handles.
unsafe fn answer_list(
    found: Option<Vec<Handle>>,
    to: *mut Handle,
    count: c_uint,
    real: impl FnOnce() -> Answer,
) -> Answer {
    match found {
        Some(found) if !to.is_null() => {
            for (at, handle) in found.into_iter().take(count as usize).enumerate() {
                // SAFETY: guaranteed by the caller.
                unsafe { *to.add(at) = handle };
            }
            SUCCESS
        }
        _ => real(),
    }
}

pub(super) unsafe fn module_functions(real: List, to: *mut Handle, count: c_uint, module: Handle) -> Answer {
    // SAFETY: the program's own call.
    unsafe { answer_list(functions_of(module), to, count, || real(to, count, module)) }
}

pub(super) unsafe fn library_kernels(real: List, to: *mut Handle, count: c_uint, library: Handle) -> Answer {
    // SAFETY: the program's own call.
    unsafe { answer_list(kernels_of(library), to, count, || real(to, count, library)) }
}

/// Returns the length of `found` to the program, or calls the driver if there is none.
///
/// # Safety
/// `count` is null or writable.
unsafe fn answer_count(
    found: Option<Vec<Handle>>,
    count: *mut c_uint,
    real: impl FnOnce() -> Answer,
) -> Answer {
    match found.map(|found| c_uint::try_from(found.len())) {
        Some(Ok(length)) if !count.is_null() => {
            // SAFETY: guaranteed by the caller.
            unsafe { *count = length };
            SUCCESS
        }
        _ => real(),
    }
}

pub(super) unsafe fn module_function_count(real: Count, count: *mut c_uint, module: Handle) -> Answer {
    // SAFETY: the program's own call.
    unsafe { answer_count(functions_of(module), count, || real(count, module)) }
}

pub(super) unsafe fn library_kernel_count(real: Count, count: *mut c_uint, library: Handle) -> Answer {
    // SAFETY: the program's own call.
    unsafe { answer_count(kernels_of(library), count, || real(count, library)) }
}
