//! Launches that another program makes itself: events before and behind each, in the program's stream, tell
//! when it has ended. No call waits for it.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cudarc::driver::{result, sys};

use super::CudaDevice;
use super::driver::{self, Called, Waits};
use super::encoding::priority_stream;
use crate::{DeviceError, Ending};

/// Pairs of events of one context, which launches use in turns.
#[derive(Clone, Debug, Default)]
pub struct Brackets(Arc<Mutex<Vec<Events>>>);

/// The events before and behind launches.
#[derive(Debug)]
struct Events([sys::CUevent; 2]);

// SAFETY: handles, which any thread may use.
unsafe impl Send for Events {}

/// Launches that have begun together, between two events.
#[derive(Debug)]
pub struct Bracket {
    /// `Some` until it is dropped.
    events: Option<Events>,
    /// Whether the event behind them is in the stream.
    marked: bool,
    /// The first kernel.
    kernel: &'static str,
    pool: Brackets,
}

impl Brackets {
    /// Makes launches on a stream by `launch`, which calls the driver and returns what that says
    /// (`CUresult`). `kernel` names the first of them in errors.
    ///
    /// # Errors
    /// What the driver says if it refuses them, or takes no event for the stream: nothing runs then.
    ///
    /// # Safety
    /// The stream, as `CUstream`, is one of the context for which this was made; null is the legacy default
    /// stream. The context is current.
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
        // A stream of another context, for instance, takes no event: then nothing is launched here.
        // SAFETY: the caller's promise for the stream; the events are alive.
        match unsafe { sys::cuEventRecord(start, stream.cast()) } as u32 {
            0 => {}
            refused => return Err(refused),
        }
        match launch() {
            0 => {}
            refused => return Err(refused),
        }
        // SAFETY: as above. What is on its way counts as running, even if there is no telling when it ends.
        bracket.marked = unsafe { sys::cuEventRecord(end, stream.cast()) } as u32 == 0;
        Ok(bracket)
    }

    /// Destroys the events that nothing uses.
    ///
    /// # Safety
    /// Their context is alive.
    pub unsafe fn destroy(&self) {
        let events = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for event in events.into_iter().flat_map(|events| events.0) {
            // Errors have nowhere to go. SAFETY: made here, and used by nothing else.
            let _ = unsafe { result::event::destroy(event) };
        }
    }
}

impl Ending for Bracket {
    fn ended(&mut self) -> Result<Option<Duration>, DeviceError> {
        let Some(Events([start, end])) = self.events else { return Ok(None) };
        // The context may have failed with the kernel, whose end nothing has marked.
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
    /// Uses a context of another program, which launches its kernels itself, and loads no code for it. All
    /// other work of the device is on a stream of its own, which no default stream waits for. From now on
    /// devices of this process say nothing on standard error, which is the program's.
    ///
    /// # Errors
    /// Without a driver, or if the driver fails, as it does for a context that is none.
    ///
    /// # Safety
    /// The context is the driver's `CUcontext`, and outlives what is returned.
    pub unsafe fn adopt_foreign(context: *mut c_void) -> Result<Self, DeviceError> {
        driver::be_quiet();
        // SAFETY: the caller's promise.
        let mut adopted = unsafe { Self::adopt_with(context, priority_stream, "") }?;
        adopted.owns_stream = true;
        adopted.is_foreign = true;
        adopted.waits = Waits { gives_up: Some(Arc::default()) };
        adopted.beside = priority_stream()?;
        Ok(adopted)
    }
}
