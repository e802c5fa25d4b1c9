//! Running programs traced or untraced with the same code.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use warptrace_device::{Global, KernelCall};

use crate::writer::Summary;
use crate::{
    Allocation, Device, DeviceError, Interrupted, LaunchReport, LaunchShape, LaunchTime, MemoryType,
    Recorder, RecordingSpec, SessionError, TracedProgram,
};

/// Runs kernels on a device. A [`Session`] records them, [`Untraced`] does not.
pub trait Launcher {
    /// Returns the device, for memory operations.
    fn device(&mut self) -> &mut dyn Device;

    /// Runs a kernel and waits for it. Fails if the launch fails or its records cannot be written.
    ///
    /// # Safety
    /// The arguments refer to memory of [`device`](Self::device) that is valid for the kernel's accesses.
    unsafe fn launch(&mut self, call: &KernelCall, shape: &LaunchShape) -> Result<LaunchTime, SessionError>;
}

/// Runs kernels without tracing.
pub struct Untraced<'d>(pub &'d mut dyn Device);

impl Launcher for Untraced<'_> {
    fn device(&mut self) -> &mut dyn Device {
        self.0
    }

    unsafe fn launch(&mut self, call: &KernelCall, shape: &LaunchShape) -> Result<LaunchTime, SessionError> {
        // SAFETY: the caller guarantees that the arguments are valid for the kernel.
        Ok(unsafe { self.0.launch(call, shape, None) }?)
    }
}

/// A [`Recorder`] with its device. Dropping a session writes all data, but no index.
pub struct Session<'d, W: Write + Send + 'static> {
    device: &'d mut dyn Device,
    /// The recorder. Use it only with this session's device.
    pub recorder: Recorder<W>,
}

impl<W: Write + Send + 'static> std::fmt::Debug for Session<'_, W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Session").field(&self.recorder).finish()
    }
}

impl<'d, W: Write + Send + 'static> Session<'d, W> {
    /// Starts a recording, see [`Recorder::start`].
    pub fn start(
        device: &'d mut dyn Device,
        program: &TracedProgram<'_>,
        spec: &RecordingSpec,
        output: W,
    ) -> Result<Self, SessionError> {
        let recorder = Recorder::start(device, program, spec, output)?;
        Ok(Self { device, recorder })
    }

    /// Lets the recording end while a kernel runs, see [`Recorder::interrupt_by`].
    pub fn interrupt_by(
        &mut self,
        asked: Arc<AtomicBool>,
        tell: impl FnMut(&Interrupted) + 'static,
    ) -> Result<(), SessionError> {
        self.recorder.interrupt_by(self.device, asked, tell)
    }

    /// Waits until everything recorded so far is written, see [`Recorder::flush`].
    pub fn flush(&mut self) -> Result<(), SessionError> {
        self.recorder.flush(self.device)
    }

    /// Writes the remaining data and the index, and ends the file, see [`Recorder::finish`].
    pub fn finish(mut self) -> Result<(W, Summary, LaunchReport), SessionError> {
        self.recorder.finish(self.device)
    }
}

impl<W: Write + Send + 'static> Drop for Session<'_, W> {
    fn drop(&mut self) {
        self.recorder.close(self.device);
    }
}

impl<W: Write + Send + 'static> Launcher for Session<'_, W> {
    fn device(&mut self) -> &mut dyn Device {
        self.device
    }

    unsafe fn launch(&mut self, call: &KernelCall, shape: &LaunchShape) -> Result<LaunchTime, SessionError> {
        // SAFETY: the caller guarantees that the arguments are valid for the kernel.
        unsafe { self.recorder.record(self.device, call, shape) }
    }
}

/// Plain data that is copied between host and device as bytes.
pub use bytemuck::Pod;

/// An array of `T` in device memory. Freed by [`free`](Self::free), or with the device.
#[derive(Debug)]
pub struct Buffer<T> {
    allocation: Allocation,
    len: usize,
    element: std::marker::PhantomData<T>,
}

impl<T: Pod> Buffer<T> {
    /// Copies `values` to the device. Fails if device memory is exhausted or the copy fails.
    pub fn upload(device: &mut dyn Device, values: &[T]) -> Result<Self, DeviceError> {
        let buffer = Self::reserve(device, values.len())?;
        device.write(buffer.allocation.address, bytemuck::cast_slice(values))?;
        Ok(buffer)
    }

    /// Allocates `len` elements and sets all their bytes to `value`. Fails if device memory is exhausted.
    pub fn filled(device: &mut dyn Device, len: usize, value: u8) -> Result<Self, DeviceError> {
        let buffer = Self::reserve(device, len)?;
        device.fill(buffer.allocation.address, buffer.bytes(), value)?;
        Ok(buffer)
    }

    fn reserve(device: &mut dyn Device, len: usize) -> Result<Self, DeviceError> {
        let bytes =
            (len as u64).checked_mul(size_of::<T>() as u64).ok_or_else(|| DeviceError::OutOfMemory {
                bytes: u64::MAX,
                reason: format!("{len} elements of {} bytes pass 2^64 bytes", size_of::<T>()),
            })?;
        let allocation = device.allocate(bytes.max(1), MemoryType::Device)?;
        Ok(Self { allocation, len, element: std::marker::PhantomData })
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the array has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn bytes(&self) -> u64 {
        self.len as u64 * size_of::<T>() as u64
    }

    /// Returns the array as a kernel argument.
    pub fn global(&self) -> Global<T> {
        Global::new(self.allocation.address, self.len as u64)
    }

    /// Copies the array to the host.
    pub fn download(&self, device: &mut dyn Device) -> Result<Vec<T>, DeviceError> {
        let mut values = vec![T::zeroed(); self.len];
        device.read(self.allocation.address, bytemuck::cast_slice_mut(&mut values))?;
        Ok(values)
    }

    /// Overwrites the start of the array with `values`. Fails if there are more values than elements.
    pub fn write(&self, device: &mut dyn Device, values: &[T]) -> Result<(), DeviceError> {
        if values.len() > self.len {
            let bytes = size_of_val(values) as u64;
            return Err(DeviceError::OutOfBounds { address: self.allocation.address, bytes });
        }
        device.write(self.allocation.address, bytemuck::cast_slice(values))
    }

    /// Sets every byte of the array to `value`.
    pub fn fill(&self, device: &mut dyn Device, value: u8) -> Result<(), DeviceError> {
        device.fill(self.allocation.address, self.bytes(), value)
    }

    /// Frees the memory. Fails if `device` did not allocate it.
    pub fn free(self, device: &mut dyn Device) -> Result<(), DeviceError> {
        device.free(self.allocation)
    }
}

// SAFETY: the memory was initialized before the buffer was returned, and any bytes are a valid `Pod`.
unsafe impl<T: Pod> warptrace_device::DeviceArray<T> for Buffer<T> {
    fn global(&self) -> Global<T> {
        self.global()
    }
}
