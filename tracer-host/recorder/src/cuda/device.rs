//! [`Device`] for a GPU.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use cudarc::driver::result;
use warptrace_device::KernelCall;
use warptrace_encode::{DEVICE_ECL, DEVICE_PREDICT};
use warptrace_format::codec::CodecSpec;

use super::clocks::Clocks;
use super::driver::{self, Called, Waits};
use super::encoding::{self, Encoding, priority_stream};
use super::gather::Gather;
use super::launch::{Launched, pointers};
use super::live::{Live, LiveDevice};
use super::room;
use super::{CudaDevice, uuid};
use crate::{
    Allocation, Device, DeviceClocks, DeviceError, DeviceFacts, EncodeJob, Encoded, HostClock, HostMemory,
    LaunchShape, LaunchTime, LiveMemory, LogKind, Logs, MemoryType, Prepare, Recording, Traced,
};

/// Minimum log memory for a second handle. With less, the resident warps fill it before they leave, so that
/// logs gain more from the memory than encoding on the GPU.
const WORTH_ROUNDS_BYTES: u64 = 512 << 20;

/// Returns an error unless the compiled kernels can encode with `codec`.
fn check_codec(codec: CodecSpec) -> Result<(), DeviceError> {
    let compiled = match codec {
        CodecSpec::Ecl(_) => CodecSpec::Ecl(DEVICE_ECL),
        CodecSpec::Predict(_) => CodecSpec::Predict(DEVICE_PREDICT),
        other => other,
    };
    if codec == compiled {
        return Ok(());
    }
    Err(DeviceError::Unsupported {
        problem: format!(
            "compiled kernels encode with {compiled:?}, not with {codec:?}; other parameters run on the simulator"
        ),
    })
}

impl CudaDevice {
    /// Creates everything that a drain needs. Takes milliseconds.
    fn prepare_drains(&mut self, codec: CodecSpec) -> Result<(), DeviceError> {
        check_codec(codec)?;
        self.staging.prepare()?;
        if self.gather.is_none() {
            self.gather = Some(Gather::new(&self.waits)?);
        }
        if self.encoding.is_none() {
            self.encoding = Some(Encoding::load(self.architecture)?);
        }
        Ok(())
    }
}

impl Device for CudaDevice {
    fn facts(&self) -> DeviceFacts {
        // If the driver does not report free memory, a later allocation fails.
        let free = self.enter().ok().and_then(|()| result::mem_get_info().ok());
        DeviceFacts {
            info: self.info.clone(),
            ordinal: u32::try_from(self.ordinal).ok(),
            uuid: uuid(self.ordinal),
            clock: HostClock::System,
            multiprocessors: self.multiprocessors,
            resident_threads: self.resident_threads(),
            memory_bytes: self.memory,
            free_bytes: free.map_or(self.memory, |(free, _)| free as u64),
        }
    }

    fn allocate(&mut self, bytes: u64, place: MemoryType) -> Result<Allocation, DeviceError> {
        self.enter()?;
        if place == MemoryType::Host {
            return Ok(Allocation { address: self.pinned.allocate(bytes)?, bytes });
        }
        let out_of_memory = |reason: String| DeviceError::OutOfMemory { bytes, reason };
        let length = usize::try_from(bytes.max(1)).map_err(|error| out_of_memory(error.to_string()))?;
        // SAFETY: a plain allocation, freed by `free` or `drop`.
        let address = unsafe { result::malloc_sync(length) }.map_err(|error| {
            let (name, description) = driver::words(error);
            let free = result::mem_get_info()
                .map_or_else(|_| String::new(), |(free, _)| format!("; {free} bytes are free"));
            out_of_memory(format!("cuMemAlloc: {name} ({description}){free}"))
        })?;
        self.allocations.insert(address, bytes.max(1), ());
        self.fill(address, bytes, 0)?;
        Ok(Allocation { address, bytes })
    }

    fn gives_up(&self) -> Option<Arc<AtomicBool>> {
        self.waits.gives_up.clone()
    }

    fn give_up_by(&mut self, asked: Option<&Arc<AtomicBool>>) -> Result<(), DeviceError> {
        self.enter()?;
        self.interrupt = asked.cloned();
        if self.interrupt.is_some() && self.beside.is_null() {
            self.beside = priority_stream()?;
        }
        Ok(())
    }

    fn read_beside(&mut self) {
        if !self.beside.is_null() && !self.reads_beside {
            std::mem::swap(&mut self.stream, &mut self.beside);
            self.reads_beside = true;
            self.waits = Waits::default();
        }
    }

    fn wait(&mut self) -> Result<(), DeviceError> {
        self.enter()?;
        let waited = result::ctx::synchronize().called("cuCtxSynchronize");
        if std::mem::take(&mut self.reads_beside) {
            std::mem::swap(&mut self.stream, &mut self.beside);
        }
        waited
    }

    fn free(&mut self, allocation: Allocation) -> Result<(), DeviceError> {
        self.enter()?;
        if let Some(freed) = self.pinned.free(allocation.address) {
            return freed;
        }
        if self.allocations.remove(allocation.address).is_none() {
            return Err(DeviceError::OutOfBounds { address: allocation.address, bytes: allocation.bytes });
        }
        // SAFETY: allocated here and no longer listed.
        unsafe { result::free_sync(allocation.address) }.called("cuMemFree")
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        if let Some(memory) = self.pinned.pointer(address, bytes.len() as u64) {
            // SAFETY: inside a host allocation, which no kernel writes now.
            unsafe { memory.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
            return Ok(());
        }
        self.enter()?;
        self.check_inside(address, bytes.len() as u64)?;
        // SAFETY: inside an allocation; the bytes live until the copy has ended.
        unsafe { result::memcpy_htod_async(address, bytes, self.stream) }.called("cuMemcpyHtoDAsync")?;
        self.finish()
    }

    /// Host memory stays readable after the driver has failed.
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        if let Some(memory) = self.pinned.pointer(address, bytes.len() as u64) {
            // SAFETY: inside a host allocation. Concurrent writes of a running kernel may be seen in part.
            unsafe { memory.copy_to_nonoverlapping(bytes.as_mut_ptr(), bytes.len()) };
            return Ok(());
        }
        self.enter()?;
        self.check_inside(address, bytes.len() as u64)?;
        self.staging.read(self.stream, address, bytes)
    }

    fn read_to(&mut self, address: u64, count: usize, to: &mut HostMemory<u32>) -> Result<(), DeviceError> {
        let bytes = count as u64 * size_of::<u32>() as u64;
        if self.pinned.holds(address, bytes) {
            return self.read(address, bytemuck::cast_slice_mut(to.append_zeros(count)));
        }
        self.enter()?;
        self.check_inside(address, bytes)?;
        self.staging.append(self.stream, address, count, to)
    }

    fn fill(&mut self, address: u64, bytes: u64, value: u8) -> Result<(), DeviceError> {
        self.enter()?;
        self.check_inside(address, bytes)?;
        // SAFETY: inside an allocation.
        unsafe { result::memset_d8_async(address, value, bytes as usize, self.stream) }
            .called("cuMemsetD8Async")?;
        self.finish()
    }

    /// Waits once for all ranges.
    fn clear(&mut self, ranges: &[(u64, u64)]) -> Result<(), DeviceError> {
        let is_host =
            |&(address, bytes): &(u64, u64)| self.pinned.pointer(address, bytes).map(|at| (at, bytes));
        if let Some(ranges) = ranges.iter().map(is_host).collect::<Option<Vec<_>>>() {
            // SAFETY: inside host allocations, which no kernel writes now.
            ranges.into_iter().for_each(|(memory, bytes)| unsafe { memory.write_bytes(0, bytes as usize) });
            return Ok(());
        }
        self.enter()?;
        for &(address, bytes) in ranges {
            self.check_inside(address, bytes)?;
            // SAFETY: inside an allocation.
            unsafe { result::memset_d8_async(address, 0, bytes as usize, self.stream) }
                .called("cuMemsetD8Async")?;
        }
        self.finish()
    }

    fn prepare(&mut self, prepare: &Prepare<'_>) -> Result<u64, DeviceError> {
        self.enter()?;
        let &Prepare { code, kernels, launch, traced } = prepare;
        for module in code {
            self.code.add_module(module);
        }
        let recording = traced.map(|(recording, _)| recording);
        match traced {
            Some((Recording { logs: LogKind::Streamed, .. }, _)) => {
                self.live_memory()?;
            }
            Some((recording, codec)) => {
                self.prepare_drains(codec)?;
                if self.is_foreign {
                    foreign_choosing(recording)?;
                    encoding::warm_up(self, codec)?;
                }
            }
            None => {}
        }
        // A program that launches its own kernels has also loaded them.
        if !self.is_foreign && !kernels.is_empty() {
            self.code.load(kernels, recording)?;
        }
        match (launch, recording) {
            (Some((call, shape)), Some(recording)) => {
                let traced = self.code.traced(call, recording)?;
                let (function, needed) = (traced.function, traced.dynamic_shared(shape));
                let shared = room::leave_room(self, function, call.name(), shape, needed)?;
                let blocks = room::blocks_at_once(function, call.name(), shape, shared)?;
                let threads = shape.warps_per_block().saturating_mul(32).saturating_mul(blocks.max(1).into());
                Ok(threads.saturating_mul(self.multiprocessors.into()))
            }
            (Some((call, _)), None) => self.code.untraced(call).map(|_| self.resident_threads()),
            (None, _) => Ok(self.resident_threads()),
        }
    }

    fn clocks(&mut self, with_steps: bool) -> Result<DeviceClocks, DeviceError> {
        self.enter()?;
        let clocks = match &self.clocks {
            Some(clocks) => clocks,
            None => self.clocks.insert(Clocks::new(&self.waits)?),
        };
        clocks.read(with_steps, self.stream)
    }

    unsafe fn launch(
        &mut self,
        call: &KernelCall,
        shape: &LaunchShape,
        traced: Option<Traced<'_>>,
    ) -> Result<LaunchTime, DeviceError> {
        self.enter()?;
        // Only the program's kernels can be given up.
        let waits = std::mem::replace(&mut self.waits, Waits { gives_up: self.interrupt.clone() });
        // SAFETY: the caller guarantees arguments and logs.
        let launched = unsafe { self.launch_and_wait(call, shape, traced) };
        self.waits = waits;
        launched
    }

    fn encode(&mut self, job: EncodeJob<'_>) -> Result<Encoded, DeviceError> {
        self.enter()?;
        match job {
            EncodeJob::Flatten(job) => {
                for (address, bytes) in job.parts() {
                    self.check_inside(address, bytes)?;
                }
                encoding::flatten(self, job)?;
                Ok(Encoded::default())
            }
            EncodeJob::Classes { pool, launches, table } => {
                encoding::find_classes(self, pool, launches, table)
            }
            EncodeJob::Logs { codec, pool, launches, table } => {
                check_codec(codec)?;
                encoding::encode(self, codec, pool, launches, table)
            }
            EncodeJob::Accounts { launches, table, classes, spans, scratch } => {
                self.check_inside(scratch.address, scratch.bytes)?;
                encoding::pack_accounts(self, launches, [table, scratch], (classes, spans))
            }
            EncodeJob::Collect { first, chunk_bytes, count, data, scratch, to } => {
                self.check_inside(first, u64::from(chunk_bytes) * u64::from(count))?;
                self.check_inside(scratch.address, scratch.bytes)?;
                let gather = match &mut self.gather {
                    Some(gather) => gather,
                    None => self.gather.insert(Gather::new(&self.waits)?),
                };
                let packing = data.zip(self.encoding.as_ref());
                let packing = packing.map(|(data, encoding)| encoding.packing(data, self.multiprocessors));
                let chunks = (first, chunk_bytes, count);
                let (staging, packing) = (&mut self.staging, packing.as_ref());
                let collected = gather.collect(staging, chunks, packing, scratch, self.stream, to)?;
                Ok(Encoded { collected, ..Encoded::default() })
            }
        }
    }

    fn live(&mut self) -> Result<&mut dyn LiveMemory, DeviceError> {
        self.enter()?;
        Ok(self)
    }

    unsafe fn second_handle(
        &mut self,
        memory: Allocation,
        codec: CodecSpec,
    ) -> Result<Option<Box<dyn Device + Send>>, DeviceError> {
        if memory.bytes < WORTH_ROUNDS_BYTES {
            return Ok(None);
        }
        self.enter()?;
        self.check_inside(memory.address, memory.bytes)?;
        let mut device = Self::within(self.ordinal, self.context, priority_stream()?, false, "")?;
        device.owns_stream = true;
        device.shared.insert(memory.address, memory.bytes, ());
        device.prepare_drains(codec)?;
        encoding::warm_up(&mut device, codec)?;
        Ok(Some(Box::new(device)))
    }
}

/// Refuses recordings that start at a location: a program that loads its own kernels has spliced them.
fn foreign_choosing(recording: Recording) -> Result<(), DeviceError> {
    if recording.after.is_none() {
        return Ok(());
    }
    let problem = "kernels that the program loads itself are recorded from their start on, not from a visit of a location";
    Err(DeviceError::Unsupported { problem: problem.to_owned() })
}

impl CudaDevice {
    /// # Safety
    /// See [`Device::launch`].
    unsafe fn launch_and_wait(
        &mut self,
        call: &KernelCall,
        shape: &LaunchShape,
        traced: Option<Traced<'_>>,
    ) -> Result<LaunchTime, DeviceError> {
        let (kernel, mut arguments) = (call.name(), pointers(call));
        let Some(Traced { recording, logs, sites }) = traced else {
            let (function, dynamic_shared) = (self.code.untraced(call)?, u64::from(shape.dynamic_shared));
            let launched = Launched { function, kernel, arguments, shape, dynamic_shared, claims: None };
            // SAFETY: `call` holds the argument bytes in the kernel's layout; the caller guarantees the
            // memory.
            return unsafe { self.run(launched, None) };
        };
        let traced = self.code.traced(call, recording);
        sites.append(&mut self.code.take_sites());
        let traced = traced?;
        let (function, needed) = (traced.function, traced.dynamic_shared(shape));
        let (descriptor, dynamic_shared, claims, serve) = match logs {
            Logs::Kept(logs) => ((&raw const *logs).cast::<c_void>(), needed, Some(logs.claims), None),
            Logs::Streamed { logs, serve } => {
                self.live_memory()?;
                let dynamic_shared = room::leave_room(self, function, kernel, shape, needed)?;
                ((&raw const *logs).cast(), dynamic_shared, None, Some(serve))
            }
        };
        arguments.push(descriptor.cast_mut());
        let launched = Launched { function, kernel, arguments, shape, dynamic_shared, claims };
        // SAFETY: see above. Kernels read only the declared part of the descriptor, the last argument.
        unsafe { self.run(launched, serve) }
    }

    fn resident_threads(&self) -> u64 {
        u64::from(self.multiprocessors) * u64::from(self.threads_each)
    }

    pub(super) fn live_memory(&mut self) -> Result<LiveDevice<'_>, DeviceError> {
        let live = match &mut self.live {
            Some(live) => live,
            none => none.insert(Live::new()?),
        };
        Ok(LiveDevice { allocations: &self.allocations, live })
    }
}

impl LiveMemory for CudaDevice {
    fn start_read(&mut self, ranges: &[(u64, usize)]) -> Result<(), DeviceError> {
        self.live_memory()?.start_read(ranges)
    }

    fn finish_read(&mut self) -> Result<&[u8], DeviceError> {
        match &mut self.live {
            Some(live) => live.finish_read(),
            None => Err(DeviceError::Unsupported { problem: "no read is under way".to_owned() }),
        }
    }

    fn write_live(&mut self, address: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.live_memory()?.write_live(address, bytes)
    }
}
