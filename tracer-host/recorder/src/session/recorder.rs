//! A recording apart from its device: launches are made one after the other, and each is waited for.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use warptrace_device::KernelCall;
use warptrace_format::file::{EarlyEnd, LaunchInfo, LocationInfo};

use super::interrupt::{Interrupt, Interrupted};
use super::ledger::{Job, Ledger, MAX_PENDING, Reserved, Ticket};
use super::pool::{Effort, Short};
use super::running::{self, Rest};
use super::stream::Streams;
use super::worker::{Drained, Worker};
use super::{LaunchReport, SessionError, drain};
use crate::writer::Summary;
use crate::{
    Device, DeviceError, HostClock, HostMessage, LaunchShape, LaunchTime, Logs, MemoryChange, Recording,
    Traced,
};

/// Records launches of one program on one device into one file, where the device is lent to each call. A
/// [`Session`](crate::Session) is one with its device.
///
/// All device memory that it uses is allocated when it starts, within [one
/// limit](crate::RecordingSpec::memory_bytes). What launches leave there is drained when it is worth it, or
/// when room is short, and written by a thread while the program goes on: a short launch costs no more than
/// itself. A launch that fails leaves the recorder unusable: what was recorded until then and the error are
/// written, and end the file.
///
/// All calls of a recorder are given the device with which it was started. At its end it is
/// [finished](Self::finish) or [closed](Self::close); dropped, it leaves its memory to the device.
pub struct Recorder<W: Write + Send + 'static> {
    pub(super) ledger: Ledger,
    /// Logs that the host empties; `None` if those of launches are drained between them.
    pub(super) streams: Option<Box<Streams>>,
    /// `None` after the end.
    pub(super) worker: Option<Worker<W>>,
    /// What traced kernels record.
    pub(super) recording: Recording,
    /// The modules of the file's first kernels, where they were given with modules.
    pub(super) modules: Vec<&'static str>,
    pub(super) failed: bool,
    pub(super) interrupt: Option<Interrupt>,
}

impl<W: Write + Send + 'static> std::fmt::Debug for Recorder<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder")
            .field("recording", &self.recording)
            .field("total", &self.ledger.total)
            .finish_non_exhaustive()
    }
}

impl<W: Write + Send + 'static> Recorder<W> {
    /// Lets the recording end in the middle of a kernel: when `asked` is set, what has come of the kernel is
    /// written, the file is ended, and `tell` is called. The file says where the warps were, unless logs are
    /// [streamed](crate::Policy::Stream) or [rings](crate::Policy::Ring).
    ///
    /// Nothing can end a kernel of a GPU. So `tell` best ends the process; if it returns, the recording waits
    /// for the kernel, and the launch fails with [`SessionError::Interrupted`].
    ///
    /// # Errors
    /// If the driver fails.
    pub fn interrupt_by(
        &mut self,
        device: &mut dyn Device,
        asked: Arc<AtomicBool>,
        tell: impl FnMut(&Interrupted) + 'static,
    ) -> Result<(), SessionError> {
        if self.streams.is_none() {
            device.give_up_by(Some(&asked))?;
        }
        self.interrupt = Some(Interrupt { asked, tell: Box::new(tell) });
        Ok(())
    }

    /// Tells the recorder of kernels, each with its source file or an empty text, and of locations, which it
    /// can record from now on. If it was started without any kernel, its window may name such.
    ///
    /// # Errors
    /// If an id is 0, taken, or too large for the codec, a location lies in one that is not there, or there
    /// are more kernels than a file can name: nothing is added then, and the recording goes on.
    pub fn add_kernels(
        &mut self,
        kernels: &[(&str, &str)],
        locations: Vec<LocationInfo>,
    ) -> Result<(), SessionError> {
        self.ledger.add_kernels(kernels, locations).map(drop)
    }

    /// Says something to the trace's writer. If the format does not hold it, writing the file fails.
    pub fn send(&mut self, message: HostMessage) {
        self.ledger.send(message);
    }

    /// Notes a change of the memory that launches can reach from the next one on.
    pub fn change_memory(&mut self, change: MemoryChange) {
        self.ledger.change_memory(change);
    }

    /// Says what launches are called that are made from now on; nothing if it is empty.
    pub fn label(&mut self, label: &str) {
        self.ledger.name.label = Some(label).filter(|label| !label.is_empty()).map(Arc::from);
    }

    /// Runs a kernel and waits for it. What it recorded stays on the device, or is on its way to the file.
    ///
    /// # Safety
    /// The arguments name memory of the device that is valid for what the kernel does with it.
    ///
    /// # Errors
    /// If the kernel was not named in the program, the launch has a shape that cannot be traced, the kernel
    /// fails, or the file cannot be written (which may have been found out about an earlier launch).
    pub unsafe fn record(
        &mut self,
        device: &mut dyn Device,
        call: &KernelCall,
        shape: &LaunchShape,
    ) -> Result<LaunchTime, SessionError> {
        self.guarded(|recorder| {
            // SAFETY: the caller's promise.
            unsafe { recorder.launch(device, call, shape) }
        })
    }

    /// Runs `run`; an error makes the recorder unusable.
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

    unsafe fn launch(
        &mut self,
        device: &mut dyn Device,
        call: &KernelCall,
        shape: &LaunchShape,
    ) -> Result<LaunchTime, SessionError> {
        let kernel = self.kernel(call)?;
        let info = self.ledger.describe(&[], kernel, shape)?;
        // SAFETY: the caller's promise.
        let launched = unsafe {
            if info.is_recorded() && self.streams.is_some() {
                self.stream_launch(device, call, shape, info)
            } else {
                self.log_launch(device, call, shape, info)
            }
        };
        let time = launched.inspect_err(|error| self.end_failed(device, info, error))?;
        let drains = match (&mut self.streams, &self.ledger.pool) {
            _ if info.is_recorded() && self.ledger.window.max_events.is_some() => true,
            (Some(streams), _) if info.is_recorded() => streams.should_scan(device.live()?)?,
            (None, Some(pool)) if info.is_recorded() => pool.should_drain(),
            _ => false,
        };
        if !drains {
            // What leaves nothing behind is written when there is much of it.
            self.drain_all(device, false)?;
        } else if self.ledger.window.max_events.is_some() {
            // The next launch asks how many events there are.
            self.drain_and_count(device)?;
        } else {
            self.drain(device)?;
        }
        Ok(time)
    }

    /// Launches a kernel that is not recorded, or whose logs stay until it has ended.
    unsafe fn log_launch(
        &mut self,
        device: &mut dyn Device,
        call: &KernelCall,
        shape: &LaunchShape,
        info: LaunchInfo,
    ) -> Result<LaunchTime, SessionError> {
        let Reserved { ticket, logs } = match self.ledger.reserve(vec![info], Effort::Ample) {
            Ok(reserved) => reserved,
            Err(Short::Never) => return Err(self.ledger.refusal(&[info])),
            Err(_) => {
                self.drain(device)?;
                self.ledger.reserve(vec![info], Effort::Least).map_err(|_| self.ledger.refusal(&[info]))?
            }
        };
        let recording = self.recording;
        let traced = logs.first().and_then(Option::as_ref);
        let mut sites = Vec::new();
        let traced = traced.map(|logs| Traced { recording, logs: Logs::Kept(logs), sites: &mut sites });
        // SAFETY: the caller's promise for the arguments; the pool is prepared for this launch.
        let time = unsafe { device.launch(call, shape, traced) };
        self.ledger.send(HostMessage::Sites(sites));
        match &time {
            Ok(time) => {
                self.ledger.ended(ticket, time.kernel);
                for (arena, _) in self.ledger.unread() {
                    self.ledger.settle(arena, time.claims.log_entries, ticket);
                }
            }
            Err(DeviceError::NotLaunched { .. }) => self.ledger.cancel(ticket),
            Err(error) => {
                let is_given_up = matches!(error, DeviceError::GivenUp);
                if is_given_up {
                    device.read_beside();
                }
                // Where warps were says more, if it is known.
                let message =
                    (!(is_given_up || error.is_hang() && info.is_recorded())).then(|| error.to_string());
                // Memory of the host is still there, and what a simulated kernel did.
                let written = self.write_rest(device, (ticket, message));
                if is_given_up {
                    let (launch, kernel) = (info.number(), call.name().to_owned());
                    if let Some(interrupt) = &mut self.interrupt {
                        (interrupt.tell)(&Interrupted { kernel: kernel.clone(), launch });
                    }
                    // It uses its arguments, and the tracer's memory.
                    device.wait()?;
                    written?;
                    return Err(SessionError::Interrupted { launch, kernel });
                }
                if written.is_err() {
                    self.ledger.failed(ticket);
                }
            }
        }
        Ok(time?)
    }

    /// Writes all that was not drained, and ends the file. `failed`: launches that failed, and why, or had
    /// not ended.
    ///
    /// # Errors
    /// If the device cannot be read: nothing has changed then; or the file not written.
    fn write_rest(
        &mut self,
        device: &mut dyn Device,
        (ticket, message): (Ticket, Option<String>),
    ) -> Result<(), SessionError> {
        if self.streams.is_some() {
            self.drain_streams(device)?;
        }
        let claimed = running::claimed(device, self.ledger.counters())?;
        let failed = Some((self.ledger.fail(ticket), message));
        let (lefts, outside) = self.ledger.left(&claimed);
        let rest = Rest { lefts, job: self.ledger.job(None), outside, failed };
        let mut worker = self.worker.take().ok_or(SessionError::Unusable)?;
        let written = running::write_rest(device, &mut worker, rest);
        written.and(end(worker, &mut self.ledger.total).map(drop))
    }

    /// Writes why a launch failed, ends the file, and gives the memory back: nothing more can be recorded.
    ///
    /// Errors on the way have nowhere to go: the launch's error counts. After an interruption the file has
    /// ended already.
    fn end_failed(&mut self, device: &mut dyn Device, info: LaunchInfo, error: &SessionError) {
        if let Some(worker) = self.worker.take() {
            end_early(worker, self.ledger.job(None), info, error);
        }
        let _ = self.free(device);
    }

    /// Brings what is on the device to the writer.
    fn drain(&mut self, device: &mut dyn Device) -> Result<(), SessionError> {
        self.drain_all(device, true)
    }

    /// Brings what is worth it to the writer, or all.
    fn drain_all(&mut self, device: &mut dyn Device, all: bool) -> Result<(), SessionError> {
        if self.streams.is_some() {
            return if all || self.ledger.plain.len() >= MAX_PENDING {
                self.drain_streams(device)
            } else {
                Ok(())
            };
        }
        let Some(worker) = &mut self.worker else { return Ok(()) };
        drain::run_all(device, worker, |drained| self.ledger.go_on(drained, all))
    }

    /// Waits until everything that was recorded so far is written: [`total`](Self::total) then counts all of
    /// it.
    ///
    /// # Errors
    /// If the device or the file fails.
    pub fn flush(&mut self, device: &mut dyn Device) -> Result<(), SessionError> {
        self.guarded(|recorder| recorder.drain_and_count(device))
    }

    fn drain_and_count(&mut self, device: &mut dyn Device) -> Result<(), SessionError> {
        self.drain(device)?;
        if let Some(worker) = &mut self.worker {
            let written = worker.flush()?;
            self.ledger.total.written(&written);
        }
        Ok(())
    }

    /// Sums over all launches: the times of kernels and copies up to now, the rest up to the last
    /// [`flush`](Self::flush).
    pub fn total(&self) -> &LaunchReport {
        &self.ledger.total
    }

    /// How many warps rounds have encoded.
    #[cfg(test)]
    pub(crate) fn warps_in_rounds(&self) -> u64 {
        self.streams.as_ref().map_or(0, |streams| streams.warps_in_rounds)
    }

    /// Writes what is left and the index, and ends the file.
    ///
    /// # Errors
    /// If the device fails, the file cannot be written, or an earlier call failed.
    pub fn finish(&mut self, device: &mut dyn Device) -> Result<(W, Summary, LaunchReport), SessionError> {
        self.guarded(|recorder| {
            recorder.drain(device)?;
            match (&mut recorder.worker, &recorder.ledger.clock) {
                (Some(worker), Some(clock)) => compare_clocks(clock, device, worker),
                _ => Ok(()),
            }
        })?;
        let worker = self.worker.take().ok_or(SessionError::Unusable)?;
        // Before the thread's result, so that no error of the file leaves memory behind.
        self.free(device)?;
        end(worker, &mut self.ledger.total)
    }

    /// Writes what is left, but no index, and gives the memory back. Errors have nowhere to go here; after
    /// [`finish`](Self::finish) there is nothing to do.
    pub fn close(&mut self, device: &mut dyn Device) {
        if self.worker.is_some() {
            if !self.failed {
                let _ = self.drain(device);
            }
            self.worker = None;
            let _ = self.free(device);
        }
    }

    fn free(&mut self, device: &mut dyn Device) -> Result<(), SessionError> {
        if self.interrupt.is_some() {
            device.give_up_by(None)?;
        }
        match (&mut self.streams, &mut self.ledger.pool) {
            (Some(streams), _) => streams.free(device),
            (None, Some(pool)) => pool.free(device),
            (None, None) => Ok(()),
        }
    }
}

/// Ends a file with its index.
pub(super) fn end<W: Write + Send + 'static>(
    worker: Worker<W>,
    total: &mut LaunchReport,
) -> Result<(W, Summary, LaunchReport), SessionError> {
    let (writer, written) = worker.finish()?;
    total.written(&written);
    let started = Instant::now();
    let (output, summary) = writer.finish()?;
    total.write += started.elapsed();
    Ok((output, summary, *total))
}

/// Compares the host's clocks with the device's timer at the end.
pub(super) fn compare_clocks<W: Write + Send + 'static>(
    clock: &HostClock,
    device: &mut dyn Device,
    worker: &mut Worker<W>,
) -> Result<(), SessionError> {
    worker.send_times(Vec::new(), vec![clock.compare(device)])
}

/// Writes why a launch did not run to its end, and what else the file has not been told, and ends the file.
pub(super) fn end_early<W: Write + Send + 'static>(
    mut worker: Worker<W>,
    Job { news, plain: begin, host, .. }: Job,
    info: LaunchInfo,
    error: &SessionError,
) {
    let early_end = Some(Box::new((info, EarlyEnd::failed(error.to_string()))));
    let written = news.into_iter().try_for_each(|message| worker.send(message));
    let written = written.and_then(|()| worker.write(Drained { begin, early_end, ..Drained::default() }));
    let written = written.and_then(|()| worker.send_times(host, Vec::new()));
    // Dropped, the output is written as far as the system is concerned.
    let _ = written.and_then(|()| worker.finish()).map(|(writer, _)| drop(writer.finish()));
}
