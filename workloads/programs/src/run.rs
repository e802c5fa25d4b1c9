//! Launches of a run.

use std::time::Duration;

use warptrace_device::KernelCall;
use warptrace_host::{Device, LaunchShape, Launcher};

use crate::WorkloadError;

pub(crate) struct ProgramRun<'l> {
    launcher: &'l mut dyn Launcher,
    pub(crate) launches: u32,
    pub(crate) kernel: Duration,
}

impl<'l> ProgramRun<'l> {
    pub(crate) fn new(launcher: &'l mut dyn Launcher) -> Self {
        Self { launcher, launches: 0, kernel: Duration::ZERO }
    }

    pub(crate) fn device(&mut self) -> &mut dyn Device {
        self.launcher.device()
    }

    /// Launches a kernel and waits for it.
    ///
    /// # Safety
    /// As for [`Launcher::launch`].
    pub(crate) unsafe fn launch(
        &mut self,
        call: &KernelCall,
        shape: &LaunchShape,
    ) -> Result<(), WorkloadError> {
        // SAFETY: the caller's promise.
        let time = unsafe { self.launcher.launch(call, shape) }?;
        self.launches += 1;
        self.kernel += time.kernel;
        Ok(())
    }
}
