//! A GPU through the CUDA driver, which is loaded at run time.
//!
//! Device memory comes from plain allocations, not managed ones. A device uses one stream, the default stream
//! or its caller's, and every call of [`Device`](crate::Device) completes its work before it returns. Work
//! that runs next to a kernel uses separate streams ([`live`]), or a second device in the same context.

mod clocks;
mod code;
mod device;
mod driver;
mod encoding;
mod foreign;
mod gather;
mod launch;
mod live;
mod locked;
mod pinned;
mod room;
mod staging;

use std::ffi::c_void;
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
pub use self::foreign::{EndEvent, EndEvents};
use self::gather::Gather;
use self::live::Live;
use self::pinned::Pinned;
use self::staging::Staging;
use crate::{AddressMap, DeviceError};

/// A GPU of this machine.
pub struct CudaDevice {
    ordinal: sys::CUdevice,
    context: sys::CUcontext,
    /// Whether `context` is the device's retained primary context.
    retained: bool,
    stream: sys::CUstream,
    /// Whether `stream` was created here, and must be destroyed here.
    owns_stream: bool,
    info: DeviceInfo,
    multiprocessors: u32,
    /// Maximum resident threads of a multiprocessor.
    threads_each: u32,
    memory: u64,
    /// 90 for `sm_90`.
    architecture: u32,
    code: Code,
    encoding: Option<Encoding>,
    allocations: AddressMap<()>,
    /// Memory of another handle that this one may use.
    shared: AddressMap<()>,
    pinned: Pinned,
    staging: Staging,
    gather: Option<Gather>,
    clocks: Option<Clocks>,
    live: Option<Live>,
    /// Whether another program loads and launches the kernels.
    is_foreign: bool,
    waits: Waits,
    /// Ends the wait for kernels once it is set.
    interrupt: Option<Arc<AtomicBool>>,
    /// The stream for independent reads, or null. While `reads_beside` is set, it is swapped with `stream`.
    beside: sys::CUstream,
    reads_beside: bool,
    /// Pinned [`Claims`]: each traced launch copies the pool's counters here.
    claims: *mut c_void,
    start: sys::CUevent,
    end: sys::CUevent,
    /// Recorded after the copy of the counters.
    counted: sys::CUevent,
}

// SAFETY: a device has one user at a time, and each call makes its context current.
unsafe impl Send for CudaDevice {}

impl std::fmt::Debug for CudaDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CudaDevice").field("info", &self.info).finish_non_exhaustive()
    }
}

const DRIVER_LIBRARIES: [&str; 3] = ["libcuda.so.1", "libcuda.so", "nvcuda.dll"];

/// Loads the driver and returns the number of devices.
fn count_devices() -> Result<u32, DeviceError> {
    // cudarc panics without a driver, and cannot tell whether the driver is present if it links the driver.
    // SAFETY: loads the driver's library, as any CUDA program does.
    if !DRIVER_LIBRARIES.iter().any(|name| unsafe { libloading::Library::new(*name) }.is_ok()) {
        return Err(DeviceError::NoDriver);
    }
    result::init().called("cuInit")?;
    Ok(u32::try_from(result::device::get_count().called("cuDeviceGetCount")?).unwrap_or(0))
}

/// The oldest driver with every function used here: `cuEventElapsedTime_v2` needs CUDA 12.8.
const OLDEST_DRIVER: i32 = 12_080;

fn driver_number() -> Result<i32, DeviceError> {
    let mut version = 0;
    // SAFETY: the call writes one integer.
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
    // SAFETY: the device handle comes from the driver.
    let value = unsafe { result::device::get_attribute(device, attribute) }.called("cuDeviceGetAttribute")?;
    Ok(u32::try_from(value).unwrap_or(0))
}

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

/// Returns the device's UUID, if the driver reports it. Only version 2 of the call returns the UUID of a MIG
/// instance; version 1 returns the UUID of its GPU.
fn uuid(device: sys::CUdevice) -> Option<String> {
    type Ask = unsafe extern "C" fn(*mut sys::CUuuid, sys::CUdevice) -> sys::CUresult;
    let ask = |call: &dyn Fn(*mut sys::CUuuid) -> sys::CUresult| {
        let mut uuid = sys::CUuuid { bytes: [0; 16] };
        call(&raw mut uuid).result().ok()?;
        Some(uuid.bytes.map(|byte| byte.to_ne_bytes()[0]))
    };
    // SAFETY: the call writes 16 bytes; the device handle comes from the driver.
    let own = ask(&|uuid| unsafe { sys::cuDeviceGetUuid_v2(uuid, device) })?;
    // Bindings of CUDA 13 contain version 2 only.
    // SAFETY: loads the driver's library, which is loaded already.
    let driver = DRIVER_LIBRARIES.iter().find_map(|name| unsafe { libloading::Library::new(*name) }.ok())?;
    // SAFETY: the driver's function has this type; it writes 16 bytes.
    let whole = unsafe { driver.get::<Ask>(c"cuDeviceGetUuid".to_bytes_with_nul()) };
    let whole = whole.ok().and_then(|call| {
        // SAFETY: the call writes 16 bytes; the device handle comes from the driver.
        ask(&|uuid| unsafe { call(uuid, device) })
    });
    let kind = if whole.is_some_and(|whole| whole != own) { "MIG" } else { "GPU" };
    let digits = own.map(|byte| format!("{byte:02x}")).concat();
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &digits[part]);
    Some(format!("{kind}-{}", parts.join("-")))
}

impl CudaDevice {
    /// Returns the GPUs in the driver's order, [`DeviceError::NoDriver`], or the driver's error.
    pub fn list() -> Result<Vec<DeviceInfo>, DeviceError> {
        (0..count_devices()?)
            .map(|ordinal| describe(result::device::get(ordinal as i32).called("cuDeviceGet")?))
            .collect()
    }

    /// Opens GPU `ordinal` in its primary context, with the code embedded in the binary. Fails if no driver,
    /// device or code exists, or the driver is too old or fails.
    pub fn open(ordinal: u32, ptx: &'static str) -> Result<Self, DeviceError> {
        if ptx.is_empty() && count_devices().is_ok_and(|count| ordinal < count) {
            return Err(DeviceError::no_device_code(None));
        }
        Self::open_with(ordinal, ptx)
    }

    /// Opens GPU `ordinal` without code; [`Device::prepare`](crate::Device::prepare) adds kernels. Fails if
    /// no driver or device exists, or the driver is too old or fails.
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
        // SAFETY: the device handle comes from the driver. Released in `drop`, or below.
        let context = unsafe { result::primary_ctx::retain(device) }.called("cuDevicePrimaryCtxRetain")?;
        Self::within(device, context, result::stream::null(), true, ptx).inspect_err(|_| {
            // SAFETY: retained above.
            let _ = unsafe { result::primary_ctx::release(device) };
        })
    }

    /// Uses a context and a stream of the caller, given as `CUcontext` and `CUstream` of the driver API. A
    /// null stream is the context's default stream. Kernels can use memory that the caller has allocated in
    /// the context. `ptx` may be empty; [`Device::prepare`](crate::Device::prepare) adds kernels. Launches
    /// fail while the stream is captured into a graph. Fails if the driver is missing, too old, or fails.
    ///
    /// # Safety
    /// Context and stream come from the driver, belong together, and outlive the returned device.
    pub unsafe fn adopt(
        context: *mut c_void,
        stream: *mut c_void,
        ptx: &'static str,
    ) -> Result<Self, DeviceError> {
        // SAFETY: the caller guarantees context and stream.
        unsafe { Self::adopt_with(context, || Ok(stream.cast()), ptx) }
    }

    /// Uses a context of the caller and a stream that `stream` creates in it.
    ///
    /// # Safety
    /// The context comes from the driver and outlives the returned device.
    unsafe fn adopt_with(
        context: *mut c_void,
        stream: impl FnOnce() -> Result<sys::CUstream, DeviceError>,
        ptx: &'static str,
    ) -> Result<Self, DeviceError> {
        count_devices()?;
        check_driver()?;
        let context: sys::CUcontext = context.cast();
        // SAFETY: the caller guarantees the context.
        unsafe { result::ctx::set_current(context) }.called("cuCtxSetCurrent")?;
        let mut device = 0;
        // SAFETY: writes the device of the current context.
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
            // SAFETY: the device handle comes from the driver.
            memory: unsafe { result::device::total_mem(device) }.called("cuDeviceTotalMem")? as u64,
            architecture,
            code: Code::new(ptx, architecture),
            encoding: None,
            allocations: AddressMap::default(),
            shared: AddressMap::default(),
            pinned: Pinned::default(),
            staging: Staging::default(),
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

    /// Makes the device's context current: other code may have changed it.
    fn enter(&self) -> Result<(), DeviceError> {
        // SAFETY: the context outlives `self`.
        unsafe { result::ctx::set_current(self.context) }.called("cuCtxSetCurrent")
    }

    fn check_inside(&self, address: u64, bytes: u64) -> Result<(), DeviceError> {
        if self.pinned.holds(address, bytes) || self.shared.around(address, bytes).is_some() {
            return Ok(());
        }
        live::check_inside(&self.allocations, address, bytes)
    }

    fn finish(&self) -> Result<(), DeviceError> {
        // SAFETY: the stream is alive.
        unsafe { self.waits.wait(self.stream) }
    }
}

impl Drop for CudaDevice {
    fn drop(&mut self) {
        // `drop` ignores errors. After a failed kernel all of these calls fail, without harm.
        let _ = self.enter();
        self.staging = Staging::default();
        self.gather = None;
        self.clocks = None;
        self.live = None;
        self.pinned = Pinned::default();
        for (address, ..) in self.allocations.iter() {
            // SAFETY: allocated here, and freed only once.
            let _ = unsafe { result::free_sync(address) };
        }
        // SAFETY: created by this device and not used any more.
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
