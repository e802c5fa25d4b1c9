//! Kernels that another program has loaded and launches itself: the device brackets each launch with its events,
//! and the program's own call to the driver runs in between, on the program's stream and with its attributes.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys;
use warptrace_device::KernelCall;
use warptrace_format::log::LaunchLogs;

use super::driver::{self, Called};
use super::encoding::stream_beside;
use super::{CudaDevice, check_driver, count_devices};
use crate::{DeviceError, LaunchShape, LaunchTime, Tracing};

/// What a launch of a traced kernel takes beyond what its program gives it.
#[derive(Debug)]
#[non_exhaustive]
pub struct ForeignArguments<'a> {
    /// The last parameter of the traced kernel; `None` where the launch is not recorded, and the untraced kernel
    /// runs. A kernel takes as many of its bytes as it declares.
    pub logs: Option<&'a LaunchLogs>,
    /// Bytes of dynamic shared memory of a block, the kernel's own included.
    pub dynamic_shared: u64,
}

/// Launches a kernel and answers what the driver said (`CUresult`): 0 if the launch is on its way.
pub type Launching = Box<dyn FnOnce(&ForeignArguments<'_>) -> u32 + Send>;

/// A launch as its program makes it.
pub struct ForeignLaunch {
    /// The stream, as the driver's `CUstream`; null is the legacy default stream.
    stream: *mut c_void,
    /// Bytes that each warp of a block needs at the end of dynamic shared memory
    /// ([`TracedKernel::shared_bytes`](warptrace_ptx::splice::TracedKernel::shared_bytes)).
    shared_bytes: u32,
    /// Calls the driver.
    launch: Launching,
}

// SAFETY: the stream is a handle, which any thread may use.
unsafe impl Send for ForeignLaunch {}

impl ForeignLaunch {
    /// Describes a launch.
    pub fn new(stream: *mut c_void, shared_bytes: u32, launch: Launching) -> Self {
        Self { stream, shared_bytes, launch }
    }
}

impl std::fmt::Debug for ForeignLaunch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ForeignLaunch").field("shared_bytes", &self.shared_bytes).finish_non_exhaustive()
    }
}

/// Tells a [`CudaDevice`] how its next launch is made; kept by whoever sees the program's launches, while a
/// session has the device.
#[derive(Clone, Debug, Default)]
pub struct ForeignLaunches(Arc<Mutex<Option<ForeignLaunch>>>);

impl ForeignLaunches {
    /// Says how the next launch is made.
    ///
    /// # Safety
    /// Until that launch has been made or [taken back](Self::take): `launch` may be called, the stream is one of
    /// the device's context, and a kernel that is launched with logs is one that
    /// [`splice`](warptrace_ptx::splice::splice) made, recorded as the session says.
    pub unsafe fn next(&self, launch: ForeignLaunch) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(launch);
    }

    /// Takes back what was said, if no launch has been made.
    pub fn take(&self) -> Option<ForeignLaunch> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl CudaDevice {
    /// Uses a context of another program, which launches its kernels itself, and loads no code for it. All other
    /// work of the device is on a stream of its own, which no default stream waits for. From now on devices of
    /// this process say nothing on standard error, which is the program's.
    ///
    /// # Errors
    /// Without a driver, or if the driver fails, as it does for a context that is none.
    ///
    /// # Safety
    /// The context is the driver's `CUcontext`, and outlives what is returned.
    pub unsafe fn adopt_foreign(context: *mut c_void) -> Result<(Self, ForeignLaunches), DeviceError> {
        driver::be_quiet();
        count_devices()?;
        check_driver()?;
        let context: sys::CUcontext = context.cast();
        // SAFETY: the caller's promise.
        unsafe { cudarc::driver::result::ctx::set_current(context) }.called("cuCtxSetCurrent")?;
        let mut device = 0;
        // SAFETY: asks for the device of the context that is current.
        unsafe { sys::cuCtxGetDevice(&raw mut device) }.result().called("cuCtxGetDevice")?;
        let mut adopted = Self::within(device, context, stream_beside()?, false, "")?;
        adopted.owns_stream = true;
        let launches = ForeignLaunches::default();
        adopted.foreign = Some(launches.clone());
        Ok((adopted, launches))
    }

    /// Tells whether another program loads and launches the kernels.
    pub(super) fn is_foreign(&self) -> bool {
        self.foreign.is_some()
    }

    /// Makes the launch that was announced.
    ///
    /// # Safety
    /// As [`Device::launch`](crate::Device::launch) says, of the logs; the rest was promised to
    /// [`ForeignLaunches::next`].
    pub(super) unsafe fn launch_foreign(
        &mut self,
        call: &KernelCall,
        shape: &LaunchShape,
        tracing: Option<&Tracing>,
    ) -> Result<LaunchTime, DeviceError> {
        let kernel = call.name();
        let launch = self.foreign.as_ref().and_then(ForeignLaunches::take);
        let ForeignLaunch { stream, shared_bytes, launch } = launch.ok_or(DeviceError::NoDeviceCode)?;
        let own = u64::from(shape.dynamic_shared);
        let dynamic_shared = match (tracing, shared_bytes) {
            (None, _) | (_, 0) => own,
            (Some(_), each) => own.next_multiple_of(16) + shape.warps_per_block() * u64::from(each),
        };
        let arguments = ForeignArguments { logs: tracing.map(|tracing| &tracing.logs), dynamic_shared };
        let issue = || {
            let answer = launch(&arguments);
            if answer == 0 { Ok(()) } else { Err(not_launched(kernel, answer)) }
        };
        let claims = tracing.map(|tracing| tracing.logs.claims);
        // SAFETY: the promise of `next` for the stream and what is launched; the caller's for the logs.
        unsafe { self.timed(stream.cast(), kernel, claims, None, issue) }
    }
}

/// Says that the driver has refused a launch.
fn not_launched(kernel: &str, answer: u32) -> DeviceError {
    let kernel = kernel.to_owned();
    DeviceError::NotLaunched { kernel, code: answer }
}
