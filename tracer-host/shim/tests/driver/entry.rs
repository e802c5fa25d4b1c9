//! The driver's entry points.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::cubin;
use crate::fatbin;
use crate::graphs::{self, Node, Parameters};
use crate::launch::{self, FAILED};
use crate::memory;
use crate::modules::{self, Function, Image, say};
use crate::streams::{self, Copy};

const OK: u32 = 0;
const INVALID: u32 = 1;
const OUT_OF_MEMORY: u32 = 2;
const NO_CONTEXT: u32 = 201;
const NO_SYMBOL: u32 = 500;

const NOT_READY: u32 = 600;

/// The time at which each recorded event is ready, by handle.
static READY: Mutex<BTreeMap<usize, Instant>> = Mutex::new(BTreeMap::new());

/// Milliseconds from the record of an event until it is ready: simulates long kernels.
fn slowness() -> u64 {
    std::env::var("TEST_DRIVER_MILLISECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The error of a failed kernel, which every later call returns.
static STICKY: AtomicU32 = AtomicU32::new(OK);
static HANDLES: AtomicU64 = AtomicU64::new(0x5000);
/// Handle of the first device's primary context, and the distance between handles of devices.
const CONTEXT: usize = 0x7000;
const CONTEXT_BYTES: usize = 16;
static RETAINED: [AtomicU32; 16] = [const { AtomicU32::new(0) }; 16];
static OWNERS: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());
const INVALID_HANDLE: u32 = 400;
const DEVICEMAP: c_uint = 2;

fn devices() -> c_int {
    std::env::var("TEST_DRIVER_DEVICES").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

fn context_of(device: c_int) -> *mut c_void {
    std::ptr::without_provenance_mut(CONTEXT + CONTEXT_BYTES * device as usize)
}

fn owned(handle: *mut c_void) -> *mut c_void {
    OWNERS.lock().expect("nothing panics with it").insert(handle.addr(), CURRENT.get().addr());
    handle
}

/// Returns true if a handle belongs to another context than the current one.
fn is_foreign(handle: usize) -> bool {
    let owners = OWNERS.lock().expect("nothing panics with it");
    owners.get(&handle).is_some_and(|owner| *owner != CURRENT.get().addr())
}

thread_local! {
    static CURRENT: Cell<*mut c_void> = const { Cell::new(null_mut()) };
}

fn new_handle() -> *mut c_void {
    std::ptr::without_provenance_mut(HANDLES.fetch_add(16, Ordering::Relaxed) as usize)
}

fn sticky() -> u32 {
    STICKY.load(Ordering::Relaxed)
}

macro_rules! entry_points {
    ($(fn $name:ident($($arg:ident: $ty:ty),*) $body:block)*) => {
        $(
            /// The driver's function of this name.
            /// # Safety
            /// Same as the driver's function.
            #[unsafe(no_mangle)]
            #[allow(non_snake_case, unused_unsafe, clippy::too_many_arguments, reason = "the driver's names")]
            pub unsafe extern "C" fn $name($($arg: $ty),*) -> u32 {
                // SAFETY: the caller follows the driver's interface.
                unsafe { $body }
            }
        )*

        fn address_of(name: &str) -> *mut c_void {
            match name {
                $(stringify!($name) => $name as *const () as *mut c_void,)*
                _ => null_mut(),
            }
        }
    };
}

type Handle = *mut c_void;
type List = *mut *mut c_void;

unsafe fn name_of<'a>(name: *const c_char) -> &'a str {
    // SAFETY: the caller passes a C string.
    unsafe { CStr::from_ptr(name) }.to_str().unwrap_or_default()
}

/// Reads an image: a text up to its zero byte, or as many bytes as its header says.
unsafe fn image_at(image: *const c_void) -> &'static Image {
    // SAFETY: the caller passes an image.
    unsafe {
        let mut image = image;
        if image.cast::<u32>().read_unaligned() == fatbin::WRAPPER_MAGIC {
            image = image.cast::<*const c_void>().add(1).read_unaligned();
        }
        let bytes = match image.cast::<u32>().read_unaligned() {
            0xba55_ed50 => {
                let bytes = image.cast::<u64>().add(1).read_unaligned() as usize + 16;
                std::slice::from_raw_parts(image.cast::<u8>(), bytes)
            }
            0x464c_457f => cubin::at(image).unwrap_or(b"\x7fELF"),
            _ => CStr::from_ptr(image.cast()).to_bytes(),
        };
        modules::load(bytes)
    }
}

unsafe fn load_to(to: *mut Handle, image: *const c_void) -> u32 {
    if CURRENT.get().is_null() {
        return NO_CONTEXT;
    }
    // SAFETY: the caller follows the driver's interface.
    unsafe {
        if image.is_null() {
            return INVALID;
        }
        let found = image_at(image);
        let is_refused = std::env::var_os("TEST_DRIVER_REFUSES").is_some() && !found.is_code;
        if is_refused && found.text.contains("$traced") {
            return 218;
        }
        if found.is_too_new {
            return 222;
        }
        *to = owned(std::ptr::from_ref(found).cast_mut().cast());
    }
    OK
}

unsafe fn function_to(to: *mut Handle, image: Handle, name: *const c_char) -> u32 {
    // SAFETY: the caller follows the driver's interface.
    unsafe {
        let image: &'static Image = &*image.cast();
        // With this variable, the driver refuses traced PTX at look-up, as with lazy loading.
        let is_late = std::env::var_os("TEST_DRIVER_REFUSES_LATE").is_some() && !image.is_code;
        if is_late && image.text.contains("$traced") {
            return 218;
        }
        match modules::function(image, name_of(name)) {
            Some(found) => {
                *to = std::ptr::from_ref(found).cast_mut().cast();
                OK
            }
            None => NO_SYMBOL,
        }
    }
}

unsafe fn launched(
    function: Handle,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    (shared, stream): (c_uint, Handle),
    parameters: List,
    extra: List,
) -> u32 {
    if sticky() != OK {
        return sticky();
    }
    // SAFETY: the caller follows the driver's interface.
    let image = unsafe { std::ptr::from_ref((*function.cast::<Function>()).image) };
    if is_foreign(image.addr()) {
        return INVALID_HANDLE;
    }
    // SAFETY: the caller follows the driver's interface.
    let answer = unsafe {
        launch::launch(&*function.cast::<Function>(), grid, block, (shared, stream.addr()), parameters, extra)
    };
    if answer == FAILED {
        // A kernel fails when it runs. Its launch succeeds.
        STICKY.store(FAILED, Ordering::Relaxed);
        return OK;
    }
    answer
}

entry_points! {
    fn cuInit(_flags: c_uint) { OK }
    fn cuDriverGetVersion(version: *mut c_int) { *version = 13_000; OK }
    fn cuDeviceGetCount(count: *mut c_int) { *count = devices(); OK }
    fn cuDeviceGet(device: *mut c_int, ordinal: c_int) { *device = ordinal; OK }
    fn cuDeviceGetName(name: *mut c_char, length: c_int, _device: c_int) {
        let text = c"Test driver".to_bytes_with_nul();
        name.cast::<u8>().copy_from(text.as_ptr(), text.len().min(length as usize));
        OK
    }
    fn cuDeviceGetUuid(uuid: *mut [u8; 16], device: c_int) {
        *uuid = std::array::from_fn(|at| if at == 15 { device as u8 } else { 0xa0 + at as u8 });
        OK
    }
    fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: c_int) {
        let answer = cuDeviceGetUuid(uuid, device);
        // The UUID of a part of a GPU differs from the GPU's.
        if std::env::var_os("TEST_DRIVER_MIG").is_some() { (*uuid)[0] = 0xff; }
        answer
    }
    fn cuDeviceTotalMem_v2(bytes: *mut usize, _device: c_int) { *bytes = 1 << 30; OK }
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) { (*free, *total) = (1 << 28, 1 << 30); OK }
    fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, _device: c_int) {
        *value = match attribute { 75 => 9, 76 => 0, 88 => 0, 16 => 4, 39 => 2048, _ => 1 };
        OK
    }
    fn cuDevicePrimaryCtxRetain(context: *mut Handle, device: c_int) {
        RETAINED[device as usize].fetch_add(1, Ordering::Relaxed);
        *context = context_of(device);
        OK
    }
    fn cuDevicePrimaryCtxRelease_v2(device: c_int) {
        if RETAINED[device as usize].fetch_sub(1, Ordering::Relaxed) == 1 { say("context ended"); }
        OK
    }
    fn cuDevicePrimaryCtxReset_v2(device: c_int) {
        RETAINED[device as usize].store(0, Ordering::Relaxed);
        say("context ended");
        OK
    }
    fn cuDevicePrimaryCtxGetState(device: c_int, flags: *mut c_uint, active: *mut c_int) {
        (*flags, *active) = (0, c_int::from(RETAINED[device as usize].load(Ordering::Relaxed) > 0));
        OK
    }
    fn cuCtxSetCurrent(context: Handle) { CURRENT.set(context); OK }
    fn cuCtxGetCurrent(context: *mut Handle) { *context = CURRENT.get(); OK }
    fn cuCtxGetDevice(device: *mut c_int) {
        if CURRENT.get().is_null() { return NO_CONTEXT; }
        *device = ((CURRENT.get().addr() - CONTEXT) / CONTEXT_BYTES) as c_int;
        OK
    }
    fn cuCtxSynchronize() {
        while std::env::var_os("TEST_DRIVER_HANGS").is_some() { std::thread::park(); }
        launch::wait_for_kernels(None);
        sticky()
    }
    fn cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) {
        (*least, *greatest) = (0, -1);
        OK
    }
    fn cuMemAlloc_v2(address: *mut u64, bytes: usize) {
        *address = memory::allocate(bytes);
        if *address == 0 { OUT_OF_MEMORY } else { OK }
    }
    fn cuMemAllocManaged(address: *mut u64, bytes: usize, _flags: c_uint) { cuMemAlloc_v2(address, bytes) }
    fn cuMemAllocPitch_v2(address: *mut u64, pitch: *mut usize, width: usize, height: usize, _element: c_uint) {
        *pitch = width.next_multiple_of(512);
        cuMemAlloc_v2(address, *pitch * height)
    }
    fn cuMemAllocAsync(address: *mut u64, bytes: usize, _stream: Handle) { cuMemAlloc_v2(address, bytes) }
    fn cuMemFreeAsync(address: u64, _stream: Handle) { cuMemFree_v2(address) }
    fn cuModuleGetGlobal_v2(address: *mut u64, bytes: *mut usize, module: Handle, name: *const c_char) {
        let image: &'static Image = &*module.cast();
        let Some((at, length)) = image.program.as_ref().and_then(|program| program.variable(name_of(name))) else {
            return NO_SYMBOL;
        };
        if !address.is_null() { *address = at; }
        if !bytes.is_null() { *bytes = length; }
        OK
    }
    fn cuMemFree_v2(address: u64) { if memory::free(address) { OK } else { INVALID } }
    fn cuMemHostAlloc(address: *mut Handle, bytes: usize, flags: c_uint) {
        let is_for_kernels = flags & DEVICEMAP != 0;
        *address = if is_for_kernels { memory::allocate(bytes) } else { memory::allocate_pinned(bytes) } as Handle;
        if (*address).is_null() { OUT_OF_MEMORY } else { OK }
    }
    fn cuMemFreeHost(address: Handle) { if memory::free(address as u64) { OK } else { INVALID } }
    fn cuMemHostRegister_v2(address: Handle, bytes: usize, _flags: c_uint) {
        if memory::register(address as u64, bytes) { OK } else { INVALID }
    }
    fn cuMemHostUnregister(address: Handle) { if memory::unregister(address as u64) { OK } else { INVALID } }
    fn cuMemcpyHtoD_v2(to: u64, from: *const c_void, bytes: usize) {
        (to as *mut u8).copy_from(from.cast(), bytes);
        sticky()
    }
    fn cuMemcpyDtoH_v2(to: *mut c_void, from: u64, bytes: usize) {
        to.cast::<u8>().copy_from(from as *const u8, bytes);
        sticky()
    }
    fn cuMemcpyHtoDAsync_v2(to: u64, from: *const c_void, bytes: usize, stream: Handle) {
        let bytes = std::slice::from_raw_parts(from.cast::<u8>(), bytes).to_vec();
        streams::give(stream.addr(), Copy::ToDevice { to, bytes });
        sticky()
    }
    fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: u64, bytes: usize, stream: Handle) {
        if memory::is_registered(to as u64, bytes) { say(&format!("copy {bytes} bytes into page-locked memory")); }
        streams::give(stream.addr(), Copy::ToHost { to: to as usize, from, bytes });
        sticky()
    }
    fn cuMemsetD8Async(to: u64, value: u8, bytes: usize, stream: Handle) {
        streams::wait(stream.addr());
        (to as *mut u8).write_bytes(value, bytes);
        sticky()
    }
    fn cuStreamCreate(stream: *mut Handle, _flags: c_uint) { *stream = owned(new_handle()); sticky() }
    fn cuStreamCreateWithPriority(stream: *mut Handle, _flags: c_uint, _priority: c_int) {
        *stream = owned(new_handle());
        sticky()
    }
    fn cuStreamDestroy_v2(_stream: Handle) { OK }
    fn cuStreamQuery(stream: Handle) {
        if launch::is_stuck(stream.addr()) { return NOT_READY; }
        streams::wait(stream.addr());
        sticky()
    }
    fn cuStreamSynchronize(stream: Handle) {
        launch::wait_for_kernels(Some(stream.addr()));
        streams::wait(stream.addr());
        sticky()
    }
    fn cuStreamIsCapturing(stream: Handle, status: *mut c_uint) {
        // A stream that tests use as a captured stream.
        *status = c_uint::from(stream.addr() == 0x77);
        OK
    }
    fn cuThreadExchangeStreamCaptureMode(mode: *mut c_uint) { *mode = 0; OK }
    fn cuEventCreate(event: *mut Handle, _flags: c_uint) { *event = owned(new_handle()); sticky() }
    fn cuEventDestroy_v2(_event: Handle) { OK }
    fn cuEventRecord(event: Handle, stream: Handle) {
        if is_foreign(event.addr()) || is_foreign(stream.addr()) { return INVALID_HANDLE; }
        streams::record(event as usize, stream.addr());
        // An event after a kernel that never ends is never ready.
        let milliseconds = if launch::is_stuck(stream.addr()) { 1 << 40 } else { slowness() };
        let ready = Instant::now() + Duration::from_millis(milliseconds);
        READY.lock().expect("nothing panics with it").insert(event as usize, ready);
        sticky()
    }
    fn cuEventSynchronize(event: Handle) {
        streams::wait_for(event as usize);
        sticky()
    }
    fn cuEventQuery(event: Handle) {
        let ready = READY.lock().expect("nothing panics with it").get(&(event as usize)).copied();
        if ready.is_some_and(|ready| Instant::now() < ready) { NOT_READY } else { sticky() }
    }
    fn cuEventElapsedTime_v2(milliseconds: *mut f32, _start: Handle, _end: Handle) {
        *milliseconds = 1.0;
        sticky()
    }
    fn cuModuleLoadData(module: *mut Handle, image: *const c_void) { load_to(module, image) }
    fn cuModuleLoadDataEx(
        module: *mut Handle, image: *const c_void, _count: c_uint, _options: *mut c_int, _values: List
    ) { load_to(module, image) }
    fn cuModuleLoad(module: *mut Handle, path: *const c_char) {
        let Ok(mut bytes) = std::fs::read(name_of(path)) else { return 301 };
        bytes.push(0);
        load_to(module, bytes.as_ptr().cast())
    }
    fn cuCtxGetLimit(bytes: *mut usize, _limit: c_uint) { *bytes = 1024; sticky() }
    fn cuCtxSetLimit(_limit: c_uint, _bytes: usize) { sticky() }
    fn cuModuleGetLoadingMode(mode: *mut c_int) {
        let is_eager = std::env::var("CUDA_MODULE_LOADING").is_ok_and(|mode| mode == "EAGER");
        *mode = if is_eager { 1 } else { 2 };
        OK
    }
    fn cuModuleUnload(module: Handle) {
        let image: &'static Image = &*module.cast();
        say(&format!("unload {}", modules::kernels(image).join(" ")));
        OK
    }
    fn cuModuleGetFunction(function: *mut Handle, module: Handle, name: *const c_char) {
        function_to(function, module, name)
    }
    fn cuModuleGetFunctionCount(count: *mut c_uint, module: Handle) {
        *count = modules::kernels(&*module.cast()).len() as c_uint;
        OK
    }
    fn cuModuleEnumerateFunctions(functions: *mut Handle, count: c_uint, module: Handle) {
        let image: &'static Image = &*module.cast();
        for (at, name) in modules::kernels(image).iter().take(count as usize).enumerate() {
            let Some(found) = modules::function(image, name) else { return NO_SYMBOL };
            *functions.add(at) = std::ptr::from_ref(found).cast_mut().cast();
        }
        OK
    }
    fn cuFuncGetName(name: *mut *const c_char, function: Handle) {
        *name = (*function.cast::<Function>()).c_name.as_ptr();
        OK
    }
    fn cuKernelGetName(name: *mut *const c_char, kernel: Handle) { cuFuncGetName(name, kernel) }
    fn cuLibraryLoadData(
        library: *mut Handle, image: *const c_void, _options: *mut c_int, _values: List, _count: c_uint,
        _library_options: *mut c_int, _library_values: List, _library_count: c_uint
    ) {
        let answer = load_to(library, image);
        // A library belongs to all contexts.
        if answer == OK { OWNERS.lock().expect("nothing panics with it").remove(&(*library).addr()); }
        answer
    }
    fn cuLibraryUnload(_library: Handle) { OK }
    fn cuLibraryGetKernel(kernel: *mut Handle, library: Handle, name: *const c_char) {
        function_to(kernel, library, name)
    }
    fn cuLibraryGetModule(module: *mut Handle, library: Handle) { *module = library; OK }
    fn cuKernelGetFunction(function: *mut Handle, kernel: Handle) { *function = kernel; OK }
    fn cuFuncSetAttribute(function: Handle, attribute: c_int, value: c_int) {
        let function = &*function.cast::<Function>();
        if attribute == 8 {
            if value > 227 << 10 { return INVALID; }
            *function.max_dynamic_shared.lock().expect("nothing panics with it") = value;
            say(&format!("shared {value} of {}", function.name));
        } else {
            say(&format!("attribute {attribute} {value} of {}", function.name));
        }
        OK
    }
    fn cuFuncGetAttribute(value: *mut c_int, attribute: c_int, function: Handle) {
        let allowed = (*function.cast::<Function>()).max_dynamic_shared.lock().expect("nothing panics with it");
        *value = if attribute == 8 { *allowed } else { 32 };
        OK
    }
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: *mut c_int, function: Handle, _threads: c_int, _shared: usize
    ) {
        // Fewer blocks of copies fit, unless the copy has few registers.
        let function = &*function.cast::<Function>();
        let is_large = function.name.ends_with("$traced") && !function.image.text.contains(".maxnreg 32");
        *blocks = if is_large && std::env::var_os("TEST_DRIVER_LARGE").is_some() { 1 } else { 2 };
        OK
    }
    fn cuLaunchKernel(
        function: Handle, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint,
        shared: c_uint, stream: Handle, parameters: List, extra: List
    ) { launched(function, [gx, gy, gz], [bx, by, bz], (shared, stream), parameters, extra) }
    fn cuLaunchKernel_ptsz(
        function: Handle, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint,
        shared: c_uint, stream: Handle, parameters: List, extra: List
    ) { launched(function, [gx, gy, gz], [bx, by, bz], (shared, stream), parameters, extra) }
    fn cuLaunchCooperativeKernel(
        function: Handle, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint,
        shared: c_uint, stream: Handle, parameters: List
    ) { launched(function, [gx, gy, gz], [bx, by, bz], (shared, stream), parameters, null_mut()) }
    fn cuLaunchKernelEx(config: *const [c_uint; 7], function: Handle, parameters: List, extra: List) {
        let [gx, gy, gz, bx, by, bz, shared] = *config;
        launched(function, [gx, gy, gz], [bx, by, bz], (shared, null_mut()), parameters, extra)
    }
    fn cuGraphCreate(graph: *mut Handle, _flags: c_uint) { *graph = graphs::with(|all| all.create()); OK }
    fn cuGraphAddKernelNode_v2(
        node: *mut Handle, graph: Handle, _dependencies: *const Handle, _count: usize, parameters: *const Parameters
    ) {
        let copied = Node::new(&*parameters);
        graphs::with(|all| all.add(graph, copied)).map_or(INVALID, |handle| { *node = handle; OK })
    }
    fn cuGraphGetNodes(graph: Handle, nodes: *mut Handle, count: *mut usize) {
        graphs::with(|all| {
            let Some(found) = all.nodes(graph) else { return INVALID };
            if !nodes.is_null() {
                for (at, handle) in found.iter().take(*count).enumerate() { *nodes.add(at) = *handle as Handle; }
            }
            *count = found.len();
            OK
        })
    }
    fn cuGraphNodeGetType(_node: Handle, kind: *mut c_uint) { *kind = 0; OK }
    fn cuGraphKernelNodeGetParams_v2(node: Handle, parameters: *mut Parameters) {
        graphs::with(|all| all.parameters(node)).map_or(INVALID, |found| { *parameters = found; OK })
    }
    fn cuGraphKernelNodeGetAttribute(_node: Handle, _attribute: c_uint, value: *mut c_int) { *value = 0; OK }
    fn cuGraphInstantiateWithFlags(exec: *mut Handle, graph: Handle, _flags: u64) {
        graphs::with(|all| all.instantiate(graph)).map_or(INVALID, |handle| { *exec = handle; OK })
    }
    fn cuGraphExecKernelNodeSetParams_v2(exec: Handle, node: Handle, parameters: *const Parameters) {
        let copied = Node::new(&*parameters);
        graphs::with(|all| all.set(exec, node, copied)).map_or(INVALID, |()| OK)
    }
    fn cuGraphLaunch(exec: Handle, _stream: Handle) {
        let Some(nodes) = graphs::with(|all| all.executable(exec)) else { return INVALID };
        nodes.iter().map(|node| node.launch(launched)).find(|answer| *answer != OK).unwrap_or(OK)
    }
    fn cuGraphDestroy(graph: Handle) { graphs::with(|all| all.destroy(graph)).map_or(INVALID, |()| OK) }
    fn cuGraphExecDestroy(exec: Handle) {
        graphs::with(|all| all.destroy_executable(exec)).map_or(INVALID, |()| OK)
    }
    fn cuLinkCreate_v2(_count: c_uint, _options: *mut c_int, _values: List, link: *mut Handle) {
        *link = new_handle();
        OK
    }
    fn cuLinkAddData_v2(
        _link: Handle, _kind: c_int, _data: *mut c_void, _size: usize, _name: *const c_char, _count: c_uint,
        _options: *mut c_int, _values: List
    ) { OK }
    fn cuLinkComplete(_link: Handle, code: *mut Handle, size: *mut usize) {
        // Has as many bytes as an ELF header.
        static CODE: [u8; 64] = { let mut code = [0; 64]; code[0] = 0x7f; code[1] = b'E'; code[2] = b'L'; code[3] = b'F'; code };
        (*code, *size) = (CODE.as_ptr().cast_mut().cast(), CODE.len());
        OK
    }
    fn cuLinkDestroy(_link: Handle) { OK }
    fn cuGetErrorName(error: c_uint, text: *mut *const c_char) {
        *text = if error == FAILED { c"CUDA_ERROR_LAUNCH_FAILED" } else { c"CUDA_ERROR_OF_TEST" }.as_ptr();
        OK
    }
    fn cuGetErrorString(_error: c_uint, text: *mut *const c_char) { *text = c"as the test asks".as_ptr(); OK }
    fn cuGetProcAddress_v2(
        symbol: *const c_char, found: *mut Handle, version: c_int, flags: u64, status: *mut c_uint
    ) {
        let answer = cuGetProcAddress(symbol, found, version, flags);
        if !status.is_null() { *status = c_uint::from(answer != OK); }
        answer
    }
    fn cuGetProcAddress(symbol: *const c_char, found: *mut Handle, _version: c_int, flags: u64) {
        let name = name_of(symbol);
        let ends: &[&str] = if flags & 2 != 0 { &["_ptsz", "_v2", ""] } else { &["_v2", ""] };
        // Since CUDA 12 this name denotes the version with flags.
        let name = if name == "cuGraphInstantiate" { "cuGraphInstantiateWithFlags" } else { name };
        *found = ends.iter().map(|end| address_of(&format!("{name}{end}"))).find(|at| !at.is_null()).unwrap_or(null_mut());
        if (*found).is_null() { NO_SYMBOL } else { OK }
    }
}
