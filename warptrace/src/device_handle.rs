//! The device that a program runs its kernels on.

use std::fmt;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use warptrace_device::{KernelCall, KernelModule, SafeCall};
use warptrace_format::file::DeviceInfo;
use warptrace_host::{self as host, CudaDevice, DeviceError, Pod, SimDevice, SimOptions};

use crate::shared::Shared;
use crate::{Buffer, Error, LaunchConfig, TraceBuilder};

/// A GPU or the simulator.
///
/// Cheap to clone: clones, buffers and traces share the device, on one thread.
#[derive(Clone)]
pub struct Device {
    shared: Rc<Shared>,
    no_gpu: Option<Rc<DeviceError>>,
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("info", &self.info()).finish_non_exhaustive()
    }
}

impl Device {
    fn of(device: Box<dyn host::Device>, no_gpu: Option<DeviceError>) -> Self {
        Self { shared: Shared::new(device), no_gpu: no_gpu.map(Rc::new) }
    }

    /// Opens the first GPU, or the simulator where there is none; [`no_gpu`](Self::no_gpu) says why.
    ///
    /// # Errors
    /// None yet: whatever keeps the GPU from being used is a reason for the simulator.
    pub fn auto() -> Result<Self, Error> {
        Ok(match CudaDevice::open_empty(0) {
            Ok(gpu) => Self::of(Box::new(gpu), None),
            Err(reason) => Self::of(Box::new(SimDevice::new(SimOptions::default())), Some(reason)),
        })
    }

    /// Opens GPU `ordinal`, as the driver numbers them.
    ///
    /// # Errors
    /// Without a driver, without such a GPU, or if the driver fails.
    pub fn gpu(ordinal: u32) -> Result<Self, Error> {
        Ok(Self::of(Box::new(CudaDevice::open_empty(ordinal)?), None))
    }

    /// Opens the simulator, which needs no GPU.
    pub fn simulator() -> Self {
        Self::of(Box::new(SimDevice::new(SimOptions::default())), None)
    }

    /// Takes a device that was opened with [`host`](crate::host).
    pub fn from_host(device: Box<dyn host::Device>) -> Self {
        Self::of(device, None)
    }

    /// Answers why [`auto`](Self::auto) took the simulator.
    pub fn no_gpu(&self) -> Option<&DeviceError> {
        self.no_gpu.as_deref()
    }

    /// What the device is.
    pub fn info(&self) -> DeviceInfo {
        self.shared.with(|device| device.info())
    }

    /// Copies `values` to the device.
    ///
    /// # Errors
    /// If memory is short or the copy fails.
    pub fn upload<T: Pod>(&self, values: &[T]) -> Result<Buffer<T>, Error> {
        let buffer = Buffer::reserve(&self.shared, values.len())?;
        buffer.write(values)?;
        Ok(buffer)
    }

    /// Makes an array of `len` elements whose bytes are all 0.
    ///
    /// # Errors
    /// If memory is short.
    pub fn zeros<T: Pod>(&self, len: usize) -> Result<Buffer<T>, Error> {
        let buffer = Buffer::reserve(&self.shared, len)?;
        buffer.clear()?;
        Ok(buffer)
    }

    /// Prepares a trace into the file at `path`, which [`TraceBuilder::start`] creates.
    pub fn trace(&self, path: impl AsRef<Path>) -> TraceBuilder {
        TraceBuilder::new(Rc::clone(&self.shared), path.as_ref().to_owned())
    }

    /// Gives the device the kernels of a module, to be launched without a trace.
    ///
    /// # Errors
    /// If the device cannot take them.
    pub fn load(&self, module: &KernelModule) -> Result<(), Error> {
        Ok(self.shared.with(|device| device.add_code(module.ptx))?)
    }

    /// Runs a kernel without tracing it and waits for it; answers how long it took. On a GPU its module has been
    /// [loaded](Self::load), or traced.
    ///
    /// # Errors
    /// If an argument is no memory of this device, one that is written overlaps another, the device has no code
    /// for the kernel, or the kernel fails.
    pub fn launch(&self, call: &SafeCall<'_>, config: &LaunchConfig) -> Result<Duration, Error> {
        self.shared.check(call)?;
        // SAFETY: all memory that the kernel uses was checked.
        unsafe { self.launch_unchecked(call.call(), config) }
    }

    /// As [`launch`](Self::launch), for kernels that take `Global<T>`.
    ///
    /// # Safety
    /// The arguments name memory of this device that is valid for what the kernel does with it.
    ///
    /// # Errors
    /// If the device has no code for the kernel, or the kernel fails.
    pub unsafe fn launch_unchecked(
        &self,
        call: &KernelCall,
        config: &LaunchConfig,
    ) -> Result<Duration, Error> {
        // SAFETY: the caller's promise.
        let time = self.shared.with(|device| unsafe { device.launch(call, config.shape(), None) });
        Ok(time?.kernel)
    }
}
