//! Hooks: functions of this library that replace functions of the driver, NVRTC and nvJitLink, by name.
//!
//! Each hook looks up the driver's function. Calls from inside the tracer go straight to it. Other calls go
//! to the modules of this folder. If a hook fails, the driver gets the program's own call.

mod attributes;
mod call;
mod contexts;
mod graph;
mod graph_changes;
mod launch;
mod link;
mod load;
mod lookup;
mod memory;
mod nvjitlink;
mod nvrtc;
mod resolve;

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use cudarc::driver::sys::{CUipcMemHandle, CUlaunchConfig};
use warptrace_format::file::BufferKind;

use crate::driver::{Answer, NOT_FOUND};
use crate::inside::Inside;
use crate::real;
use crate::state::Function;

pub(crate) use call::buffer_of;
use launch::per_thread;

type Handle = *mut c_void;
/// An array of option values or addresses.
type List = *mut *mut c_void;

/// Makes the body of a hook: a call of a function that gets the driver's function; an expression before or
/// after the program's call; or the program's call, repeated for the traced copy of a function.
macro_rules! call {
    ([$body:path] [] $real:ident $args:tt) => {
        call!(@with $body, $real, $args)
    };
    (@with $body:path, $real:ident, ($($arg:ident),*)) => {
        $body($real, $($arg),*)
    };
    ([] [after $answer:ident: $after:expr] $real:ident $args:tt) => {{
        let $answer = $real $args;
        $after
    }};
    ([] [repeat $function:ident by $find:path, if $when:expr => |$again:ident, $copy:ident| $call:expr]
        $real:ident $args:tt) => {{
        let (answer, $again) = ($real $args, $real);
        if $when {
            attributes::repeat(answer, $function, $find, move |$copy| { let _: Answer = $call; })
        } else {
            answer
        }
    }};
    ([] [before $before:expr] $real:ident $args:tt) => {{
        $before;
        $real $args
    }};
}

macro_rules! hooks {
    ($($name:ident = $($body:path)? $([$($how:tt)*])?, ($($arg:ident: $ty:ty),*);)*) => {
        /// A function for which this library exports a hook.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(non_camel_case_types, reason = "the driver's names")]
        pub(crate) enum Hook {
            $($name),*
        }

        impl Hook {
            const ALL: &[(Self, &CStr)] = &[$((
                Self::$name,
                match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!("a name without zero bytes"),
                },
            )),*];

            /// Returns the function that replaces the driver's.
            fn ours(self) -> *mut c_void {
                match self {
                    $(Self::$name => {
                        let function: unsafe extern "C" fn($($ty),*) -> Answer = exported::$name;
                        function as *mut c_void
                    })*
                }
            }
        }

        #[allow(non_snake_case, reason = "the driver's names")]
        mod exported {
            use super::*;

            $(
                #[cfg_attr(not(test), unsafe(no_mangle))]
                pub(super) unsafe extern "C" fn $name($($arg: $ty),*) -> Answer {
                    let Some(real) = Hook::$name.real() else { return NOT_FOUND };
                    // SAFETY: the driver's function of this name has this signature.
                    let real: unsafe extern "C" fn($($ty),*) -> Answer = unsafe { std::mem::transmute(real) };
                    let inside = Inside::enter();
                    // SAFETY: the program's own call.
                    unsafe {
                        match inside {
                            Some(_) => call!([$($body)?] [$($($how)*)?] real ($($arg),*)),
                            None => real($($arg),*),
                        }
                    }
                }
            )*
        }
    };
}

hooks! {
    cuGetProcAddress = [after answer: resolve::exchange(answer, symbol, found, version, flags)],
        (symbol: *const c_char, found: *mut Handle, version: c_int, flags: u64);
    cuGetProcAddress_v2 = [after answer: resolve::exchange(answer, symbol, found, version, flags)],
        (symbol: *const c_char, found: *mut Handle, version: c_int, flags: u64, status: *mut c_uint);
    cuModuleLoad = load::module_file, (module: *mut Handle, path: *const c_char);
    cuModuleLoadData = load::module, (module: *mut Handle, image: *const c_void);
    cuModuleLoadDataEx = load::module_with_options,
        (module: *mut Handle, image: *const c_void, count: c_uint, options: *mut c_int, values: List);
    cuModuleLoadFatBinary = load::module_fatbin, (module: *mut Handle, image: *const c_void);
    cuModuleUnload = load::unload_module, (module: Handle);
    cuLibraryLoadData = load::library,
        (library: *mut Handle, image: *const c_void, options: *mut c_int, values: List, count: c_uint,
        library_options: *mut c_int, library_values: List, library_count: c_uint);
    cuLibraryLoadFromFile = load::library_file,
        (library: *mut Handle, path: *const c_char, options: *mut c_int, values: List, count: c_uint,
        library_options: *mut c_int, library_values: List, library_count: c_uint);
    cuLibraryUnload = load::unload_library, (library: Handle);
    cuModuleGetFunction = [after answer: lookup::module_function(answer, function, module, name)], (function: *mut Handle, module: Handle, name: *const c_char);
    cuLibraryGetKernel = [after answer: lookup::library_kernel(answer, kernel, library, name)], (kernel: *mut Handle, library: Handle, name: *const c_char);
    cuLibraryGetModule = [after answer: lookup::library_module(answer, module, library)], (module: *mut Handle, library: Handle);
    cuKernelGetFunction = [after answer: lookup::kernel_function(answer, function, kernel)], (function: *mut Handle, kernel: Handle);
    cuFuncLoad = [after answer: lookup::loaded(answer, function)], (function: Handle);
    cuFuncGetAttribute = [after answer: lookup::loaded(answer, function)], (value: *mut c_int, attribute: c_int, function: Handle);
    cuKernelGetAttribute = [after answer: lookup::loaded_on(answer, kernel, device)],
        (value: *mut c_int, attribute: c_int, kernel: Handle, device: c_int);
    cuModuleGetFunctionCount = lookup::module_function_count, (count: *mut c_uint, module: Handle);
    cuLibraryGetKernelCount = lookup::library_kernel_count, (count: *mut c_uint, library: Handle);
    cuModuleEnumerateFunctions = lookup::module_functions, (functions: *mut Handle, count: c_uint, module: Handle);
    cuLibraryEnumerateKernels = lookup::library_kernels, (kernels: *mut Handle, count: c_uint, library: Handle);
    cuFuncSetAttribute = [repeat function by Function::traced, if attribute != attributes::MAX_DYNAMIC_SHARED => |real, copy| real(copy, attribute, value)], (function: Handle, attribute: c_int, value: c_int);
    cuKernelSetAttribute = [repeat kernel by Function::traced_kernel, if attribute != attributes::MAX_DYNAMIC_SHARED => |real, copy| real(attribute, value, copy, device)],
        (attribute: c_int, value: c_int, kernel: Handle, device: c_int);
    cuFuncSetCacheConfig = [repeat function by Function::traced, if true => |real, copy| real(copy, config)], (function: Handle, config: c_int);
    cuKernelSetCacheConfig = [repeat kernel by Function::traced_kernel, if true => |real, copy| real(copy, config, device)], (kernel: Handle, config: c_int, device: c_int);
    cuLaunchKernel = launch::plain,
        (function: Handle, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint,
        shared: c_uint, stream: Handle, parameters: List, extra: List);
    cuLaunchKernel_ptsz = launch::plain_per_thread,
        (function: Handle, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint,
        shared: c_uint, stream: Handle, parameters: List, extra: List);
    cuLaunchKernelEx = launch::with_attributes,
        (config: *const CUlaunchConfig, function: Handle, parameters: List, extra: List);
    cuLaunchKernelEx_ptsz = launch::with_attributes_per_thread,
        (config: *const CUlaunchConfig, function: Handle, parameters: List, extra: List);
    cuLaunchCooperativeKernel = launch::cooperative,
        (function: Handle, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint,
        shared: c_uint, stream: Handle, parameters: List);
    cuLaunchCooperativeKernel_ptsz = launch::cooperative_per_thread,
        (function: Handle, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint,
        shared: c_uint, stream: Handle, parameters: List);
    cuGraphInstantiate = [after answer: graph::instantiated(answer, exec, graph, 0)],
        (exec: *mut Handle, graph: Handle, node: *mut Handle, log: *mut c_char, bytes: usize);
    cuGraphInstantiate_v2 = [after answer: graph::instantiated(answer, exec, graph, 0)],
        (exec: *mut Handle, graph: Handle, node: *mut Handle, log: *mut c_char, bytes: usize);
    cuGraphInstantiateWithFlags = [after answer: graph::instantiated(answer, exec, graph, flags)], (exec: *mut Handle, graph: Handle, flags: u64);
    cuGraphInstantiateWithParams = [after answer: graph::instantiated(answer, exec, graph, graph::flags_in(parameters))],
        (exec: *mut Handle, graph: Handle, parameters: *mut u64);
    cuGraphInstantiateWithParams_ptsz = [after answer: graph::instantiated(answer, exec, graph, graph::flags_in(parameters))],
        (exec: *mut Handle, graph: Handle, parameters: *mut u64);
    cuGraphLaunch = graph::launch, (exec: Handle, stream: Handle);
    cuGraphLaunch_ptsz = graph::launch_per_thread, (exec: Handle, stream: Handle);
    cuGraphExecKernelNodeSetParams = [after answer: graph_changes::set_parameters(answer, exec, node, parameters)], (exec: Handle, node: Handle, parameters: *const c_void);
    cuGraphExecKernelNodeSetParams_v2 = [after answer: graph_changes::set_parameters_v2(answer, exec, node, parameters)],
        (exec: Handle, node: Handle, parameters: *const c_void);
    cuGraphExecNodeSetParams = [after answer: graph_changes::note(answer, exec, |graph| graph.changed(Some(node)))], (exec: Handle, node: Handle, parameters: *mut c_void);
    cuGraphNodeSetEnabled = [after answer: graph_changes::note(answer, exec, |graph| graph.enable(node, enabled != 0))], (exec: Handle, node: Handle, enabled: c_uint);
    cuGraphExecUpdate = [after answer: graph_changes::note(answer, exec, |graph| graph.changed(None))], (exec: Handle, graph: Handle, node: *mut Handle, result: *mut c_int);
    cuGraphExecUpdate_v2 = [after answer: graph_changes::note(answer, exec, |graph| graph.changed(None))], (exec: Handle, graph: Handle, result: *mut c_void);
    cuGraphExecDestroy = graph::destroy_exec, (exec: Handle);
    cuGraphDestroy = graph::destroy, (graph: Handle);
    cuGraphChildGraphNodeGetGraph = [after answer: graph::child(answer, graph)], (node: Handle, graph: *mut Handle);
    cuGraphDestroyNode = [before graph::destroy_node(node)], (node: Handle);
    cuCtxDestroy_v2 = [before contexts::end(context)], (context: Handle);
    cuGreenCtxDestroy = [before contexts::end_green(green)], (green: Handle);
    cuDevicePrimaryCtxRetain = [after answer: contexts::retain(answer, device)], (context: *mut Handle, device: c_int);
    cuDevicePrimaryCtxRelease_v2 = [before contexts::release(device)], (device: c_int);
    cuDevicePrimaryCtxReset_v2 = [before contexts::reset(device)], (device: c_int);
    cuLinkAddData_v2 = [after answer: link::add_data(answer, link, kind, data, size)],
        (link: Handle, kind: c_int, data: *const c_void, size: usize, name: *const c_char, count: c_uint,
        options: *mut c_int, values: List);
    cuLinkAddFile_v2 = [after answer: link::add_file(answer, link)],
        (link: Handle, kind: c_int, path: *const c_char, count: c_uint, options: *mut c_int, values: List);
    cuLinkComplete = [after answer: link::complete(answer, link, code, size)], (link: Handle, code: *mut Handle, size: *mut usize);
    cuLinkDestroy = [before link::destroy(link)], (link: Handle);
    cuMemAlloc_v2 = [after answer: memory::got(answer, address, bytes, BufferKind::Device)], (address: *mut u64, bytes: usize);
    cuMemAllocPitch_v2 = [after answer: memory::got_pitched(answer, address, pitch, height)],
        (address: *mut u64, pitch: *mut usize, width: usize, height: usize, element: c_uint);
    cuMemAllocManaged = [after answer: memory::got(answer, address, bytes, BufferKind::Managed)], (address: *mut u64, bytes: usize, flags: c_uint);
    cuMemAllocAsync = [after answer: memory::got_in_stream(answer, address, bytes, stream)], (address: *mut u64, bytes: usize, stream: Handle);
    cuMemAllocAsync_ptsz = [after answer: memory::got_in_stream(answer, address, bytes, per_thread(stream))], (address: *mut u64, bytes: usize, stream: Handle);
    cuMemAllocFromPoolAsync = [after answer: memory::got_in_stream(answer, address, bytes, stream)],
        (address: *mut u64, bytes: usize, pool: Handle, stream: Handle);
    cuMemAllocFromPoolAsync_ptsz = [after answer: memory::got_in_stream(answer, address, bytes, per_thread(stream))],
        (address: *mut u64, bytes: usize, pool: Handle, stream: Handle);
    cuMemFree_v2 = [before memory::goes(address)], (address: u64);
    cuMemFreeAsync = [before memory::goes(address)], (address: u64, stream: Handle);
    cuMemFreeAsync_ptsz = [before memory::goes(address)], (address: u64, stream: Handle);
    cuMemHostAlloc = [after answer: memory::got(answer, address.cast(), bytes, BufferKind::Host)], (address: *mut Handle, bytes: usize, flags: c_uint);
    cuMemAllocHost_v2 = [after answer: memory::got(answer, address.cast(), bytes, BufferKind::Host)], (address: *mut Handle, bytes: usize);
    cuMemFreeHost = [before memory::goes(address as u64)], (address: Handle);
    cuMemHostRegister_v2 = [after answer: memory::got(answer, (&raw const address).cast(), bytes, BufferKind::Host)], (address: Handle, bytes: usize, flags: c_uint);
    cuMemHostUnregister = [before memory::goes(address as u64)], (address: Handle);
    cuMemHostGetDevicePointer_v2 = [after answer: memory::device_pointer(answer, address, host)], (address: *mut u64, host: Handle, flags: c_uint);
    cuModuleGetGlobal_v2 = [after answer: memory::global(answer, address, bytes, name)],
        (address: *mut u64, bytes: *mut usize, module: Handle, name: *const c_char);
    cuLibraryGetGlobal = [after answer: memory::global(answer, address, bytes, name)],
        (address: *mut u64, bytes: *mut usize, library: Handle, name: *const c_char);
    cuLibraryGetManaged = [after answer: memory::global(answer, address, bytes, name)],
        (address: *mut u64, bytes: *mut usize, library: Handle, name: *const c_char);
    cuMemMap = [after answer: memory::got(answer, &raw const address, bytes, BufferKind::Mapped)], (address: u64, bytes: usize, offset: usize, handle: u64, flags: u64);
    cuMemUnmap = [before memory::unmapped(address, bytes)], (address: u64, bytes: usize);
    cuIpcOpenMemHandle_v2 = [after answer: memory::lacks(answer)],
        (address: *mut u64, handle: CUipcMemHandle, flags: c_uint);
    cuExternalMemoryGetMappedBuffer = [after answer: memory::lacks(answer)],
        (address: *mut u64, memory: Handle, description: *const c_void);
    cuGraphicsResourceGetMappedPointer_v2 = [after answer: memory::lacks(answer)],
        (address: *mut u64, bytes: *mut usize, resource: Handle);
    nvrtcCompileProgram = nvrtc::compile, (program: Handle, count: c_int, options: *const *const c_char);
    nvrtcGetCUBINSize = nvrtc::cubin_size, (program: Handle, size: *mut usize);
    nvrtcGetCUBIN = nvrtc::cubin, (program: Handle, code: *mut c_char);
    nvJitLinkCreate = nvjitlink::create, (link: *mut Handle, count: c_uint, options: *const *const c_char);
}

/// The driver's functions; null until they are looked up.
static REAL: [AtomicPtr<c_void>; Hook::ALL.len()] = [const { AtomicPtr::new(null_mut()) }; Hook::ALL.len()];

pub(crate) fn named(name: &[u8]) -> Option<Hook> {
    Hook::ALL.iter().find(|(_, known)| known.to_bytes() == name).map(|(hook, _)| *hook)
}

impl Hook {
    /// Stores the driver's function. Returns the hook.
    pub(crate) fn replace(self, found: *mut c_void) -> *mut c_void {
        let ours = self.ours();
        if found != ours {
            REAL[self as usize].store(found, Ordering::Release);
        }
        ours
    }

    /// Returns the driver's function as a function pointer. Panics if `F` is not as large as an address.
    fn function<F: Copy>(self) -> Option<F> {
        assert_eq!(size_of::<F>(), size_of::<*mut c_void>(), "a function of the driver is an address");
        // SAFETY: both are addresses. The caller gives the type of the driver's function.
        self.real().map(|real| unsafe { std::mem::transmute_copy(&real) })
    }

    /// Returns the driver's function; `None` if there is no driver, or the driver does not have the function.
    fn real(self) -> Option<*mut c_void> {
        let slot = &REAL[self as usize];
        let known = slot.load(Ordering::Acquire);
        if !known.is_null() {
            return Some(known);
        }
        let (_, name) = Self::ALL[self as usize];
        // The driver that the program is linked with, or one that is loaded by now.
        // SAFETY: looks up a symbol in loaded libraries, which stay loaded.
        let found = unsafe {
            let next = real::dlsym(libc::RTLD_NEXT, name);
            match next.is_null() {
                false => next,
                true => {
                    let is_nvrtc = name.to_bytes().starts_with(b"nvrtc");
                    let driver = if is_nvrtc { nvrtc::loaded() } else { Some(c"libcuda.so.1".to_owned()) };
                    let library = driver.map_or(null_mut(), |path| {
                        libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD)
                    });
                    if library.is_null() { null_mut() } else { real::dlsym(library, name) }
                }
            }
        };
        if found.is_null() || found == self.ours() {
            return None;
        }
        slot.store(found, Ordering::Release);
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_are_found_by_their_whole_names_and_have_no_driver_here() {
        assert_eq!(named(b"cuLaunchKernel"), Some(Hook::cuLaunchKernel));
        assert_eq!(named(b"cuLaunchKerne"), None);
        for (index, (hook, name)) in Hook::ALL.iter().enumerate() {
            assert_eq!((*hook as usize, named(name.to_bytes())), (index, Some(*hook)));
        }
    }
}
