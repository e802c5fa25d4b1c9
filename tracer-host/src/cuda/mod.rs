//! A GPU through the CUDA driver, which is loaded at run time.
//!
//! Memory comes from plain allocations, never managed ones; one stream (the default one) is used, and every
//! call of [`Device`] has finished when it returns.

mod code;
mod driver;
mod encoding;
mod gather;
mod live;
mod pinned;
mod staging;

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::time::{Duration, Instant};

use cudarc::driver::{result, sys};
use warptrace_device::KernelCall;
use warptrace_encode::{DEVICE_ECL, DEVICE_PREDICT};
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::DeviceInfo;
use warptrace_format::log::LoggedLaunch;
use warptrace_format::pool::{Claims, PoolDescriptor};

use self::code::{Code, Way};
pub use self::code::{MARKS_VARIABLE, traced_registers};
use self::driver::Called;
use self::encoding::Encoding;
use self::gather::Gather;
use self::live::{Beside, Live};
use self::pinned::Pinned;
use self::staging::Staging;
use crate::{
    Allocation, Device, DeviceError, Encoded, LaunchShape, LaunchTime, LiveMemory, Placement, Recording,
    Serve, Streaming, Tracing,
};

/// One GPU of this machine.
pub struct CudaDevice {
    ordinal: sys::CUdevice,
    context: sys::CUcontext,
    /// Whether `context` is the device's primary one, and retained.
    retained: bool,
    /// What kernels run on.
    stream: sys::CUstream,
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
    /// Length of each allocation, by address.
    allocations: BTreeMap<u64, u64>,
    /// What of the host's memory kernels use.
    pinned: Pinned,
    staging: Option<Staging>,
    gather: Option<Gather>,
    /// Made with the first streamed kernel.
    live: Option<Live>,
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

/// Loads the driver and answers how many devices there are.
fn count_devices() -> Result<u32, DeviceError> {
    // SAFETY: only looks whether the library can be loaded.
    if !unsafe { sys::is_culib_present() } {
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
            return Err(DeviceError::NoDeviceCode);
        }
        Self::open_with(ordinal, ptx)
    }

    /// Opens GPU `ordinal`; [`Device::add_code`] gives it kernels.
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
    /// given to kernels. `ptx` may be empty; [`Device::add_code`] gives the device kernels. While the stream is
    /// captured into a graph, launches are refused.
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
        count_devices()?;
        check_driver()?;
        let (context, stream): (sys::CUcontext, sys::CUstream) = (context.cast(), stream.cast());
        // SAFETY: the caller's promise.
        unsafe { result::ctx::set_current(context) }.called("cuCtxSetCurrent")?;
        let mut device = 0;
        // SAFETY: asks for the device of the context that is current.
        unsafe { sys::cuCtxGetDevice(&raw mut device) }.result().called("cuCtxGetDevice")?;
        Self::within(device, context, stream, false, ptx)
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
            info,
            multiprocessors: attribute(device, A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            threads_each: attribute(device, A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
            // SAFETY: the device came from the driver.
            memory: unsafe { result::device::total_mem(device) }.called("cuDeviceTotalMem")? as u64,
            architecture,
            code: Code::new(ptx, architecture),
            encoding: None,
            allocations: BTreeMap::new(),
            pinned: Pinned::default(),
            staging: None,
            gather: None,
            live: None,
            // SAFETY: a plain pinned allocation, freed in `drop`.
            claims: unsafe { result::malloc_host(size_of::<Claims>(), 0) }.called("cuMemHostAlloc")?,
            start: event()?,
            end: event()?,
            counted: event()?,
        })
    }

    /// Checks that the stream runs what it is given, and does not put it into a graph.
    fn check_no_capture(&self, kernel: &str) -> Result<(), DeviceError> {
        if self.stream.is_null() {
            return Ok(());
        }
        let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: the stream is alive.
        unsafe { sys::cuStreamIsCapturing(self.stream, &raw mut status) }
            .result()
            .called_for("cuStreamIsCapturing", kernel)?;
        if status == sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE {
            return Ok(());
        }
        let problem = format!(
            "the stream of kernel `{kernel}` is being captured into a graph, whose launches cannot be recorded: launch it outside of the capture"
        );
        Err(DeviceError::Unsupported { problem })
    }

    /// Makes the device's context the thread's current one: another device may have taken its place since.
    fn enter(&self) -> Result<(), DeviceError> {
        // SAFETY: the context is alive as long as `self`.
        unsafe { result::ctx::set_current(self.context) }.called("cuCtxSetCurrent")
    }

    fn check_inside(&self, address: u64, bytes: u64) -> Result<(), DeviceError> {
        if self.pinned.holds(address, bytes) {
            return Ok(());
        }
        live::check_inside(&self.allocations, address, bytes)
    }
}

/// Dynamic shared memory that every kernel may have without asking: what a block has by default, less some
/// for a kernel's own static part.
const ASKED_FOR_ABOVE: i32 = 16 << 10;

/// Whether compiled kernels encode so.
fn check_codec(codec: CodecSpec) -> Result<(), DeviceError> {
    let compiled = match codec {
        CodecSpec::Ecl(_) => CodecSpec::Ecl(DEVICE_ECL),
        CodecSpec::Predict(_) => CodecSpec::Predict(DEVICE_PREDICT),
        other => other,
    };
    if codec == compiled {
        return Ok(());
    }
    Err(DeviceError::Unsupported {
        problem: format!(
            "compiled kernels encode with {compiled:?}, not with {codec:?}; other parameters run on the simulator"
        ),
    })
}

/// What a launch is given beyond the kernel's own arguments.
struct Launched<'a> {
    function: sys::CUfunction,
    kernel: &'a str,
    arguments: Vec<*mut c_void>,
    shape: &'a LaunchShape,
    /// Bytes of dynamic shared memory, all together.
    dynamic_shared: u64,
    /// Address of the counters of claims, if they are asked for.
    claims: Option<u64>,
}

/// A kernel runs for so long before its logs are looked at: what most take. Then it is asked so often whether
/// it has ended.
const FIRST_LOOK: Duration = Duration::from_micros(300);

impl CudaDevice {
    /// Runs a kernel and waits for it.
    ///
    /// # Safety
    /// The arguments are what the kernel was compiled for, and name memory that is valid for what it does
    /// with it.
    unsafe fn run(
        &mut self,
        launched: Launched<'_>,
        serve: Option<&mut Serve<'_>>,
    ) -> Result<LaunchTime, DeviceError> {
        let Launched { function, kernel, mut arguments, shape, dynamic_shared, claims } = launched;
        let problem = |problem: String| DeviceError::Shape { kernel: kernel.to_owned(), problem };
        if shape.block_threads() == 0 || shape.block_threads() > 1024 || shape.grid.contains(&0) {
            return Err(problem(format!(
                "a grid of {:?} blocks of {:?} threads cannot run: no dimension is 0, and a block has at most 1,024 threads",
                shape.grid, shape.block
            )));
        }
        // The static part, a page that the system keeps, and this must fit together; the driver has the last
        // word.
        let dynamic_shared = i32::try_from(dynamic_shared).map_err(|_| {
            problem(format!("{dynamic_shared} bytes of shared memory are more than a block can have"))
        })?;
        if dynamic_shared > ASKED_FOR_ABOVE {
            let attribute = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: the function is loaded.
            unsafe { result::function::set_function_attribute(function, attribute, dynamic_shared) }
                .called_for("cuFuncSetAttribute(MAX_DYNAMIC_SHARED_SIZE)", kernel)?;
        }
        let [gx, gy, gz] = shape.grid;
        let [bx, by, bz] = shape.block;
        let stream = self.stream;
        self.check_no_capture(kernel)?;
        // SAFETY: events and stream are alive; the caller promises the arguments. The pinned words are nobody
        // else's, and read after the event behind their copy.
        unsafe {
            result::event::record(self.start, stream).called("cuEventRecord")?;
            result::launch_kernel(
                function,
                (gx, gy, gz),
                (bx, by, bz),
                dynamic_shared as u32,
                stream,
                &mut arguments,
            )
            .called_for("cuLaunchKernel", kernel)?;
            result::event::record(self.end, stream).called("cuEventRecord")?;
            let mut last = self.end;
            if let Some(claims) = claims {
                let words = std::slice::from_raw_parts_mut(self.claims.cast::<Claims>(), 1);
                result::memcpy_dtoh_async(words, claims, stream).called("cuMemcpyDtoHAsync(claims)")?;
                last = self.counted;
                result::event::record(last, stream).called("cuEventRecord")?;
            }
            let served = serve.map_or(Ok(()), |serve| self.serve(last, kernel, serve));
            result::event::synchronize(last).called_for("cuEventSynchronize", kernel)?;
            served?;
            let milliseconds =
                result::event::elapsed(self.start, self.end).called_for("cuEventElapsedTime", kernel)?;
            let claims =
                if claims.is_some() { self.claims.cast::<Claims>().read() } else { Claims::default() };
            Ok(LaunchTime { kernel: Duration::from_secs_f64(f64::from(milliseconds) / 1e3), claims })
        }
    }
}

impl CudaDevice {
    /// Serves the logs of a kernel until the event behind it has come.
    fn serve(&mut self, end: sys::CUevent, kernel: &str, serve: &mut Serve<'_>) -> Result<(), DeviceError> {
        let started = Instant::now();
        loop {
            // SAFETY: the event is alive.
            match unsafe { sys::cuEventQuery(end) } {
                sys::CUresult::CUDA_ERROR_NOT_READY => {}
                answer => return answer.result().called_for("cuEventQuery", kernel),
            }
            if started.elapsed() < FIRST_LOOK {
                std::hint::spin_loop();
                continue;
            }
            serve(&mut self.beside()?)?;
        }
    }
}

/// Pointers to a call's arguments, as the driver takes them.
fn pointers(call: &KernelCall) -> Vec<*mut c_void> {
    call.arguments().iter().map(|bytes| bytes.as_ptr().cast_mut().cast()).collect()
}

impl CudaDevice {
    /// Makes what a drain needs, which takes milliseconds.
    fn prepare_drains(&mut self, recording: Recording) -> Result<(), DeviceError> {
        check_codec(recording.codec)?;
        if self.staging.is_none() {
            self.staging = Some(Staging::new()?);
        }
        if self.gather.is_none() {
            self.gather = Some(Gather::new()?);
        }
        if self.encoding.is_none() {
            self.encoding = Some(Encoding::load(self.architecture)?);
        }
        Ok(())
    }
}

impl Device for CudaDevice {
    fn info(&self) -> DeviceInfo {
        self.info.clone()
    }

    fn multiprocessors(&self) -> u32 {
        self.multiprocessors
    }

    fn resident_threads(&self) -> u64 {
        u64::from(self.multiprocessors) * u64::from(self.threads_each)
    }

    fn memory(&self) -> u64 {
        self.memory
    }

    fn add_code(&mut self, ptx: &'static str) -> Result<(), DeviceError> {
        self.code.add(ptx);
        Ok(())
    }

    fn allocate(&mut self, bytes: u64) -> Result<Allocation, DeviceError> {
        self.enter()?;
        let out_of_memory = |reason: String| DeviceError::OutOfMemory { bytes, reason };
        let length = usize::try_from(bytes.max(1)).map_err(|error| out_of_memory(error.to_string()))?;
        // SAFETY: a plain allocation, given back by `free` or `drop`.
        let address = unsafe { result::malloc_sync(length) }.map_err(|error| {
            let (name, description) = driver::words(error);
            let free = result::mem_get_info()
                .map_or_else(|_| String::new(), |(free, _)| format!("; {free} bytes are free"));
            out_of_memory(format!("cuMemAlloc: {name} ({description}){free}"))
        })?;
        self.allocations.insert(address, bytes.max(1));
        Ok(Allocation { address, bytes })
    }

    fn allocate_on_host(&mut self, bytes: u64) -> Result<Allocation, DeviceError> {
        self.enter()?;
        Ok(Allocation { address: self.pinned.allocate(bytes)?, bytes })
    }

    fn free(&mut self, allocation: Allocation) -> Result<(), DeviceError> {
        self.enter()?;
        if let Some(freed) = self.pinned.free(allocation.address) {
            return freed;
        }
        if self.allocations.remove(&allocation.address).is_none() {
            return Err(DeviceError::OutOfBounds { address: allocation.address, bytes: allocation.bytes });
        }
        // SAFETY: it was allocated here and is no longer listed.
        unsafe { result::free_sync(allocation.address) }.called("cuMemFree")
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.enter()?;
        self.check_inside(address, bytes.len() as u64)?;
        // SAFETY: inside an allocation; the call is synchronous.
        unsafe { result::memcpy_htod_sync(address, bytes) }.called("cuMemcpyHtoD")
    }

    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.enter()?;
        self.check_inside(address, bytes.len() as u64)?;
        staging::read(&mut self.staging, address, bytes)
    }

    fn collect(
        &mut self,
        first: u64,
        chunk_bytes: u32,
        count: u32,
        scratch: Allocation,
        to: &mut Vec<u8>,
    ) -> Result<u32, DeviceError> {
        self.enter()?;
        self.check_inside(first, u64::from(chunk_bytes) * u64::from(count))?;
        self.check_inside(scratch.address, scratch.bytes)?;
        let gather = match &mut self.gather {
            Some(gather) => gather,
            None => self.gather.insert(Gather::new()?),
        };
        gather.collect(&mut self.staging, (first, chunk_bytes, count), scratch, to)
    }

    fn fill(&mut self, address: u64, bytes: u64, value: u8) -> Result<(), DeviceError> {
        self.enter()?;
        self.check_inside(address, bytes)?;
        // SAFETY: inside an allocation.
        unsafe { result::memset_d8_sync(address, value, bytes as usize) }.called("cuMemsetD8")?;
        result::ctx::synchronize().called("cuCtxSynchronize")
    }

    fn prepare(
        &mut self,
        kernels: &[&str],
        tracing: Option<(Recording, Option<Placement>, bool)>,
    ) -> Result<(), DeviceError> {
        self.enter()?;
        let Some((recording, placement, chooses)) = tracing else { return self.code.load(kernels, None) };
        self.prepare_drains(recording)?;
        self.code.load(kernels, Some(Way::of(recording, placement, chooses)))
    }

    fn prepare_ring(
        &mut self,
        kernels: &[&str],
        recording: Recording,
        placement: Option<Placement>,
        chooses: bool,
    ) -> Result<(), DeviceError> {
        self.prepare_drains(recording)?;
        self.code.load(kernels, Some(Way::ring(recording, placement, chooses)))
    }

    fn encode(
        &mut self,
        recording: Recording,
        pool: &PoolDescriptor,
        launches: &[LoggedLaunch],
        table: Allocation,
    ) -> Result<Encoded, DeviceError> {
        self.enter()?;
        check_codec(recording.codec)?;
        encoding::encode(self, recording, pool, launches, table)
    }

    unsafe fn launch(
        &mut self,
        call: &KernelCall,
        shape: &LaunchShape,
        tracing: Option<&Tracing>,
    ) -> Result<LaunchTime, DeviceError> {
        self.enter()?;
        let kernel = call.name();
        let mut arguments = pointers(call);
        let mut dynamic_shared = u64::from(shape.dynamic_shared);
        let (function, claims) = match tracing {
            None => (self.code.untraced(kernel)?, None),
            Some(tracing) => {
                let &Tracing { recording, placement, chooses, .. } = tracing;
                let way = match tracing.logs.ring {
                    0 => Way::of(recording, placement, chooses),
                    _ => Way::ring(recording, placement, chooses),
                };
                let traced = self.code.traced(kernel, way)?;
                arguments.push((&raw const tracing.logs).cast_mut().cast::<c_void>());
                dynamic_shared = traced.dynamic_shared(shape);
                (traced.function, Some(tracing.logs.claims))
            }
        };
        let launched = Launched { function, kernel, arguments, shape, dynamic_shared, claims };
        // SAFETY: the argument bytes live in `call` and have the layout that the kernel was compiled with;
        // the last one is the descriptor, of which traced kernels take as much as they declare. The caller
        // promises the memory behind them.
        unsafe { self.run(launched, None) }
    }

    fn prepare_streamed(
        &mut self,
        kernels: &[&str],
        recording: Recording,
        placement: Option<Placement>,
        chooses: bool,
        open_runs: bool,
    ) -> Result<(), DeviceError> {
        self.enter()?;
        self.beside()?;
        self.code.load(kernels, Some(Way::streamed(recording, placement, chooses, open_runs)))
    }

    /// Of a device that has failed, too: then memory of the host can be read.
    fn live(&mut self) -> Result<&mut dyn LiveMemory, DeviceError> {
        let _ = self.enter();
        Ok(self)
    }

    unsafe fn launch_streamed(
        &mut self,
        call: &KernelCall,
        shape: &LaunchShape,
        streaming: &Streaming,
        serve: &mut Serve<'_>,
    ) -> Result<LaunchTime, DeviceError> {
        self.enter()?;
        self.beside()?;
        let kernel = call.name();
        let &Streaming { recording, placement, chooses, open_runs, .. } = streaming;
        let traced = self.code.traced(kernel, Way::streamed(recording, placement, chooses, open_runs))?;
        let mut arguments = pointers(call);
        arguments.push((&raw const streaming.logs).cast_mut().cast::<c_void>());
        let launched = Launched {
            function: traced.function,
            kernel,
            arguments,
            shape,
            dynamic_shared: traced.dynamic_shared(shape),
            claims: None,
        };
        // SAFETY: as in `launch`.
        unsafe { self.run(launched, Some(serve)) }
    }
}

impl CudaDevice {
    /// Device memory beside a kernel.
    fn beside(&mut self) -> Result<Beside<'_>, DeviceError> {
        let live = match &mut self.live {
            Some(live) => live,
            none => none.insert(Live::new()?),
        };
        Ok(Beside { allocations: &self.allocations, pinned: &self.pinned, live })
    }
}

impl LiveMemory for CudaDevice {
    fn start_read(&mut self, ranges: &[(u64, usize)]) -> Result<(), DeviceError> {
        self.beside()?.start_read(ranges)
    }

    fn finish_read(&mut self) -> Result<&[u8], DeviceError> {
        match &mut self.live {
            Some(live) => live.finish_read(),
            None => {
                Err(DeviceError::Unsupported { problem: "no read beside a kernel is under way".to_owned() })
            }
        }
    }

    fn write_live(&mut self, address: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.beside()?.write_live(address, bytes)
    }
}

impl Drop for CudaDevice {
    fn drop(&mut self) {
        // Errors have nowhere to go here; after a failed kernel every one of these calls fails, harmlessly.
        let _ = self.enter();
        self.staging = None;
        self.gather = None;
        self.live = None;
        self.pinned = Pinned::default();
        for &address in self.allocations.keys() {
            // SAFETY: allocated here, and freed only once.
            let _ = unsafe { result::free_sync(address) };
        }
        // SAFETY: made in `open` and in `module`, used by nobody else.
        unsafe {
            self.code.unload();
            if let Some(encoding) = &self.encoding {
                encoding.unload();
            }
            let _ = result::event::destroy(self.start);
            let _ = result::event::destroy(self.end);
            let _ = result::event::destroy(self.counted);
            let _ = result::free_host(self.claims);
            if self.retained {
                let _ = result::primary_ctx::release(self.ordinal);
            }
        }
    }
}
