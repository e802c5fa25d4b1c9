//! A device that its handle, buffers and a trace use in turns.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use cudarc::driver::CudaStream;
use warptrace_device::simt::host::Recording;
use warptrace_device::{KernelCall, SafeCall};
use warptrace_format::file::DeviceInfo;
use warptrace_format::log::LoggedLaunch;
use warptrace_format::pool::PoolDescriptor;
use warptrace_host::{
    Allocation, Choosing, Device, DeviceError, DeviceMemory, Encoded, FlattenJob, LaunchShape, LaunchTime,
    LiveMemory, Placement, Serve, Streaming, Tracing,
};

use crate::Error;

/// The device, and the memory that buffers have of it.
pub(crate) struct Shared {
    device: RefCell<Box<dyn Device>>,
    /// Length in bytes of each buffer, by address.
    buffers: RefCell<BTreeMap<u64, u64>>,
    /// The stream of a device that is the user's own. It outlives the device, which uses it.
    stream: Option<Arc<CudaStream>>,
}

impl Shared {
    pub(crate) fn new(device: Box<dyn Device>, stream: Option<Arc<CudaStream>>) -> Rc<Self> {
        Rc::new(Self { device: RefCell::new(device), buffers: RefCell::default(), stream })
    }

    /// The user's own stream that kernels run on.
    pub(crate) fn stream(&self) -> Option<&Arc<CudaStream>> {
        self.stream.as_ref()
    }

    /// Takes note of memory that the device has not allocated, so that kernels may be given it.
    pub(crate) fn adopt(&self, address: u64, bytes: u64) {
        self.buffers.borrow_mut().insert(address, bytes);
    }

    /// Forgets memory that was [adopted](Self::adopt).
    pub(crate) fn release(&self, address: u64) {
        self.buffers.borrow_mut().remove(&address);
    }

    /// Uses the device. No user's code runs meanwhile that could ask for it again.
    pub(crate) fn with<T>(&self, run: impl FnOnce(&mut dyn Device) -> T) -> T {
        run(&mut **self.device.borrow_mut())
    }

    pub(crate) fn allocate(&self, bytes: u64) -> Result<Allocation, DeviceError> {
        let allocation = self.with(|device| device.allocate(bytes.max(1)))?;
        self.buffers.borrow_mut().insert(allocation.address, allocation.bytes);
        Ok(allocation)
    }

    pub(crate) fn free(&self, allocation: Allocation) {
        self.buffers.borrow_mut().remove(&allocation.address);
        // An error has nowhere to go; the device gives everything back when it is dropped.
        let _ = self.with(|device| device.free(allocation));
    }

    /// Checks what makes a call safe: its memory is in buffers, and what it writes overlaps nothing else.
    pub(crate) fn check(&self, call: &SafeCall<'_>) -> Result<(), Error> {
        let kernel = || call.call().name().to_owned();
        let buffers = self.buffers.borrow();
        for memory in call.memory().iter().filter(|memory| memory.bytes != 0) {
            let inside = buffers.range(..=memory.address).next_back().is_some_and(|(start, bytes)| {
                let skipped = memory.address - start;
                skipped <= *bytes && memory.bytes <= bytes - skipped
            });
            if !inside {
                return Err(Error::Argument { kernel: kernel(), argument: memory.argument });
            }
        }
        for written in call.memory().iter().filter(|memory| memory.is_written) {
            let overlapping = call.memory().iter().find(|other| {
                other.argument != written.argument
                    && other.address < written.address.saturating_add(written.bytes)
                    && written.address < other.address.saturating_add(other.bytes)
            });
            if let Some(other) = overlapping {
                let (written, other) = (written.argument, other.argument);
                return Err(Error::Overlap { kernel: kernel(), written, other });
            }
        }
        Ok(())
    }
}

/// The shared device, as a session takes one.
pub(crate) struct Handle(pub(crate) Rc<Shared>);

impl Device for Handle {
    fn info(&self) -> DeviceInfo {
        self.0.with(|device| device.info())
    }

    fn multiprocessors(&self) -> u32 {
        self.0.with(|device| device.multiprocessors())
    }

    fn resident_threads(&self) -> u64 {
        self.0.with(|device| device.resident_threads())
    }

    fn resident_of(
        &mut self,
        call: &KernelCall,
        shape: &LaunchShape,
        streaming: &Streaming,
    ) -> Result<u64, DeviceError> {
        self.0.with(|device| device.resident_of(call, shape, streaming))
    }

    fn memory(&self) -> DeviceMemory {
        self.0.with(|device| device.memory())
    }

    fn allocate(&mut self, bytes: u64) -> Result<Allocation, DeviceError> {
        self.0.with(|device| device.allocate(bytes))
    }

    fn allocate_on_host(&mut self, bytes: u64) -> Result<Allocation, DeviceError> {
        self.0.with(|device| device.allocate_on_host(bytes))
    }

    fn free(&mut self, allocation: Allocation) -> Result<(), DeviceError> {
        self.0.with(|device| device.free(allocation))
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.0.with(|device| device.write(address, bytes))
    }

    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.0.with(|device| device.read(address, bytes))
    }

    fn collect(
        &mut self,
        first: u64,
        chunk_bytes: u32,
        count: u32,
        scratch: Allocation,
        to: &mut Vec<u8>,
    ) -> Result<u32, DeviceError> {
        self.0.with(|device| device.collect(first, chunk_bytes, count, scratch, to))
    }

    fn fill(&mut self, address: u64, bytes: u64, value: u8) -> Result<(), DeviceError> {
        self.0.with(|device| device.fill(address, bytes, value))
    }

    fn add_code(&mut self, ptx: &'static str) -> Result<(), DeviceError> {
        self.0.with(|device| device.add_code(ptx))
    }

    fn prepare(
        &mut self,
        kernels: &[&str],
        tracing: Option<(Recording, Option<Placement>, Choosing)>,
    ) -> Result<(), DeviceError> {
        self.0.with(|device| device.prepare(kernels, tracing))
    }

    fn prepare_ring(
        &mut self,
        kernels: &[&str],
        recording: Recording,
        placement: Option<Placement>,
        chooses: Choosing,
    ) -> Result<(), DeviceError> {
        self.0.with(|device| device.prepare_ring(kernels, recording, placement, chooses))
    }

    fn prepare_streamed(
        &mut self,
        kernels: &[&str],
        recording: Recording,
        placement: Option<Placement>,
        chooses: Choosing,
        open_runs: bool,
    ) -> Result<(), DeviceError> {
        self.0.with(|device| device.prepare_streamed(kernels, recording, placement, chooses, open_runs))
    }

    fn encode(
        &mut self,
        recording: Recording,
        pool: &PoolDescriptor,
        launches: &[LoggedLaunch],
        table: Allocation,
    ) -> Result<Encoded, DeviceError> {
        self.0.with(|device| device.encode(recording, pool, launches, table))
    }

    unsafe fn launch(
        &mut self,
        call: &KernelCall,
        shape: &LaunchShape,
        tracing: Option<&Tracing>,
    ) -> Result<LaunchTime, DeviceError> {
        // SAFETY: the caller's promise.
        self.0.with(|device| unsafe { device.launch(call, shape, tracing) })
    }

    fn live(&mut self) -> Result<&mut dyn LiveMemory, DeviceError> {
        // SAFETY: nobody uses the device while the answer lives: the session that owns this handle drops it
        // before its call returns, and calls nothing else of this crate's meanwhile.
        unsafe { (*self.0.device.as_ptr()).live() }
    }

    fn beside(
        &mut self,
        memory: Allocation,
        recording: Recording,
    ) -> Result<Option<Box<dyn Device + Send>>, DeviceError> {
        self.0.with(|device| device.beside(memory, recording))
    }

    fn flatten(&mut self, job: &FlattenJob) -> Result<(), DeviceError> {
        self.0.with(|device| device.flatten(job))
    }

    unsafe fn launch_streamed(
        &mut self,
        call: &KernelCall,
        shape: &LaunchShape,
        streaming: &Streaming,
        serve: &mut Serve<'_>,
    ) -> Result<LaunchTime, DeviceError> {
        // SAFETY: the caller's promise.
        self.0.with(|device| unsafe { device.launch_streamed(call, shape, streaming, serve) })
    }
}
