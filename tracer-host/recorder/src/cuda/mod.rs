//! A GPU through the CUDA driver, which is loaded at run time.
//!
//! Memory comes from plain allocations, never managed ones. A device uses one stream, the default one or its
//! caller's, and every call of [`Device`](crate::Device) has finished when it returns. What is done while
//! a kernel runs uses streams of its own ([`live`]), or another device of the same context.

mod clocks;
mod code;
mod device;
mod driver;
mod encoding;
mod foreign;
mod gather;
mod launch;
mod live;
mod pinned;
mod room;
mod staging;

use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use cudarc::driver::{result, sys};
use warptrace_abi::pool::Claims;
use warptrace_format::file::DeviceInfo;

pub use self::clocks::CLOCKS_PTX;
use self::clocks::Clocks;
use self::code::Code;
pub use self::code::{MARKS_VARIABLE, REGISTERS_VARIABLE, traced_registers};
use self::driver::{Called, Waits};
use self::encoding::Encoding;
pub use self::encoding::encoder_ptx;
pub use self::foreign::{Bracket, Brackets};
use self::gather::Gather;
use self::live::Live;
use self::pinned::Pinned;
use self::staging::Staging;
use crate::{AddressMap, DeviceError};

/// One GPU of this machine.
pub struct CudaDevice {
    ordinal: sys::CUdevice,
    context: sys::CUcontext,
    /// Whether `context` is the device's primary one, and retained.
    retained: bool,
    /// What kernels run on.
    stream: sys::CUstream,
    /// Whether `stream` is made, and to be destroyed, here.
    owns_stream: bool,
    info: DeviceInfo,
    multiprocessors: u32,
    /// Threads that a multiprocessor holds.
    threads_each: u32,
    memory: u64,
    /// 90 for `sm_90`.
    architecture: u32,
    code: Code,
    /// Loaded with the first traced kernel.
    encoding: Option<Encoding>,
    allocations: AddressMap<()>,
    /// Another one's that this one may use, too.
    shared: AddressMap<()>,
    /// What of the host's memory kernels use.
    pinned: Pinned,
    staging: Option<Staging>,
    gather: Option<Gather>,
    /// Made when the device's clocks are first asked for.
    clocks: Option<Clocks>,
    /// Made with the first streamed kernel.
    live: Option<Live>,
    /// Whether another program loads and launches the kernels.
    is_foreign: bool,
    /// How streams are waited for.
    waits: Waits,
    /// What ends the wait for kernels.
    interrupt: Option<Arc<AtomicBool>>,
    /// The stream for reads beside what waits, or null; and whether it is in the place of `stream`.
    beside: sys::CUstream,
    reads_beside: bool,
    /// Pinned [`Claims`], where each traced launch leaves the pool's counters.
    claims: *mut c_void,
    start: sys::CUevent,
    end: sys::CUevent,
    /// After the copy of the pool's counter.
    counted: sys::CUevent,
}

// SAFETY: it has one user at a time, and each call makes its context the thread's own.
unsafe impl Send for CudaDevice {}

impl std::fmt::Debug for CudaDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CudaDevice").field("info", &self.info).finish_non_exhaustive()
    }
}

/// The driver's library, on Linux and on Windows.
const DRIVER_LIBRARIES: [&str; 3] = ["libcuda.so.1", "libcuda.so", "nvcuda.dll"];

/// Loads the driver and returns how many devices there are.
fn count_devices() -> Result<u32, DeviceError> {
    // cudarc has no error for it: it stops. And where it links the driver, it does not say that it is there.
    // SAFETY: the driver's own library, which a program that uses a GPU loads anyway.
    if !DRIVER_LIBRARIES.iter().any(|name| unsafe { libloading::Library::new(*name) }.is_ok()) {
        return Err(DeviceError::NoDriver);
    }
    result::init().called("cuInit")?;
    Ok(u32::try_from(result::device::get_count().called("cuDeviceGetCount")?).unwrap_or(0))
}

/// The oldest driver that has every function in use: `cuEventElapsedTime_v2` came with CUDA 12.8.
const OLDEST_DRIVER: i32 = 12_080;

fn driver_number() -> Result<i32, DeviceError> {
    let mut version = 0;
    // SAFETY: writes one integer.
    unsafe { sys::cuDriverGetVersion(&mut version) }.result().called("cuDriverGetVersion")?;
    Ok(version)
}

fn version_text(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

fn driver_version() -> Result<String, DeviceError> {
    Ok(format!("CUDA {}", version_text(driver_number()?)))
}

fn attribute(device: sys::CUdevice, attribute: sys::CUdevice_attribute) -> Result<u32, DeviceError> {
    // SAFETY: the device came from the driver.
    let value = unsafe { result::device::get_attribute(device, attribute) }.called("cuDeviceGetAttribute")?;
    Ok(u32::try_from(value).unwrap_or(0))
}

/// Checks that the driver takes what is assembled here.
fn check_driver() -> Result<(), DeviceError> {
    let version = driver_number()?;
    if version < OLDEST_DRIVER {
        let (found, needed) = (version_text(version), version_text(OLDEST_DRIVER));
        return Err(DeviceError::OldDriver { found, needed });
    }
    Ok(())
}

fn describe(device: sys::CUdevice) -> Result<DeviceInfo, DeviceError> {
    use sys::CUdevice_attribute as A;
    let name = result::device::get_name(device).called("cuDeviceGetName")?;
    let major = attribute(device, A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = attribute(device, A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    Ok(DeviceInfo::cuda(name, (major, minor), driver_version()?))
}

/// The device's own name, if the driver tells it. A part of a GPU has one of its own, which only the second
/// version of the call gives; the first one gives that of the GPU.
fn uuid(device: sys::CUdevice) -> Option<String> {
    type Ask = unsafe extern "C" fn(*mut sys::CUuuid, sys::CUdevice) -> sys::CUresult;
    let ask = |call: &dyn Fn(*mut sys::CUuuid) -> sys::CUresult| {
        let mut uuid = sys::CUuuid { bytes: [0; 16] };
        call(&raw mut uuid).result().ok()?;
        Some(uuid.bytes.map(c_char::cast_unsigned))
    };
    // SAFETY: writes 16 bytes; the device came from the driver.
    let own = ask(&|uuid| unsafe { sys::cuDeviceGetUuid_v2(uuid, device) })?;
    // Bindings of CUDA 13 have the second version alone.
    // SAFETY: the driver's own library, which is loaded.
    let driver = DRIVER_LIBRARIES.iter().find_map(|name| unsafe { libloading::Library::new(*name) }.ok())?;
    // SAFETY: the driver's function has this type; it writes 16 bytes.
    let whole = unsafe { driver.get::<Ask>(c"cuDeviceGetUuid".to_bytes_with_nul()) };
    let whole = whole.ok().and_then(|call| {
        // SAFETY: as above.
        ask(&|uuid| unsafe { call(uuid, device) })
    });
    let kind = if whole.is_some_and(|whole| whole != own) { "MIG" } else { "GPU" };
    let digits = own.map(|byte| format!("{byte:02x}")).concat();
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &digits[part]);
    Some(format!("{kind}-{}", parts.join("-")))
}

impl CudaDevice {
    /// The GPUs of this machine, in the driver's order.
    ///
    /// # Errors
    /// [`DeviceError::NoDriver`] without a driver, or the driver's own error.
    pub fn list() -> Result<Vec<DeviceInfo>, DeviceError> {
        (0..count_devices()?)
            .map(|ordinal| describe(result::device::get(ordinal as i32).called("cuDeviceGet")?))
            .collect()
    }

    /// Opens GPU `ordinal` with the code that the binary carries, in its primary context.
    ///
    /// # Errors
    /// Without a driver, without such a device, without code, or if the driver fails.
    pub fn open(ordinal: u32, ptx: &'static str) -> Result<Self, DeviceError> {
        if ptx.is_empty() && count_devices().is_ok_and(|count| ordinal < count) {
            return Err(DeviceError::no_device_code(None));
        }
        Self::open_with(ordinal, ptx)
    }

    /// Opens GPU `ordinal`; [`Device::prepare`](crate::Device::prepare) gives it kernels.
    ///
    /// # Errors
    /// Without a driver, without such a device, or if the driver fails.
    pub fn open_empty(ordinal: u32) -> Result<Self, DeviceError> {
        Self::open_with(ordinal, "")
    }

    fn open_with(ordinal: u32, ptx: &'static str) -> Result<Self, DeviceError> {
        let count = count_devices()?;
        if ordinal >= count {
            return Err(DeviceError::NoSuchDevice { ordinal, count });
        }
        check_driver()?;
        let device = result::device::get(ordinal as i32).called("cuDeviceGet")?;
        // SAFETY: the device came from the driver; released in `drop`, or below.
        let context = unsafe { result::primary_ctx::retain(device) }.called("cuDevicePrimaryCtxRetain")?;
        Self::within(device, context, result::stream::null(), true, ptx).inspect_err(|_| {
            // SAFETY: it was retained above.
            let _ = unsafe { result::primary_ctx::release(device) };
        })
    }

    /// Uses a context and a stream of the caller's, as `CUcontext` and `CUstream` of the driver's interface;
    /// a null stream is the context's default one. Memory that the caller has allocated in the context can be
    /// given to kernels. `ptx` may be empty; [`Device::prepare`](crate::Device::prepare) gives the device
    /// kernels. While the stream is captured into a graph, launches are refused.
    ///
    /// # Errors
    /// Without a driver, or if the driver fails, as it does for a context that is none.
    ///
    /// # Safety
    /// Context and stream are the driver's, belong to each other, and outlive what is returned.
    pub unsafe fn adopt(
        context: *mut c_void,
        stream: *mut c_void,
        ptx: &'static str,
    ) -> Result<Self, DeviceError> {
        // SAFETY: the caller's promise.
        unsafe { Self::adopt_with(context, || Ok(stream.cast()), ptx) }
    }

    /// Uses a context of the caller's and a stream that `stream` makes in it.
    ///
    /// # Safety
    /// The context is the driver's, and outlives what is returned.
    unsafe fn adopt_with(
        context: *mut c_void,
        stream: impl FnOnce() -> Result<sys::CUstream, DeviceError>,
        ptx: &'static str,
    ) -> Result<Self, DeviceError> {
        count_devices()?;
        check_driver()?;
        let context: sys::CUcontext = context.cast();
        // SAFETY: the caller's promise.
        unsafe { result::ctx::set_current(context) }.called("cuCtxSetCurrent")?;
        let mut device = 0;
        // SAFETY: asks for the device of the context that is current.
        unsafe { sys::cuCtxGetDevice(&raw mut device) }.result().called("cuCtxGetDevice")?;
        Self::within(device, context, stream()?, false, ptx)
    }

    fn within(
        device: sys::CUdevice,
        context: sys::CUcontext,
        stream: sys::CUstream,
        retained: bool,
        ptx: &'static str,
    ) -> Result<Self, DeviceError> {
        use sys::CUdevice_attribute as A;
        let info = describe(device)?;
        let architecture = 10 * attribute(device, A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?
            + attribute(device, A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        // SAFETY: the context is alive.
        unsafe { result::ctx::set_current(context) }.called("cuCtxSetCurrent")?;
        let event = || result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT).called("cuEventCreate");
        Ok(Self {
            ordinal: device,
            context,
            retained,
            stream,
            owns_stream: false,
            info,
            multiprocessors: attribute(device, A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            threads_each: attribute(device, A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
            // SAFETY: the device came from the driver.
            memory: unsafe { result::device::total_mem(device) }.called("cuDeviceTotalMem")? as u64,
            architecture,
            code: Code::new(ptx, architecture),
            encoding: None,
            allocations: AddressMap::default(),
            shared: AddressMap::default(),
            pinned: Pinned::default(),
            staging: None,
            gather: None,
            clocks: None,
            live: None,
            is_foreign: false,
            waits: Waits::default(),
            interrupt: None,
            beside: std::ptr::null_mut(),
            reads_beside: false,
            // SAFETY: a plain pinned allocation, freed in `drop`.
            claims: unsafe { result::malloc_host(size_of::<Claims>(), 0) }.called("cuMemHostAlloc")?,
            start: event()?,
            end: event()?,
            counted: event()?,
        })
    }

    /// Makes the device's context the thread's current one: another device may have taken its place since.
    fn enter(&self) -> Result<(), DeviceError> {
        // SAFETY: the context is alive as long as `self`.
        unsafe { result::ctx::set_current(self.context) }.called("cuCtxSetCurrent")
    }

    fn check_inside(&self, address: u64, bytes: u64) -> Result<(), DeviceError> {
        if self.pinned.holds(address, bytes) || self.shared.around(address, bytes).is_some() {
            return Ok(());
        }
        live::check_inside(&self.allocations, address, bytes)
    }

    /// Waits for what was given to the stream.
    fn finish(&self) -> Result<(), DeviceError> {
        // SAFETY: the stream is alive.
        unsafe { self.waits.wait(self.stream) }
    }
}

impl Drop for CudaDevice {
    fn drop(&mut self) {
        // Errors have nowhere to go here; after a failed kernel every one of these calls fails, harmlessly.
        let _ = self.enter();
        self.staging = None;
        self.gather = None;
        self.clocks = None;
        self.live = None;
        self.pinned = Pinned::default();
        for (address, ..) in self.allocations.iter() {
            // SAFETY: allocated here, and freed only once.
            let _ = unsafe { result::free_sync(address) };
        }
        // SAFETY: made in `open` and in `module`, used by nothing else.
        unsafe {
            self.code.unload();
            if let Some(encoding) = &self.encoding {
                encoding.unload();
            }
            let _ = result::event::destroy(self.start);
            let _ = result::event::destroy(self.end);
            let _ = result::event::destroy(self.counted);
            let _ = result::free_host(self.claims);
            if self.owns_stream {
                let _ = result::stream::destroy(self.stream);
            }
            if !self.beside.is_null() {
                let _ = result::stream::destroy(self.beside);
            }
            if self.retained {
                let _ = result::primary_ctx::release(self.ordinal);
            }
        }
    }
}
