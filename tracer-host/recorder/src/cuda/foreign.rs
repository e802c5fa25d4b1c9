//! Launches that another program makes. Events around them, in its stream, show their end without a wait.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cudarc::driver::{result, sys};

use super::CudaDevice;
use super::driver::{self, Called, Waits};
use super::encoding::priority_stream;
use crate::{DeviceError, Ending};

/// Reusable pairs of events of one context.
#[derive(Clone, Debug, Default)]
pub struct Brackets(Arc<Mutex<Vec<Events>>>);

#[derive(Debug)]
struct Events([sys::CUevent; 2]);

// SAFETY: event handles, which any thread may use.
unsafe impl Send for Events {}

/// Launches made together, between two events.
#[derive(Debug)]
pub struct Bracket {
    /// `Some` until drop.
    events: Option<Events>,
    /// Whether the event after the launches was recorded.
    marked: bool,
    kernel: &'static str,
    pool: Brackets,
}

impl Brackets {
    /// Makes launches on a stream by calling `launch`, which calls the driver and returns its `CUresult`.
    /// `kernel` names the first kernel, for errors. Returns the driver's error code if it refuses the event
    /// before the launches or the launches: then nothing runs.
    ///
    /// # Safety
    /// `stream` is a `CUstream` of this pool's context, which is current; null is the legacy default stream.
    pub unsafe fn around(
        &self,
        stream: *mut c_void,
        kernel: &'static str,
        launch: impl FnOnce() -> u32,
    ) -> Result<Bracket, u32> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let events = match kept {
            Some(events) => events,
            None => {
                let event = || {
                    let flags = sys::CUevent_flags::CU_EVENT_DEFAULT;
                    result::event::create(flags).map_err(|error| error.0 as u32)
                };
                Events([event()?, event()?])
            }
        };
        let [start, end] = events.0;
        let mut bracket = Bracket { events: Some(events), marked: false, kernel, pool: self.clone() };
        // The driver refuses the event, for instance, if the stream belongs to another context.
        // SAFETY: the caller guarantees the stream; the events are alive.
        match unsafe { sys::cuEventRecord(start, stream.cast()) } as u32 {
            0 => {}
            refused => return Err(refused),
        }
        match launch() {
            0 => {}
            refused => return Err(refused),
        }
        // SAFETY: see above. Without this event, the launch counts as running and its end is unknown.
        bracket.marked = unsafe { sys::cuEventRecord(end, stream.cast()) } as u32 == 0;
        Ok(bracket)
    }

    /// Destroys the events that are not in use.
    ///
    /// # Safety
    /// Their context is alive.
    pub unsafe fn destroy(&self) {
        let events = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for event in events.into_iter().flat_map(|events| events.0) {
            // Errors are ignored. SAFETY: created here, and not used by anything else.
            let _ = unsafe { result::event::destroy(event) };
        }
    }
}

impl Ending for Bracket {
    fn ended(&mut self) -> Result<Option<Duration>, DeviceError> {
        let Some(Events([start, end])) = self.events else { return Ok(None) };
        // Without an end event, `start` shows whether the context has failed.
        let asked = if self.marked { end } else { start };
        // SAFETY: the events are alive.
        let milliseconds = unsafe {
            match sys::cuEventQuery(asked) {
                sys::CUresult::CUDA_ERROR_NOT_READY => return Ok(None),
                answer => answer.result().called_for("cuEventQuery", self.kernel)?,
            }
            if !self.marked {
                return Ok(None);
            }
            result::event::elapsed(start, end).called_for("cuEventElapsedTime", self.kernel)?
        };
        Ok(Some(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) / 1e3)))
    }
}

impl Drop for Bracket {
    fn drop(&mut self) {
        if let Some(events) = self.events.take() {
            self.pool.0.lock().unwrap_or_else(PoisonError::into_inner).push(events);
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
