//! Launches whose logs the host empties while they run.

use std::io::Write;
use std::time::Instant;

use warptrace_device::KernelCall;
use warptrace_format::file::{EarlyEnd, HostLaunch, LaunchInfo};

use super::interrupt::{Interrupt, Interrupted};
use super::stream::Streams;
use super::worker::{Drained, Worker};
use super::{Recorder, SessionError};
use crate::{Device, LaunchShape, LaunchTime, LiveMemory, Logs, Prepare, Traced};

/// Sends the results of a scan to the writer, with the launches that it does not have yet.
fn send<W: Write + Send + 'static>(
    worker: &mut Worker<W>,
    begin: &mut Vec<LaunchInfo>,
    scan: Drained,
) -> Result<(), SessionError> {
    if scan.packed.is_empty() && scan.end.is_empty() {
        return Ok(());
    }
    worker.write(Drained { begin: std::mem::take(begin), ..scan })
}

struct Serving<'a, W> {
    streams: &'a mut Streams,
    /// `None` after an interruption.
    worker: &'a mut Option<Worker<W>>,
    /// Launches that the writer does not have yet.
    begin: Vec<LaunchInfo>,
    interrupt: Option<&'a mut Interrupt>,
    /// Launch times that the writer does not have yet; the last one is of the running launch.
    ran: Vec<HostLaunch>,
    info: LaunchInfo,
    kernel: &'a str,
    /// The error after which nothing more is done.
    failed: Option<SessionError>,
}

impl<W: Write + Send + 'static> Serving<'_, W> {
    fn serve(&mut self, memory: &mut dyn LiveMemory) {
        if self.failed.is_some() {
            return;
        }
        let asked = self.interrupt.as_ref().is_some_and(|interrupt| interrupt.is_asked());
        let done = if asked { self.end_now(memory) } else { self.scan(memory) };
        if let Err(error) = done {
            // The kernel continues without waiting for memory. The launch returns errors of the device.
            let _ = self.streams.refuse(memory);
            self.failed = Some(error);
        }
    }

    fn scan(&mut self, memory: &mut dyn LiveMemory) -> Result<(), SessionError> {
        let asked = self.interrupt.as_ref().map(|interrupt| &*interrupt.asked);
        let scan = self.streams.scan_until(memory, asked)?;
        self.send(scan)
    }

    fn send(&mut self, scan: Drained) -> Result<(), SessionError> {
        match self.worker {
            Some(worker) => send(worker, &mut self.begin, scan),
            None => Ok(()),
        }
    }

    /// Writes the data so far, ends the file, and reports the kernel.
    fn end_now(&mut self, memory: &mut dyn LiveMemory) -> Result<(), SessionError> {
        let encoded = self.streams.finish_rounds(memory);
        self.send(encoded)?;
        // The second scan finds all predecessors of the runs that the first one finds. Nothing is encoded
        // between them and lanes get no segments, because a caller waits.
        self.streams.only_scan(memory)?;
        self.streams.only_scan(memory)?;
        let number = self.info.number();
        let rest = self.streams.abandon(Some(memory))?;
        self.send(rest)?;
        let mut worker = self.worker.take().ok_or(SessionError::Unusable)?;
        let begin = std::mem::take(&mut self.begin);
        let early_end = Some(Box::new((self.info, EarlyEnd::Interrupted)));
        worker.write(Drained { begin, early_end, ..Drained::default() })?;
        worker.send_times(std::mem::take(&mut self.ran), Vec::new());
        let (writer, _) = worker.finish()?;
        // The output is dropped, which writes it as far as the system allows.
        drop(writer.finish()?);
        let kernel = self.kernel.to_owned();
        if let Some(interrupt) = &mut self.interrupt {
            (interrupt.tell)(&Interrupted { kernel: kernel.clone(), launch: number });
        }
        Err(SessionError::Interrupted { launch: number, kernel })
    }
}

impl<W: Write + Send + 'static> Recorder<W> {
    /// Launches a kernel, and sends its records to the writer while it runs.
    ///
    /// # Safety
    /// See [`record`](Recorder::record).
    pub(super) unsafe fn stream_launch(
        &mut self,
        device: &mut dyn Device,
        call: &KernelCall,
        shape: &LaunchShape,
        info: LaunchInfo,
    ) -> Result<LaunchTime, SessionError> {
        let recording = self.recording;
        let Some(streams) = &self.streams else { return Err(SessionError::Unusable) };
        let traced = Some((recording, self.ledger.codec));
        let prepare = Prepare { launch: Some((call, shape)), traced, ..Prepare::default() };
        let resident = device.prepare(&prepare)?;
        if !streams.has_room(resident, &info) {
            self.drain_streams(device)?;
        }
        let Some(streams) = &mut self.streams else { return Err(SessionError::Unusable) };
        let logs = streams.prepare(device, resident, &info)?;
        let name = self.ledger.name.clone();
        self.ledger.send_name(&[info], &name);
        let (news, mut ran) = self.ledger.take_news();
        if let Some(worker) = &mut self.worker {
            news.into_iter().for_each(|message| worker.send(message));
        }
        self.ledger.plain.push(info);
        let begin = self.ledger.now();
        ran.extend(begin.map(|begin| HostLaunch {
            launch: info.number(),
            begin: begin.realtime,
            nanoseconds: None,
        }));
        let mut serving = Serving {
            streams,
            worker: &mut self.worker,
            begin: std::mem::take(&mut self.ledger.plain),
            interrupt: self.interrupt.as_mut(),
            ran,
            info,
            kernel: call.name(),
            failed: None,
        };
        let mut serve = |memory: &mut dyn LiveMemory| {
            serving.serve(memory);
            Ok(())
        };
        // SAFETY: the caller guarantees the arguments, and the memory is prepared for this launch.
        let time = unsafe {
            let logs = Logs::Streamed { logs: &logs, serve: &mut serve };
            // Streamed launches record no accesses.
            device.launch(call, shape, Some(Traced { recording, logs, sites: &mut Vec::new() }))
        };
        // The time of this launch is stored with its end.
        serving.ran.pop();
        if let Err(error) = time {
            // Writes the data of this launch and earlier ones.
            let _ = serving.streams.abandon(None).map(|scan| serving.send(scan));
            self.ledger.put_back(serving.begin, serving.ran);
            self.ledger.note_ran(&[info], begin);
            return Err(error.into());
        }
        serving.streams.launched(info.number());
        let failed = serving.failed;
        self.ledger.put_back(serving.begin, serving.ran);
        let time = failed.map_or(Ok(time?), Err)?;
        self.ledger.launched(&info, time.kernel, begin);
        Ok(time)
    }

    pub(super) fn drain_streams(&mut self, device: &mut dyn Device) -> Result<(), SessionError> {
        let (Some(streams), Some(worker)) = (&mut self.streams, &mut self.worker) else {
            return Ok(());
        };
        // Added kernels and locations precede their launches.
        let (news, host) = self.ledger.take_news();
        news.into_iter().for_each(|message| worker.send(message));
        worker.send_times(host, Vec::new());
        let started = Instant::now();
        let scan = streams.scan(device.live()?, true)?;
        self.ledger.total.copy += started.elapsed();
        self.ledger.total.memory = streams.memory_use();
        send(worker, &mut self.ledger.plain, scan)?;
        if self.ledger.plain.is_empty() {
            return Ok(());
        }
        worker.write(Drained { begin: std::mem::take(&mut self.ledger.plain), ..Drained::default() })
    }
}
