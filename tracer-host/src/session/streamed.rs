//! Launches whose logs the host empties while they run.

use std::io::Write;
use std::time::Instant;

use warptrace_device::KernelCall;
use warptrace_format::file::LaunchInfo;

use super::stream::Look;
use super::worker::{Drained, Worker};
use super::{Logs, Session, SessionError};
use crate::{DeviceError, LaunchShape, LaunchTime, LiveMemory, Streaming};

/// Chunks and ends of launches on their way to the writer.
struct Sent<'a, W> {
    worker: &'a mut Worker<W>,
    /// Launches of which the writer does not know.
    begin: Vec<LaunchInfo>,
}

impl<W: Write + Send + 'static> Sent<'_, W> {
    fn send(&mut self, look: Look) -> Result<(), SessionError> {
        let Look { packed, end, accounts } = look;
        if packed.is_empty() && end.is_empty() {
            return Ok(());
        }
        let begin = std::mem::take(&mut self.begin);
        self.worker.write(Drained { begin, packed, end, accounts })
    }

    /// Tells the writer of launches of which there is nothing else to send.
    fn tell(&mut self) -> Result<(), SessionError> {
        if self.begin.is_empty() {
            return Ok(());
        }
        let begin = std::mem::take(&mut self.begin);
        self.worker.write(Drained { begin, ..Drained::default() })
    }
}

impl<W: Write + Send + 'static> Session<'_, W> {
    /// Launches a kernel, and brings what it records to the writer while it runs.
    ///
    /// # Safety
    /// As for [`record`](Session::record).
    pub(super) unsafe fn stream_launch(
        &mut self,
        call: &KernelCall,
        shape: &LaunchShape,
        info: LaunchInfo,
    ) -> Result<LaunchTime, SessionError> {
        let has_room = match &self.logs {
            Logs::Streamed(streams) => streams.has_room(self.device, &info),
            Logs::Kept(_) => true,
        };
        if !has_room {
            self.drain_streams()?;
        }
        let (Logs::Streamed(streams), Some(worker)) = (&mut self.logs, &mut self.worker) else {
            return Err(SessionError::Unusable);
        };
        let logs = streams.prepare(self.device, &info)?;
        self.pending.push(info);
        let Self { recording, placement, .. } = *self;
        let chooses = self.window.looks_inside();
        let streaming = Streaming { recording, placement, chooses, logs };
        let mut sent = Sent { worker, begin: std::mem::take(&mut self.pending) };
        let mut failed = None;
        let mut serve = |memory: &mut dyn LiveMemory| {
            if failed.is_some() {
                return Ok(());
            }
            let sending =
                streams.look(memory, false).map_err(SessionError::from).and_then(|look| sent.send(look));
            // The kernel goes on: it loses what finds no memory.
            failed = sending.err();
            Ok::<_, DeviceError>(())
        };
        // SAFETY: the caller's promise for the arguments; the memory is prepared for this launch.
        let time = unsafe { self.device.launch_streamed(call, shape, &streaming, &mut serve) };
        self.pending = sent.begin;
        streams.launched(info.number());
        let time = match time {
            Ok(time) => time,
            Err(error) => {
                // What has come of it and of those before is written.
                let look = streams.abandon();
                let begin = std::mem::take(&mut self.pending);
                let _ = Sent { worker, begin }.send(look);
                return Err(error.into());
            }
        };
        failed.map_or(Ok(time), Err)
    }

    /// Brings all that was recorded to the writer.
    pub(super) fn drain_streams(&mut self) -> Result<(), SessionError> {
        let begin = std::mem::take(&mut self.pending);
        let (Logs::Streamed(streams), Some(worker)) = (&mut self.logs, &mut self.worker) else {
            return Ok(());
        };
        let started = Instant::now();
        let look = streams.look(self.device.live(), true)?;
        self.total.copy += started.elapsed();
        let mut sent = Sent { worker, begin };
        sent.send(look)?;
        sent.tell()
    }
}
