//! Checks an adopted stream: reads of the device come after the copies in the stream, however large the
//! copies are.
#![expect(clippy::unwrap_used, reason = "a program of a test that cannot go on has failed")]

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::ptr::null_mut;

use warptrace_host::{CudaDevice, Device, MemoryType};

/// Returns a function of the driver.
///
/// # Safety
/// `T` is the type of the function.
unsafe fn function<T>(driver: *mut c_void, name: &CStr) -> T {
    // SAFETY: a loaded library and a C string.
    let found = unsafe { libc::dlsym(driver, name.as_ptr()) };
    assert!(!found.is_null(), "{name:?}");
    // SAFETY: guaranteed by the caller. Both are addresses.
    unsafe { std::mem::transmute_copy(&found) }
}

fn main() {
    // SAFETY: functions of the driver, called as its interface requires. All memory outlives its use.
    unsafe {
        let driver = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW);
        let (mut context, mut stream): (*mut c_void, *mut c_void) = (null_mut(), null_mut());
        let init: extern "C" fn(c_uint) -> u32 = function(driver, c"cuInit");
        let retain: extern "C" fn(*mut *mut c_void, c_int) -> u32 =
            function(driver, c"cuDevicePrimaryCtxRetain");
        let set: extern "C" fn(*mut c_void) -> u32 = function(driver, c"cuCtxSetCurrent");
        let create: extern "C" fn(*mut *mut c_void, c_uint) -> u32 = function(driver, c"cuStreamCreate");
        let copy: extern "C" fn(u64, *const u8, usize, *mut c_void) -> u32 =
            function(driver, c"cuMemcpyHtoDAsync_v2");
        let called = [init(0), retain(&raw mut context, 0), set(context), create(&raw mut stream, 1)];
        assert_eq!(called, [0; 4]);
        let mut device = CudaDevice::adopt(context, stream, "").unwrap();
        for bytes in [1 << 10, 1 << 20, 5 << 20, 9 << 20] {
            let memory = device.allocate(bytes as u64, MemoryType::Device).unwrap();
            for value in [1, 2] {
                let given = vec![value; bytes];
                assert_eq!(copy(memory.address, given.as_ptr(), bytes, stream), 0);
                let mut found = vec![0; bytes];
                device.read(memory.address, &mut found).unwrap();
                assert!(found == given, "{bytes} bytes were read before they were written");
            }
            device.free(memory).unwrap();
        }
    }
    println!("in order");
}
