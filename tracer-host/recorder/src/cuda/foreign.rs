//! Launches that another program makes. An event after them, in its stream, shows their end without a wait.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::{result, sys};

use super::CudaDevice;
use super::driver::{self, Called, Waits};
use super::encoding::priority_stream;
use crate::{DeviceError, Ending};

/// Reusable events of one context. They have no timestamps, which would cost device time between kernels.
#[derive(Clone, Debug, Default)]
pub struct EndEvents(Arc<Mutex<Vec<Event>>>);

#[derive(Debug)]
struct Event(sys::CUevent);

// SAFETY: an event handle, which any thread may use.
unsafe impl Send for Event {}

/// The event after launches that were made together.
#[derive(Debug)]
pub struct EndEvent {
    /// `Some` until drop.
    event: Option<Event>,
    is_recorded: bool,
    kernel: &'static str,
    pool: EndEvents,
}

impl EndEvents {
    /// Makes launches on a stream by calling `launch`, which calls the driver and returns its `CUresult`.
    /// `kernel` names the first kernel, for errors. Returns the driver's error code if it refuses the
    /// launches, or has no more events: then nothing runs.
    ///
    /// # Safety
    /// `stream` is a `CUstream` of this pool's context, which is current; null is the legacy default stream.
    pub unsafe fn after(
        &self,
        stream: *mut c_void,
        kernel: &'static str,
        launch: impl FnOnce() -> u32,
    ) -> Result<EndEvent, u32> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let create = || {
            let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING;
            result::event::create(flags).map(Event).map_err(|error| error.0 as u32)
        };
        let event = kept.map_or_else(create, Ok)?;
        let handle = event.0;
        let mut end = EndEvent { event: Some(event), is_recorded: false, kernel, pool: self.clone() };
        match launch() {
            0 => {}
            refused => return Err(refused),
        }
        // Without this event, the launch counts as running and its end is unknown.
        // SAFETY: the caller guarantees the stream; the event is alive.
        end.is_recorded = unsafe { sys::cuEventRecord(handle, stream.cast()) } as u32 == 0;
        Ok(end)
    }

    /// Destroys the events that are not in use.
    ///
    /// # Safety
    /// Their context is alive.
    pub unsafe fn destroy(&self) {
        for Event(event) in std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)) {
            // Errors are ignored. SAFETY: created here, and not used by anything else.
            let _ = unsafe { result::event::destroy(event) };
        }
    }
}

impl Ending for EndEvent {
    fn has_ended(&mut self) -> Result<bool, DeviceError> {
        let Some(Event(event)) = &self.event else { return Ok(false) };
        // An event that was never recorded still shows whether the context has failed.
        // SAFETY: the event is alive.
        match unsafe { sys::cuEventQuery(*event) } {
            sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            answer => answer.result().called_for("cuEventQuery", self.kernel).map(|()| self.is_recorded),
        }
    }
}

impl Drop for EndEvent {
    fn drop(&mut self) {
        if let Some(event) = self.event.take() {
            self.pool.0.lock().unwrap_or_else(PoisonError::into_inner).push(event);
        }
    }
}

impl CudaDevice {
    /// Uses the context of another program, which loads and launches its kernels itself. All other work of
    /// the device uses a separate non-blocking stream. From now on devices of this process print nothing on
    /// standard error, which belongs to the program. Fails if the driver is missing, too old, or fails.
    ///
    /// # Safety
    /// The context is a `CUcontext` of the driver and outlives the returned device.
    pub unsafe fn adopt_foreign(context: *mut c_void) -> Result<Self, DeviceError> {
        driver::be_quiet();
        // SAFETY: the caller guarantees the context.
        let mut adopted = unsafe { Self::adopt_with(context, priority_stream, "") }?;
        adopted.owns_stream = true;
        adopted.is_foreign = true;
        adopted.waits = Waits { gives_up: Some(Arc::default()) };
        adopted.beside = priority_stream()?;
        Ok(adopted)
    }
}
