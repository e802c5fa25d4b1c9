//! A recording from its first launch to its last byte.

mod begin;
mod drain;
mod error;
mod interrupt;
mod memory;
mod metadata;
mod modules;
mod options;
mod pool;
mod start;
mod stream;
mod streamed;
mod worker;

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use warptrace_device::KernelCall;
use warptrace_format::file::{EarlyEnd, Growing, LaunchInfo};

pub use self::begin::Patience;
use self::begin::Running;
pub use self::error::SessionError;
use self::interrupt::Interrupt;
pub use self::interrupt::{Interrupted, OpenRun, Standing};
pub use self::metadata::{MEMORY_LIMIT, MEMORY_PEAK};
pub use self::options::{LaunchReport, MemoryUse, TracedProgram};
use self::pool::{Pool, Room};
use self::stream::Streams;
use self::worker::{Drained, Worker};
use crate::writer::Summary;
use crate::{
    Choosing, Device, DeviceError, LaunchShape, LaunchTime, Launcher, Placement, Recording, Tracing, Window,
};

/// Launches that the file is told of at once, if they leave nothing that asks for a drain.
const MAX_PENDING: usize = 1 << 12;

/// Device memory of a session.
enum Logs {
    /// Logs that are encoded on the device, between kernels.
    Kept(Box<Pool>),
    /// Logs that the host empties.
    Streamed(Box<Streams>),
}

impl Logs {
    fn memory_use(&self) -> MemoryUse {
        match self {
            Self::Kept(pool) => pool.memory_use(),
            Self::Streamed(streams) => streams.memory_use(),
        }
    }

    fn free(&mut self, device: &mut dyn Device) -> Result<(), SessionError> {
        match self {
            Self::Kept(pool) => pool.free(device),
            Self::Streamed(streams) => streams.free(device),
        }
    }
}

/// Records launches of one program on one device into one file.
///
/// All device memory that it uses is allocated when it starts, within [one
/// limit](crate::RecordingSpec::memory_bytes). What launches leave there is drained when it is worth it, or when
/// room is short, and written by a thread while the program goes on: a short launch costs no more than
/// itself. A launch that fails leaves the session unusable: what was recorded until then and the error are
/// written, and end the file. When a session is dropped, what was recorded is written, too, and can be read,
/// but the file has no index.
pub struct Session<'d, W: Write + Send + 'static> {
    device: &'d mut dyn Device,
    /// `None` after the end.
    worker: Option<Worker<W>>,
    logs: Logs,
    recording: Recording,
    placement: Option<Placement>,
    window: Window,
    /// What of it kernels ask.
    chooses: Choosing,
    /// Launches of each kernel that were recorded, by its number in the file.
    recorded_of: Vec<u64>,
    /// What the file knows of kernels and locations.
    tables: Growing,
    /// The modules of the first kernels of `tables`, where they were given with modules.
    modules: Vec<&'static str>,
    launches: u32,
    /// Launches since the last drain that have ended.
    pending: Vec<LaunchInfo>,
    /// Launches that were begun and not waited for.
    running: Vec<Running>,
    /// Whether there may be such.
    overlap: bool,
    /// How long launches were waited for in vain that still run, all of them.
    in_vain: Option<Duration>,
    failed: bool,
    interrupt: Option<Interrupt<'d>>,
    total: LaunchReport,
}

impl<W: Write + Send + 'static> std::fmt::Debug for Session<'_, W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("recording", &self.recording)
            .field("launches", &self.launches)
            .finish_non_exhaustive()
    }
}

impl<'d, W: Write + Send + 'static> Session<'d, W> {
    /// Lets the session end in the middle of a kernel whose logs are [streamed](crate::Policy::Stream): when `asked`
    /// is set, what has come of the kernel is written, the file is ended, and `tell` is called.
    ///
    /// Nothing can end the kernel itself. So `tell` best ends the process; if it returns, the session waits
    /// for the kernel, and the launch fails with [`SessionError::Interrupted`].
    pub fn interrupt_by(&mut self, asked: Arc<AtomicBool>, tell: impl FnMut(&Interrupted) + 'd) {
        self.interrupt = Some(Interrupt { asked, tell: Box::new(tell) });
    }

    /// Runs a kernel and waits for it. What it recorded stays on the device, or is on its way to the file.
    ///
    /// # Safety
    /// The arguments name memory of the session's device that is valid for what the kernel does with it.
    ///
    /// # Errors
    /// If the kernel was not named in the program, the launch has a shape that cannot be traced, the kernel
    /// fails, or the file cannot be written (which may have been found out about an earlier launch).
    pub unsafe fn record(
        &mut self,
        call: &KernelCall,
        shape: &LaunchShape,
    ) -> Result<LaunchTime, SessionError> {
        self.guarded(|session| {
            // SAFETY: the caller's promise.
            unsafe { session.record_launch(call, shape) }
        })
    }

    /// Runs `run`; an error makes the session unusable.
    fn guarded<T>(
        &mut self,
        run: impl FnOnce(&mut Self) -> Result<T, SessionError>,
    ) -> Result<T, SessionError> {
        if self.failed {
            return Err(SessionError::Unusable);
        }
        self.failed = true;
        let value = run(self)?;
        self.failed = false;
        Ok(value)
    }

    unsafe fn record_launch(
        &mut self,
        call: &KernelCall,
        shape: &LaunchShape,
    ) -> Result<LaunchTime, SessionError> {
        self.wait_for_running(Duration::MAX)?;
        let info = self.describe(self.launches, &[], call, shape)?;
        // SAFETY: the caller's promise.
        let time = unsafe {
            match self.logs {
                _ if !info.is_recorded() => self.plain_launch(call, shape, info),
                Logs::Kept(_) => self.log_launch(call, shape, info),
                Logs::Streamed(_) => self.stream_launch(call, shape, info),
            }
        };
        if let Err(error) = &time {
            self.end_failed(info, error);
        }
        let time = time?;
        self.launches += 1;
        self.total.launches += 1;
        self.total.kernel += time.kernel;
        let drains = if info.is_recorded() {
            self.total.recorded_launches += 1;
            self.count_recorded(&info);
            self.window.max_events.is_some() || self.should_drain()?
        } else {
            // The file's part of a launch that leaves nothing behind.
            self.pending.len() >= MAX_PENDING
        };
        match drains {
            // The next launch asks how many events there are.
            true if self.window.max_events.is_some() => self.drain_and_count()?,
            true => self.drain()?,
            false => {}
        }
        Ok(time)
    }

    /// Describes a launch for the file, and which of its warps are recorded. Launches `before` it will begin
    /// with it.
    fn describe(
        &self,
        number: u32,
        before: &[LaunchInfo],
        call: &KernelCall,
        shape: &LaunchShape,
    ) -> Result<LaunchInfo, SessionError> {
        let kernel = self.kernel(call)?;
        let info = LaunchInfo::new(number, kernel as u32, shape.grid, shape.block, shape.dynamic_shared)?;
        let is_alike = |other: &&LaunchInfo| other.kernel() == info.kernel() && other.is_recorded();
        let launches = self.recorded_of.get(kernel).copied().unwrap_or_default()
            + before.iter().filter(is_alike).count() as u64;
        Ok(info.with_chosen(self.window.choose(call.name(), &info, self.total.recorded, launches))?)
    }

    /// Takes note that a launch is recorded.
    fn count_recorded(&mut self, info: &LaunchInfo) {
        let kernel = info.kernel() as usize;
        self.recorded_of.resize(self.recorded_of.len().max(kernel + 1), 0);
        self.recorded_of[kernel] += 1;
    }

    /// Writes why a launch failed, ends the file, and gives the memory back, unless others still write into
    /// it: nothing more can be recorded.
    ///
    /// Errors on the way have nowhere to go: the launch's error counts. After an interruption the file has
    /// ended already.
    fn end_failed(&mut self, info: LaunchInfo, error: &SessionError) {
        self.end_early(info, error);
        if self.running.is_empty() {
            let _ = self.logs.free(self.device);
        }
    }

    /// Writes why a launch did not run to its end, and ends the file.
    fn end_early(&mut self, info: LaunchInfo, error: &SessionError) {
        if let Some(mut worker) = self.worker.take() {
            let begin = std::mem::take(&mut self.pending);
            let early_end = Some(Box::new((info, EarlyEnd::failed(error.to_string()))));
            let written = worker.write(Drained { begin, early_end, ..Drained::default() });
            // Dropped, the output is written as far as the system is concerned.
            let _ = written.and_then(|()| worker.finish()).map(|(writer, _)| drop(writer.finish()));
        }
    }

    /// Launches a kernel that is not recorded.
    unsafe fn plain_launch(
        &mut self,
        call: &KernelCall,
        shape: &LaunchShape,
        info: LaunchInfo,
    ) -> Result<LaunchTime, SessionError> {
        // SAFETY: the caller's promise.
        let time = unsafe { self.device.launch(call, shape, None) };
        self.launched(time, info)
    }

    /// Launches a kernel whose logs stay until it has ended.
    unsafe fn log_launch(
        &mut self,
        call: &KernelCall,
        shape: &LaunchShape,
        info: LaunchInfo,
    ) -> Result<LaunchTime, SessionError> {
        let Logs::Kept(pool) = &self.logs else { return Err(SessionError::Unusable) };
        if !self.pending.is_empty() && pool.has_room(&[info], &[]) != Room::Enough {
            self.drain()?;
        }
        let Logs::Kept(pool) = &mut self.logs else { return Err(SessionError::Unusable) };
        let mark = pool.mark();
        let logs = pool.prepare(&[info], false)?[0];
        let Self { recording, placement, chooses, .. } = *self;
        let tracing = Tracing { recording, placement, chooses, logs };
        // SAFETY: the caller's promise for the arguments; the pool is prepared for this launch.
        let time = unsafe { self.device.launch(call, shape, Some(&tracing)) };
        match &time {
            Ok(time) => pool.ended(&[info.kernel()], time.claims),
            Err(_) => pool.pass_over(&mark),
        }
        self.launched(time, info)
    }

    /// Takes note of a launch that is over. If it has failed, drains what came before it.
    fn launched(
        &mut self,
        time: Result<LaunchTime, DeviceError>,
        info: LaunchInfo,
    ) -> Result<LaunchTime, SessionError> {
        if time.is_ok() {
            self.pending.push(info);
        } else if !matches!(time, Err(DeviceError::NotLaunched { .. })) {
            // It may still be there: on the simulator it is, on a GPU mostly not.
            let _ = self.drain();
        }
        Ok(time?)
    }

    /// Whether so much is on the device that it is worth a drain.
    fn should_drain(&mut self) -> Result<bool, SessionError> {
        Ok(match &mut self.logs {
            Logs::Kept(pool) => pool.should_drain(),
            Logs::Streamed(streams) => streams.should_look(self.device.live()?)?,
        })
    }

    /// Brings what is on the device to the writer.
    fn drain(&mut self) -> Result<(), SessionError> {
        if let Logs::Streamed(_) = self.logs {
            return self.drain_streams();
        }
        if !self.running.is_empty() {
            return Ok(());
        }
        let pending = std::mem::take(&mut self.pending);
        if self.worker.is_none() || pending.is_empty() {
            return Ok(());
        }
        let (Logs::Kept(pool), Some(worker)) = (&mut self.logs, &mut self.worker) else { return Ok(()) };
        if pool.is_empty() {
            // None of them was recorded.
            return worker.write(Drained { begin: pending, ..worker.empty() });
        }
        let cost = drain::drain(self.device, pool, self.recording, pending, worker)?;
        self.total.encoding += cost.encoding;
        self.total.copy += cost.copy;
        self.total.memory = pool.memory_use();
        Ok(())
    }

    /// Waits until everything that was recorded so far is written: [`total`](Self::total) then counts all of
    /// it.
    ///
    /// # Errors
    /// If the device or the file fails.
    pub fn flush(&mut self) -> Result<(), SessionError> {
        self.guarded(Self::drain_and_count)
    }

    /// Drains what was recorded so far, and does not wait until it is written. While launches run that were
    /// [begun](Self::begin), nothing is drained.
    ///
    /// # Errors
    /// If the device fails, or what was written before could not be.
    pub fn drain_now(&mut self) -> Result<(), SessionError> {
        self.guarded(Self::drain)
    }

    fn drain_and_count(&mut self) -> Result<(), SessionError> {
        self.drain()?;
        if let Some(worker) = &mut self.worker {
            let written = worker.flush()?;
            self.total.written(&written);
        }
        Ok(())
    }

    /// Sums over all launches: the times of kernels and copies up to now, the rest up to the last
    /// [`flush`](Self::flush).
    pub fn total(&self) -> &LaunchReport {
        &self.total
    }

    /// How many warps rounds have encoded.
    #[cfg(test)]
    pub(crate) fn warps_in_rounds(&self) -> u64 {
        match &self.logs {
            Logs::Streamed(streams) => streams.warps_in_rounds(),
            Logs::Kept(_) => 0,
        }
    }

    /// Writes what is left and the index, and ends the file.
    ///
    /// # Errors
    /// If the device fails, the file cannot be written, or an earlier call failed; [`SessionError::Running`]
    /// if launches still run that were [begun](Self::begin): the file says so, and the device keeps the
    /// memory in which they write.
    pub fn finish(mut self) -> Result<(W, Summary, LaunchReport), SessionError> {
        self.guarded(|session| session.drain())?;
        if let Some(still) = self.running.first() {
            let (info, running) = (still.launches[0], self.running.len());
            let error = SessionError::Running { running };
            self.end_early(info, &error);
            return Err(error);
        }
        let worker = self.worker.take().ok_or(SessionError::Unusable)?;
        // Before the thread's answer, so that no error of the file leaves memory behind.
        self.logs.free(self.device)?;
        let (writer, written) = worker.finish()?;
        self.total.written(&written);
        let started = Instant::now();
        let (output, summary) = writer.finish()?;
        self.total.write += started.elapsed();
        Ok((output, summary, self.total))
    }
}

impl<W: Write + Send + 'static> Drop for Session<'_, W> {
    fn drop(&mut self) {
        // Errors have nowhere to go here. After `finish` there is no worker, and the pool is free.
        if self.worker.is_some() {
            if !self.failed {
                let _ = self.drain();
            }
            self.worker = None;
            if self.running.is_empty() {
                let _ = self.logs.free(self.device);
            }
        }
    }
}

impl<W: Write + Send + 'static> Launcher for Session<'_, W> {
    fn device(&mut self) -> &mut dyn Device {
        self.device
    }

    unsafe fn launch(&mut self, call: &KernelCall, shape: &LaunchShape) -> Result<LaunchTime, SessionError> {
        // SAFETY: the caller's promise.
        unsafe { self.record(call, shape) }
    }
}
#[cfg(test)]
mod tests;
