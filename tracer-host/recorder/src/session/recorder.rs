//! A recording without its device. Launches run one after the other, and each call waits for its launch.

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

/// Records launches of one program on one device into one file. Each call takes the device that the recorder
/// was started with; a [`Session`](crate::Session) contains both.
///
/// All device memory is allocated at the start, within [one limit](crate::RecordingSpec::memory_bytes). The
/// data of launches is drained when enough has accumulated or space is short. A thread writes it while the
/// program continues, so that a short launch has little overhead. If a launch fails, the recorder writes the
/// data so far and the error, ends the file, and is unusable. To end a recorder, [finish](Self::finish) or
/// [close](Self::close) it: dropping it does not free its device memory.
pub struct Recorder<W: Write + Send + 'static> {
    pub(super) ledger: Ledger,
    /// Logs that the host empties; `None` if logs are drained between launches.
    pub(super) streams: Option<Box<Streams>>,
    /// `None` after the end.
    pub(super) worker: Option<Worker<W>>,
    pub(super) recording: Recording,
    /// Module of each kernel known at the start, by kernel index; empty if started without modules.
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
    /// Lets the recording end while a kernel runs. When `asked` is set, the recorder writes the data of the
    /// kernel so far, ends the file, and calls `tell`. The file contains the positions of the warps, unless
    /// logs are [streamed](crate::Policy::Stream) or [rings](crate::Policy::Ring). A running GPU kernel
    /// cannot be stopped, so `tell` should end the process. If it returns, the recorder waits for the kernel,
    /// and the launch fails with [`SessionError::Interrupted`]. Fails if the driver fails.
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

    /// Adds kernels, each with its source file or an empty text, and locations. They can be recorded from now
    /// on. If the recorder was started without kernels, its window may name kernels added here. Fails if an
    /// ID is 0, in use, or too large for the codec, a parent location does not exist, or the file cannot hold
    /// that many kernels. Nothing is added then, and the recording continues.
    pub fn add_kernels(
        &mut self,
        kernels: &[(&str, &str)],
        locations: Vec<LocationInfo>,
    ) -> Result<(), SessionError> {
        self.ledger.add_kernels(kernels, locations).map(drop)
    }

    /// Sends a message to the writer. If the format cannot hold it, writing the file fails.
    pub fn send(&mut self, message: HostMessage) {
        self.ledger.send(message);
    }

    /// Registers a change of the memory that later launches can access.
    pub fn change_memory(&mut self, change: MemoryChange) {
        self.ledger.change_memory(change);
    }

    /// Sets the label of later launches; none if it is empty.
    pub fn label(&mut self, label: &str) {
        self.ledger.name.label = Some(label).filter(|label| !label.is_empty()).map(Arc::from);
    }

    /// Runs a kernel and waits for it. Its records stay on the device or are sent to the file. Fails if the
    /// program does not contain the kernel, the launch has a shape that cannot be traced, the kernel fails,
    /// or the file cannot be written; this may be an error of an earlier launch.
    ///
    /// # Safety
    /// The arguments refer to memory of the device that is valid for the kernel's accesses.
    pub unsafe fn record(
        &mut self,
        device: &mut dyn Device,
        call: &KernelCall,
        shape: &LaunchShape,
    ) -> Result<LaunchTime, SessionError> {
        self.guarded(|recorder| {
            // SAFETY: the caller guarantees the arguments.
            unsafe { recorder.launch(device, call, shape) }
        })
    }

    /// Runs `run`. An error makes the recorder unusable.
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
        // SAFETY: the caller guarantees the arguments.
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
            // Writes launches without logs once enough of them are pending.
            self.drain_all(device, false)?;
        } else if self.ledger.window.max_events.is_some() {
            // The next launch needs the number of recorded events.
            self.drain_and_count(device)?;
        } else {
            self.drain(device)?;
        }
        Ok(time)
    }

    /// Launches a kernel that is not recorded, or whose logs stay in place until it has ended.
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
        // SAFETY: the caller guarantees the arguments, and the pool is prepared for this launch.
        let time = unsafe { device.launch(call, shape, traced) };
        self.ledger.send(HostMessage::Sites(sites));
        match &time {
            Ok(time) => {
                self.ledger.ended(ticket);
                self.ledger.total.kernel += time.kernel;
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
                // The positions of the warps replace the message, if they are known.
                let message =
                    (!(is_given_up || error.is_hang() && info.is_recorded())).then(|| error.to_string());
                // Host memory is still readable, and so are the records of a simulated kernel.
                let written = self.write_rest(device, (ticket, message));
                if is_given_up {
                    let (launch, kernel) = (info.number(), call.name().to_owned());
                    if let Some(interrupt) = &mut self.interrupt {
                        (interrupt.tell)(&Interrupted { kernel: kernel.clone(), launch });
                    }
                    // The kernel still uses its arguments and the tracer's memory.
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

    /// Writes all data that was not drained, and ends the file. The second argument has launches that failed,
    /// with the error, or had not ended (`None`). Changes nothing if the device cannot be read.
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

    /// Writes why a launch failed, ends the file, and frees the memory. Ignores further errors, because the
    /// launch's error is returned. After an interruption the file has ended already.
    fn end_failed(&mut self, device: &mut dyn Device, info: LaunchInfo, error: &SessionError) {
        if let Some(worker) = self.worker.take() {
            end_early(worker, self.ledger.job(None), info, error);
        }
        let _ = self.free(device);
    }

    fn drain(&mut self, device: &mut dyn Device) -> Result<(), SessionError> {
        self.drain_all(device, true)
    }

    /// Sends data to the writer: everything with `all`, otherwise only if enough has accumulated.
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

    /// Waits until everything recorded so far is written. [`total`](Self::total) then includes it. Fails if
    /// the device or the file fails.
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

    /// Returns the totals: kernel and copy times up to now, the rest up to the last [`flush`](Self::flush).
    pub fn total(&self) -> &LaunchReport {
        &self.ledger.total
    }

    #[cfg(test)]
    pub(crate) fn warps_in_rounds(&self) -> u64 {
        self.streams.as_ref().map_or(0, |streams| streams.warps_in_rounds)
    }

    /// Writes the remaining data and the index. Fails if the device, the file, or an earlier call has failed.
    pub fn finish(&mut self, device: &mut dyn Device) -> Result<(W, Summary, LaunchReport), SessionError> {
        self.guarded(|recorder| {
            recorder.drain(device)?;
            if let (Some(worker), Some(clock)) = (&mut recorder.worker, &recorder.ledger.clock) {
                compare_clocks(clock, device, worker);
            }
            Ok(())
        })?;
        let worker = self.worker.take().ok_or(SessionError::Unusable)?;
        // Waits for the writer first, which has memory of the device; frees also if the file has failed.
        let ended = end(worker, &mut self.ledger.total);
        self.free(device)?;
        ended
    }

    /// Writes the remaining data without an index and frees the memory; ignores errors. No-op after the end.
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

pub(super) fn compare_clocks<W: Write + Send + 'static>(
    clock: &HostClock,
    device: &mut dyn Device,
    worker: &mut Worker<W>,
) {
    worker.send_times(Vec::new(), vec![clock.compare(device)]);
}

/// Writes why a launch did not complete and all pending messages, and ends the file.
pub(super) fn end_early<W: Write + Send + 'static>(
    mut worker: Worker<W>,
    Job { news, plain: begin, host, .. }: Job,
    info: LaunchInfo,
    error: &SessionError,
) {
    let early_end = Some(Box::new((info, EarlyEnd::failed(error.to_string()))));
    news.into_iter().for_each(|message| worker.send(message));
    let written = worker.write(Drained { begin, early_end, ..Drained::default() });
    worker.send_times(host, Vec::new());
    // The output is dropped, which writes it as far as the system allows.
    let _ = written.and_then(|()| worker.finish()).map(|(writer, _)| drop(writer.finish()));
}
