//! The device on which a program runs its kernels.

use std::fmt;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::{CudaSlice, CudaStream};
use warptrace_device::{KernelCall, KernelModule, SafeCall};
use warptrace_format::file::DeviceInfo;
use warptrace_host::{self as host, CudaDevice, DeviceError, Pod, Prepare, SimDevice, SimOptions};

use crate::shared::Shared;
use crate::{AdoptedSlice, Buffer, Error, LaunchConfig, TraceBuilder};

/// A GPU or the simulator.
///
/// Cloning is cheap. Clones, buffers and traces share the device, on one thread.
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
    fn new(device: Box<dyn host::Device>, no_gpu: Option<DeviceError>) -> Self {
        Self { shared: Shared::new(device, None, true), no_gpu: no_gpu.map(Rc::new) }
    }

    /// Opens the first GPU, or the simulator if that GPU is not usable; [`no_gpu`](Self::no_gpu) then
    /// returns the reason.
    ///
    /// # Errors
    /// None at present: if the GPU cannot be used, the simulator is opened.
    pub fn auto() -> Result<Self, Error> {
        Ok(match CudaDevice::open_empty(0) {
            Ok(gpu) => Self::new(Box::new(gpu), None),
            Err(reason) => Self::new(Box::new(SimDevice::new(SimOptions::default())), Some(reason)),
        })
    }

    /// Opens GPU `ordinal`, in the driver's numbering.
    ///
    /// # Errors
    /// Without a driver, without such a GPU, or if the driver fails.
    pub fn gpu(ordinal: u32) -> Result<Self, Error> {
        Ok(Self::new(Box::new(CudaDevice::open_empty(ordinal)?), None))
    }

    /// Opens the simulator, which needs no GPU.
    pub fn simulator() -> Self {
        Self::new(Box::new(SimDevice::new(SimOptions::default())), None)
    }

    /// Uses the GPU, context and stream of a program through [`cudarc`]. Kernels run on the stream, and each
    /// launch waits for its end. The device keeps stream and context alive.
    ///
    /// [`adopt`](Self::adopt) makes the program's arrays kernel arguments; [`upload`](Self::upload) and
    /// [`zeros`](Self::zeros) allocate in the same context.
    ///
    /// ```no_run
    /// # #[warptrace::kernels]
    /// # mod doubling {
    /// #     use warptrace::device::{DisjointSlice, thread};
    /// #     #[kernel]
    /// #     pub fn double(values: DisjointSlice<u32>) {
    /// #         let Some((_, value)) = values.own(thread::index()) else { return };
    /// #         *value *= 2;
    /// #     }
    /// # }
    /// use warptrace::cudarc::driver::CudaContext;
    /// use warptrace::{Device, LaunchConfig};
    ///
    /// let stream = CudaContext::new(0)?.default_stream();
    /// let mut values = stream.clone_htod(&[1u32, 2, 3])?;
    ///
    /// let device = Device::from_cudarc(&stream)?;
    /// let mut trace = device.trace("doubling.wtrc").start(&doubling::MODULE)?;
    /// let adopted = device.adopt(&mut values)?;
    /// trace.launch(&doubling::double(&adopted), &LaunchConfig::for_elements(3))?;
    /// trace.finish()?;
    /// drop(adopted);
    ///
    /// assert_eq!(stream.clone_dtoh(&values)?, [2, 4, 6]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A package that also depends on cudarc may select its features. If it selects none for linking, the
    /// driver is loaded at run time.
    ///
    /// # Errors
    /// If the driver is too old, or fails.
    pub fn from_cudarc(stream: &Arc<CudaStream>) -> Result<Self, Error> {
        let (context, own) = (stream.context().cu_ctx(), stream.cu_stream());
        // SAFETY: the stream belongs to the context. `Shared` keeps both alive longer than the device.
        let device = unsafe { CudaDevice::adopt(context.cast(), own.cast(), "")? };
        Ok(Self { shared: Shared::new(Box::new(device), Some(Arc::clone(stream)), false), no_gpu: None })
    }

    /// Makes an array of the program a kernel argument, for a device [from cudarc](Self::from_cudarc).
    /// Launches wait for the work on the array that the program has requested from cudarc.
    ///
    /// # Errors
    /// If the array does not belong to the device's context.
    pub fn adopt<'a, T: Pod>(&self, slice: &'a mut CudaSlice<T>) -> Result<AdoptedSlice<'a, T>, Error> {
        AdoptedSlice::new(&self.shared, slice)
    }

    /// Uses a device that was opened with [`host`](crate::host).
    ///
    /// # Safety
    /// If a call's module contains no code, the device's kernel of that name must have the call's arguments.
    /// This is satisfied if the device was opened without code, like the simulator.
    pub unsafe fn from_host(device: Box<dyn host::Device>) -> Self {
        Self { shared: Shared::new(device, None, false), no_gpu: None }
    }

    /// Returns the reason why [`auto`](Self::auto) opened the simulator.
    pub fn no_gpu(&self) -> Option<&DeviceError> {
        self.no_gpu.as_deref()
    }

    /// Returns the device's properties.
    pub fn info(&self) -> DeviceInfo {
        self.shared.with(|device| device.facts().info)
    }

    /// Copies `values` to the device.
    ///
    /// # Errors
    /// If memory is insufficient or the copy fails.
    pub fn upload<T: Pod>(&self, values: &[T]) -> Result<Buffer<T>, Error> {
        let buffer = Buffer::reserve(&self.shared, values.len())?;
        buffer.write(values)?;
        Ok(buffer)
    }

    /// Allocates an array of `len` elements and zeroes its bytes.
    ///
    /// # Errors
    /// If memory is insufficient.
    pub fn zeros<T: Pod>(&self, len: usize) -> Result<Buffer<T>, Error> {
        let buffer = Buffer::reserve(&self.shared, len)?;
        buffer.clear()?;
        Ok(buffer)
    }

    /// Prepares a trace to the file at `path`, which [`TraceBuilder::start`] creates.
    pub fn trace(&self, path: impl AsRef<Path>) -> TraceBuilder {
        TraceBuilder::new(Rc::clone(&self.shared), path.as_ref().to_owned())
    }

    /// Loads a module's kernels onto the device, for launches without a trace.
    ///
    /// # Errors
    /// If the device cannot load them.
    pub fn load(&self, module: &KernelModule) -> Result<(), Error> {
        let prepare = Prepare { code: &[module], ..Prepare::default() };
        Ok(self.shared.with(|device| device.prepare(&prepare)).map(drop)?)
    }

    /// Runs a kernel without tracing and waits for it. Returns its duration. On a GPU, the module must have
    /// been [loaded](Self::load) or traced.
    ///
    /// # Errors
    /// If an argument is not memory of this device, a written argument overlaps another one, the device has
    /// no code for the kernel, or the kernel fails.
    pub fn launch(&self, call: &SafeCall<'_>, config: &LaunchConfig) -> Result<Duration, Error> {
        self.shared.check(call, config)?;
        // SAFETY: all memory that the kernel uses was checked.
        unsafe { self.launch_unchecked(call, config) }
    }

    /// Like [`launch`](Self::launch), for kernels that take `Global<T>`.
    ///
    /// # Safety
    /// The arguments name memory of this device that is valid for the kernel's accesses.
    ///
    /// # Errors
    /// If the device has no code for the kernel, or the kernel fails.
    pub unsafe fn launch_unchecked(
        &self,
        call: &KernelCall,
        config: &LaunchConfig,
    ) -> Result<Duration, Error> {
        // SAFETY: guaranteed by the caller.
        let time = self.shared.with(|device| unsafe { device.launch(call, config.shape(), None) });
        Ok(time?.kernel)
    }
}
