//! A recording from its first launch to its last byte.

mod buffers;
mod code;
mod drain;
mod error;
mod interrupt;
mod launches;
mod ledger;
mod memory;
mod metadata;
mod modules;
mod options;
mod pool;
mod recorder;
mod start;
mod stream;
mod streamed;
mod worker;

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use warptrace_device::{KernelCall, KernelModule};
use warptrace_format::file::{LocationInfo, SiteInfo};

pub use self::buffers::{Memory, memory_of};
pub use self::error::SessionError;
pub use self::interrupt::{Interrupted, OpenRun, Standing};
pub use self::launches::{Drainer, Ended, Ending, Launches, Next, Patience};
pub use self::ledger::{Reserved, Ticket};
pub use self::metadata::{command_line, command_of};
pub use self::options::{LaunchReport, MemoryUse, TracedProgram, Waits};
pub use self::recorder::Recorder;
use crate::writer::Summary;
use crate::{Device, LaunchShape, LaunchTime, Launcher, RecordingSpec};

/// Records launches of one program on one device into one file: a [`Recorder`] with its device.
///
/// All device memory that it uses is allocated when it starts, within [one
/// limit](crate::RecordingSpec::memory_bytes). What launches leave there is drained when it is worth it, or
/// when room is short, and written by a thread while the program goes on: a short launch costs no more than
/// itself. A launch that fails leaves the session unusable: what was recorded until then and the error are
/// written, and end the file. When a session is dropped, what was recorded is written, too, and can be read,
/// but the file has no index.
#[derive(Debug)]
pub struct Session<'d, W: Write + Send + 'static> {
    device: Lent<'d>,
    recorder: Recorder<W>,
}

/// The device that a session has borrowed.
struct Lent<'d>(&'d mut dyn Device);

impl std::fmt::Debug for Lent<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.0.facts().info)
    }
}

impl<'d, W: Write + Send + 'static> Session<'d, W> {
    /// Starts a recording, as [`Recorder::start`].
    ///
    /// # Errors
    /// As there.
    pub fn start(
        device: &'d mut dyn Device,
        program: &TracedProgram<'_>,
        spec: &RecordingSpec,
        output: W,
    ) -> Result<Self, SessionError> {
        let recorder = Recorder::start(device, program, spec, output)?;
        Ok(Self { device: Lent(device), recorder })
    }

    /// Starts a recording, as [`Recorder::start_modules`], for one module.
    ///
    /// # Errors
    /// As there.
    pub fn start_module(
        device: &'d mut dyn Device,
        module: &KernelModule,
        spec: &RecordingSpec,
        output: W,
    ) -> Result<Self, SessionError> {
        let recorder = Recorder::start_modules(device, &[module], spec, output)?;
        Ok(Self { device: Lent(device), recorder })
    }

    /// Lets the session end in the middle of a kernel, as [`Recorder::interrupt_by`].
    pub fn interrupt_by(&mut self, asked: Arc<AtomicBool>, tell: impl FnMut(&Interrupted) + 'static) {
        self.recorder.interrupt_by(asked, tell);
    }

    /// Adds kernels and locations, as [`Recorder::add_kernels`].
    ///
    /// # Errors
    /// As there.
    pub fn add_kernels(
        &mut self,
        kernels: &[(&str, &str)],
        locations: Vec<LocationInfo>,
    ) -> Result<(), SessionError> {
        self.recorder.add_kernels(kernels, locations)
    }

    /// Tells of the sites of kernels, before launches of these: their numbers are unique in the file.
    pub fn add_sites(&mut self, sites: Vec<SiteInfo>) {
        self.recorder.add_sites(sites);
    }

    /// Keeps a text in the file, as [`Recorder::keep_text`].
    pub fn keep_text(&mut self, name: &str, text: &str) {
        self.recorder.keep_text(name, text);
    }

    /// Says what launches are called, as [`Recorder::label`].
    pub fn label(&mut self, label: &str) {
        self.recorder.label(label);
    }

    /// Runs a kernel and waits for it, as [`Recorder::record`].
    ///
    /// # Safety
    /// As there.
    ///
    /// # Errors
    /// As there.
    pub unsafe fn record(
        &mut self,
        call: &KernelCall,
        shape: &LaunchShape,
    ) -> Result<LaunchTime, SessionError> {
        // SAFETY: the caller's promise.
        unsafe { self.recorder.record(self.device.0, call, shape) }
    }

    /// Waits until everything that was recorded so far is written, as [`Recorder::flush`].
    ///
    /// # Errors
    /// As there.
    pub fn flush(&mut self) -> Result<(), SessionError> {
        self.recorder.flush(self.device.0)
    }

    /// Sums over all launches, as [`Recorder::total`].
    pub fn total(&self) -> &LaunchReport {
        self.recorder.total()
    }

    /// How many warps rounds have encoded.
    #[cfg(test)]
    pub(crate) fn warps_in_rounds(&self) -> u64 {
        self.recorder.streams.as_ref().map_or(0, |streams| streams.warps_in_rounds())
    }

    /// Writes what is left and the index, and ends the file, as [`Recorder::finish`].
    ///
    /// # Errors
    /// As there.
    pub fn finish(mut self) -> Result<(W, Summary, LaunchReport), SessionError> {
        self.recorder.finish(self.device.0)
    }
}

impl<W: Write + Send + 'static> Drop for Session<'_, W> {
    fn drop(&mut self) {
        self.recorder.close(self.device.0);
    }
}

impl<W: Write + Send + 'static> Launcher for Session<'_, W> {
    fn device(&mut self) -> &mut dyn Device {
        self.device.0
    }

    unsafe fn launch(&mut self, call: &KernelCall, shape: &LaunchShape) -> Result<LaunchTime, SessionError> {
        // SAFETY: the caller's promise.
        unsafe { self.record(call, shape) }
    }
}

#[cfg(test)]
mod tests;
