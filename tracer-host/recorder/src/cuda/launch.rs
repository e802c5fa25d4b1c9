//! Runs kernels, and empties their logs meanwhile.

use std::ffi::c_void;
use std::time::{Duration, Instant};

use cudarc::driver::{result, sys};
use warptrace_abi::pool::Claims;
use warptrace_device::KernelCall;

use super::CudaDevice;
use super::driver::Called;
use crate::{DeviceError, LaunchShape, LaunchTime, Serve};

/// Dynamic shared memory without an attribute: the default of a block, less a reserve for static memory.
const ASKED_FOR_ABOVE: i32 = 16 << 10;

pub(super) struct Launched<'a> {
    pub(super) function: sys::CUfunction,
    pub(super) kernel: &'a str,
    pub(super) arguments: Vec<*mut c_void>,
    pub(super) shape: &'a LaunchShape,
    /// Total dynamic shared memory in bytes.
    pub(super) dynamic_shared: u64,
    /// Address of the reservation counters, if they are to be read.
    pub(super) claims: Option<u64>,
}

/// Time before the first scan of a kernel's logs. Most kernels end earlier.
const FIRST_SCAN: Duration = Duration::from_micros(300);

impl CudaDevice {
    /// # Safety
    /// The arguments match the kernel and refer to memory that is valid for its accesses.
    pub(super) unsafe fn run(
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
        // It must fit next to static and system-reserved shared memory; the driver checks this.
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
        let launch = || {
            // SAFETY: the stream is alive; the caller guarantees the arguments.
            unsafe {
                result::launch_kernel(
                    function,
                    (gx, gy, gz),
                    (bx, by, bz),
                    dynamic_shared as u32,
                    stream,
                    &mut arguments,
                )
            }
            .called_for("cuLaunchKernel", kernel)
        };
        // SAFETY: the stream is alive; the caller guarantees the launch.
        unsafe { self.timed(stream, kernel, claims, serve, launch) }
    }

    /// Makes a launch on a stream, times it and waits for it. Then reads the counters at `claims`, if given.
    ///
    /// # Safety
    /// The stream is alive and belongs to the device's context. `launch` submits a kernel that may run.
    pub(super) unsafe fn timed(
        &mut self,
        stream: sys::CUstream,
        kernel: &str,
        claims: Option<u64>,
        serve: Option<&mut Serve<'_>>,
        launch: impl FnOnce() -> Result<(), DeviceError>,
    ) -> Result<LaunchTime, DeviceError> {
        // SAFETY: events and stream are alive. Nothing else uses the pinned words, and they are read only
        // after the event that follows their copy.
        unsafe {
            result::event::record(self.start, stream).called("cuEventRecord")?;
            launch()?;
            result::event::record(self.end, stream).called("cuEventRecord")?;
            let mut last = self.end;
            if let Some(claims) = claims {
                let words = std::slice::from_raw_parts_mut(self.claims.cast::<Claims>(), 1);
                result::memcpy_dtoh_async(words, claims, stream).called("cuMemcpyDtoHAsync(claims)")?;
                last = self.counted;
                result::event::record(last, stream).called("cuEventRecord")?;
            }
            let served = serve.map_or(Ok(()), |serve| self.serve(last, kernel, serve));
            if self.waits.gives_up.is_some() {
                self.waits.wait(stream)?;
            }
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

    /// Empties the logs of a kernel until the event `end` has occurred.
    fn serve(&mut self, end: sys::CUevent, kernel: &str, serve: &mut Serve<'_>) -> Result<(), DeviceError> {
        let started = Instant::now();
        loop {
            // SAFETY: the event is alive.
            match unsafe { sys::cuEventQuery(end) } {
                sys::CUresult::CUDA_ERROR_NOT_READY => {}
                answer => return answer.result().called_for("cuEventQuery", kernel),
            }
            if started.elapsed() < FIRST_SCAN {
                std::hint::spin_loop();
                continue;
            }
            serve(&mut self.live_memory()?)?;
        }
    }
}

/// Returns pointers to a call's arguments, in the form that the driver takes.
pub(super) fn pointers(call: &KernelCall) -> Vec<*mut c_void> {
    call.arguments().iter().map(|bytes| bytes.as_ptr().cast_mut().cast()).collect()
}
