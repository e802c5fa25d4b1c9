//! Kernels that another program has loaded and launches itself: the device brackets what the program gives
//! the driver with its events, and the program's own call runs in between, on the program's stream and with
//! its attributes. Nobody waits for it.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cudarc::driver::{result, sys};
use warptrace_format::log::LaunchLogs;

use super::driver::{self, Called};
use super::encoding::stream_beside;
use super::{CudaDevice, check_driver, count_devices};
use crate::{Begun, DeviceError};

/// Calls the driver, and answers what it said (`CUresult`): 0 if the launches are on their way. For each
/// launch there are the logs that its traced kernel has as its last parameter, of which a kernel takes as
/// many bytes as it declares; `None` where the untraced kernel runs.
pub type Launching = Box<dyn FnOnce(&[Option<LaunchLogs>]) -> u32 + Send>;

/// A launch as its program makes it, or launches of a graph.
pub struct ForeignLaunch {
    /// The stream, as the driver's `CUstream`; null is the legacy default stream.
    stream: *mut c_void,
    /// Calls the driver.
    launch: Launching,
}

// SAFETY: the stream is a handle, which any thread may use.
unsafe impl Send for ForeignLaunch {}

impl ForeignLaunch {
    /// Describes a launch.
    pub fn new(stream: *mut c_void, launch: Launching) -> Self {
        Self { stream, launch }
    }
}

impl std::fmt::Debug for ForeignLaunch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ForeignLaunch").field("stream", &self.stream).finish_non_exhaustive()
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
    /// Until that launch has been made or [taken back](Self::take): `launch` may be called, the stream is one
    /// of the device's context, and a kernel that is launched with logs is one that
    /// [`splice`](warptrace_ptx::splice::splice) made, recorded as the session says.
    pub unsafe fn next(&self, launch: ForeignLaunch) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(launch);
    }

    /// Takes back what was said, if no launch has been made.
    pub fn take(&self) -> Option<ForeignLaunch> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// What a device keeps of a program that launches its kernels itself.
#[derive(Debug, Default)]
pub(super) struct Foreign {
    next: ForeignLaunches,
    /// Pairs of events that nobody uses.
    events: Vec<[sys::CUevent; 2]>,
    /// Launches that have begun.
    running: HashMap<u64, Running>,
    begun: u64,
}

/// Launches that have begun together.
#[derive(Debug)]
struct Running {
    events: [sys::CUevent; 2],
    /// The first kernel.
    kernel: String,
    /// Whether the event behind them is in the stream.
    marked: bool,
}

impl Foreign {
    /// Ends all events.
    ///
    /// # Safety
    /// The context is current.
    pub(super) unsafe fn unload(&mut self) {
        let running = self.running.drain().map(|(_, running)| running.events);
        for event in self.events.drain(..).chain(running).flatten() {
            // Errors have nowhere to go. SAFETY: made here, and used by nobody else.
            let _ = unsafe { result::event::destroy(event) };
        }
    }
}

impl CudaDevice {
    /// Uses a context of another program, which launches its kernels itself, and loads no code for it. All
    /// other work of the device is on a stream of its own, which no default stream waits for. From now on
    /// devices of this process say nothing on standard error, which is the program's.
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
        unsafe { result::ctx::set_current(context) }.called("cuCtxSetCurrent")?;
        let mut device = 0;
        // SAFETY: asks for the device of the context that is current.
        unsafe { sys::cuCtxGetDevice(&raw mut device) }.result().called("cuCtxGetDevice")?;
        let mut adopted = Self::within(device, context, stream_beside()?, false, "")?;
        adopted.owns_stream = true;
        let launches = ForeignLaunches::default();
        adopted.foreign = Some(Foreign { next: launches.clone(), ..Foreign::default() });
        Ok((adopted, launches))
    }

    /// Tells whether another program loads and launches the kernels.
    pub(super) fn is_foreign(&self) -> bool {
        self.foreign.is_some()
    }

    /// Makes the launch that was announced.
    ///
    /// # Safety
    /// As [`Device::begin`](crate::Device::begin) says, of the logs; the rest was promised to
    /// [`ForeignLaunches::next`].
    pub(super) unsafe fn begin_foreign(&mut self, launches: &[Begun<'_>]) -> Result<u64, DeviceError> {
        let foreign = self.foreign.as_mut().ok_or(DeviceError::NoDeviceCode)?;
        let ForeignLaunch { stream, launch } = foreign.next.take().ok_or(DeviceError::NoDeviceCode)?;
        let kernel = launches.first().map_or("", |first| first.call.name());
        let not_launched = |code| DeviceError::NotLaunched { kernel: kernel.to_owned(), code };
        let [start, end] = match foreign.events.pop() {
            Some(events) => events,
            None => {
                let event = || {
                    result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT)
                        .map_err(|error| not_launched(error.0 as u32))
                };
                [event()?, event()?]
            }
        };
        let logs: Vec<Option<LaunchLogs>> =
            launches.iter().map(|launch| launch.tracing.map(|tracing| tracing.logs)).collect();
        // A stream of another context, for instance, takes no event: then nothing is launched here.
        // SAFETY: the promise of `next` for the stream; the caller's for the logs.
        let answer = match unsafe { sys::cuEventRecord(start, stream.cast()) } as u32 {
            0 => launch(&logs),
            refused => refused,
        };
        if answer != 0 {
            foreign.events.push([start, end]);
            return Err(not_launched(answer));
        }
        // SAFETY: as above. What is on its way counts as running, even if nobody can tell when it ends.
        let marked = unsafe { sys::cuEventRecord(end, stream.cast()) } as u32 == 0;
        foreign.begun += 1;
        foreign
            .running
            .insert(foreign.begun, Running { events: [start, end], kernel: kernel.to_owned(), marked });
        Ok(foreign.begun)
    }

    /// Tells whether launches have ended, as [`Device::ended`](crate::Device::ended) says.
    pub(super) fn ended_foreign(&mut self, begun: u64) -> Result<Option<Duration>, DeviceError> {
        let Some(foreign) = &mut self.foreign else { return Ok(None) };
        let Some(Running { events: [start, end], kernel, marked }) = foreign.running.get(&begun) else {
            return Ok(None);
        };
        if !marked {
            // The context may have failed with the kernel.
            // SAFETY: the event is alive.
            return match unsafe { sys::cuEventQuery(*start) } {
                sys::CUresult::CUDA_ERROR_NOT_READY => Ok(None),
                answer => answer.result().called_for("cuEventQuery", kernel).map(|()| None),
            };
        }
        // SAFETY: the events are alive.
        let milliseconds = unsafe {
            match sys::cuEventQuery(*end) {
                sys::CUresult::CUDA_ERROR_NOT_READY => return Ok(None),
                answer => answer.result().called_for("cuEventQuery", kernel)?,
            }
            result::event::elapsed(*start, *end).called_for("cuEventElapsedTime", kernel)?
        };
        if let Some(running) = foreign.running.remove(&begun) {
            foreign.events.push(running.events);
        }
        Ok(Some(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) / 1e3)))
    }
}
