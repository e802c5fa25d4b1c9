//! What a session asks of a GPU.

use std::ffi::c_void;

use cudarc::driver::result;
use warptrace_abi::log::LoggedLaunch;
use warptrace_abi::pool::PoolDescriptor;
use warptrace_device::{KernelCall, KernelModule};
use warptrace_encode::{DEVICE_ECL, DEVICE_PREDICT, FlattenJob};
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::DeviceInfo;

use super::CudaDevice;
use super::code::Way;
use super::driver::{self, Called};
use super::encoding::{self, Encoding, stream_beside};
use super::gather::Gather;
use super::launch::{Launched, pointers};
use super::live::{Beside, Live};
use super::room;
use super::staging::{self, Staging};
use crate::{
    Allocation, Choosing, Device, DeviceError, DeviceMemory, Encoded, LaunchShape, LaunchTime, LiveMemory,
    Placement, Recording, Serve, Streaming, Tracing,
};

/// With less memory the warps that a card holds fill it before they leave: then it is better used for their
/// logs than for encoding on the card.
const WORTH_ROUNDS_BYTES: u64 = 512 << 20;

/// Whether compiled kernels encode so.
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
    /// Makes what a drain needs, which takes milliseconds.
    fn prepare_drains(&mut self, recording: Recording) -> Result<(), DeviceError> {
        check_codec(recording.codec)?;
        if self.staging.is_none() {
            self.staging = Some(Staging::new()?);
        }
        if self.gather.is_none() {
            self.gather = Some(Gather::new()?);
        }
        if self.encoding.is_none() {
            self.encoding = Some(Encoding::load(self.architecture)?);
        }
        Ok(())
    }
}

impl Device for CudaDevice {
    fn info(&self) -> DeviceInfo {
        self.info.clone()
    }

    fn multiprocessors(&self) -> u32 {
        self.multiprocessors
    }

    fn resident_threads(&self) -> u64 {
        u64::from(self.multiprocessors) * u64::from(self.threads_each)
    }

    fn memory(&self) -> DeviceMemory {
        let total = self.memory;
        // Where nobody can tell, an allocation will.
        let free = self.enter().ok().and_then(|()| result::mem_get_info().ok());
        DeviceMemory { total, free: free.map_or(total, |(free, _)| free as u64) }
    }

    fn add_code(&mut self, module: &KernelModule) -> Result<(), DeviceError> {
        self.code.add_module(module);
        Ok(())
    }

    fn allocate(&mut self, bytes: u64) -> Result<Allocation, DeviceError> {
        self.enter()?;
        let out_of_memory = |reason: String| DeviceError::OutOfMemory { bytes, reason };
        let length = usize::try_from(bytes.max(1)).map_err(|error| out_of_memory(error.to_string()))?;
        // SAFETY: a plain allocation, given back by `free` or `drop`.
        let address = unsafe { result::malloc_sync(length) }.map_err(|error| {
            let (name, description) = driver::words(error);
            let free = result::mem_get_info()
                .map_or_else(|_| String::new(), |(free, _)| format!("; {free} bytes are free"));
            out_of_memory(format!("cuMemAlloc: {name} ({description}){free}"))
        })?;
        self.allocations.insert(address, bytes.max(1));
        Ok(Allocation { address, bytes })
    }

    fn allocate_on_host(&mut self, bytes: u64) -> Result<Allocation, DeviceError> {
        self.enter()?;
        Ok(Allocation { address: self.pinned.allocate(bytes)?, bytes })
    }

    fn free(&mut self, allocation: Allocation) -> Result<(), DeviceError> {
        self.enter()?;
        if let Some(freed) = self.pinned.free(allocation.address) {
            return freed;
        }
        if self.allocations.remove(&allocation.address).is_none() {
            return Err(DeviceError::OutOfBounds { address: allocation.address, bytes: allocation.bytes });
        }
        // SAFETY: it was allocated here and is no longer listed.
        unsafe { result::free_sync(allocation.address) }.called("cuMemFree")
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.enter()?;
        self.check_inside(address, bytes.len() as u64)?;
        // SAFETY: inside an allocation; the bytes are there until the copy has ended.
        unsafe { result::memcpy_htod_async(address, bytes, self.stream) }.called("cuMemcpyHtoDAsync")?;
        self.finish()
    }

    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.enter()?;
        self.check_inside(address, bytes.len() as u64)?;
        staging::read(&mut self.staging, self.stream, address, bytes)
    }

    fn collect(
        &mut self,
        first: u64,
        chunk_bytes: u32,
        count: u32,
        scratch: Allocation,
        to: &mut Vec<u8>,
    ) -> Result<u32, DeviceError> {
        self.enter()?;
        self.check_inside(first, u64::from(chunk_bytes) * u64::from(count))?;
        self.check_inside(scratch.address, scratch.bytes)?;
        let gather = match &mut self.gather {
            Some(gather) => gather,
            None => self.gather.insert(Gather::new()?),
        };
        gather.collect(&mut self.staging, (first, chunk_bytes, count), scratch, self.stream, to)
    }

    fn fill(&mut self, address: u64, bytes: u64, value: u8) -> Result<(), DeviceError> {
        self.enter()?;
        self.check_inside(address, bytes)?;
        // SAFETY: inside an allocation.
        unsafe { result::memset_d8_async(address, value, bytes as usize, self.stream) }
            .called("cuMemsetD8Async")?;
        self.finish()
    }

    fn prepare(
        &mut self,
        kernels: &[&str],
        tracing: Option<(Recording, Option<Placement>, Choosing)>,
    ) -> Result<(), DeviceError> {
        self.enter()?;
        let Some((recording, placement, chooses)) = tracing else { return self.code.load(kernels, None) };
        self.prepare_drains(recording)?;
        if self.is_foreign {
            foreign_choosing(chooses)?;
            // Later, kernels of the program may be running that wait for it.
            return encoding::warm_up(self, recording);
        }
        self.code.load(kernels, Some(Way::of(recording, placement, chooses)))
    }

    fn prepare_ring(
        &mut self,
        kernels: &[&str],
        recording: Recording,
        placement: Option<Placement>,
        chooses: Choosing,
    ) -> Result<(), DeviceError> {
        self.enter()?;
        self.prepare_drains(recording)?;
        if self.is_foreign {
            foreign_choosing(chooses)?;
            // Later, kernels of the program may be running that wait for it.
            return encoding::warm_up(self, recording);
        }
        self.code.load(kernels, Some(Way::ring(recording, placement, chooses)))
    }

    fn encode(
        &mut self,
        recording: Recording,
        pool: &PoolDescriptor,
        launches: &[LoggedLaunch],
        table: Allocation,
    ) -> Result<Encoded, DeviceError> {
        self.enter()?;
        check_codec(recording.codec)?;
        encoding::encode(self, recording, pool, launches, table)
    }

    unsafe fn launch(
        &mut self,
        call: &KernelCall,
        shape: &LaunchShape,
        tracing: Option<&Tracing>,
    ) -> Result<LaunchTime, DeviceError> {
        self.enter()?;
        let kernel = call.name();
        let mut arguments = pointers(call);
        let mut dynamic_shared = u64::from(shape.dynamic_shared);
        let (function, claims) = match tracing {
            None => (self.code.untraced(call)?, None),
            Some(tracing) => {
                let &Tracing { recording, placement, chooses, .. } = tracing;
                let way = match tracing.logs.ring {
                    0 => Way::of(recording, placement, chooses),
                    _ => Way::ring(recording, placement, chooses),
                };
                let traced = self.code.traced(call, way)?;
                arguments.push((&raw const tracing.logs).cast_mut().cast::<c_void>());
                dynamic_shared = traced.dynamic_shared(shape);
                (traced.function, Some(tracing.logs.claims))
            }
        };
        let launched = Launched { function, kernel, arguments, shape, dynamic_shared, claims };
        // SAFETY: the argument bytes live in `call` and have the layout that the kernel was compiled with;
        // the last one is the descriptor, of which traced kernels take as much as they declare. The caller
        // promises the memory behind them.
        unsafe { self.run(launched, None) }
    }

    fn prepare_streamed(
        &mut self,
        kernels: &[&str],
        recording: Recording,
        placement: Option<Placement>,
        chooses: Choosing,
        open_runs: bool,
    ) -> Result<(), DeviceError> {
        self.enter()?;
        self.beside()?;
        self.code.load(kernels, Some(Way::streamed(recording, placement, chooses, open_runs)))
    }

    /// Of a device that has failed, too: then memory of the host can be read.
    fn live(&mut self) -> Result<&mut dyn LiveMemory, DeviceError> {
        let _ = self.enter();
        Ok(self)
    }

    fn resident_of(
        &mut self,
        call: &KernelCall,
        shape: &LaunchShape,
        streaming: &Streaming,
    ) -> Result<u64, DeviceError> {
        self.enter()?;
        let &Streaming { recording, placement, chooses, open_runs, .. } = streaming;
        let way = Way::streamed(recording, placement, chooses, open_runs);
        let traced = self.code.traced(call, way)?;
        let (function, needed) = (traced.function, traced.dynamic_shared(shape));
        let shared = room::leave_room(self, function, call.name(), shape, needed)?;
        let blocks = room::blocks_at_once(function, call.name(), shape, shared)?;
        let threads = shape.warps_per_block().saturating_mul(32).saturating_mul(blocks.max(1).into());
        Ok(threads.saturating_mul(self.multiprocessors.into()))
    }

    fn beside(
        &mut self,
        memory: Allocation,
        recording: Recording,
    ) -> Result<Option<Box<dyn Device + Send>>, DeviceError> {
        if memory.bytes < WORTH_ROUNDS_BYTES {
            return Ok(None);
        }
        self.enter()?;
        self.check_inside(memory.address, memory.bytes)?;
        let mut device = Self::within(self.ordinal, self.context, stream_beside()?, false, "")?;
        device.owns_stream = true;
        device.shared.insert(memory.address, memory.bytes);
        device.prepare_drains(recording)?;
        encoding::warm_up(&mut device, recording)?;
        Ok(Some(Box::new(device)))
    }

    fn flatten(&mut self, job: &FlattenJob) -> Result<(), DeviceError> {
        self.enter()?;
        for (address, bytes) in job.parts() {
            self.check_inside(address, bytes)?;
        }
        encoding::flatten(self, job)
    }

    unsafe fn launch_streamed(
        &mut self,
        call: &KernelCall,
        shape: &LaunchShape,
        streaming: &Streaming,
        serve: &mut Serve<'_>,
    ) -> Result<LaunchTime, DeviceError> {
        self.enter()?;
        self.beside()?;
        let kernel = call.name();
        let &Streaming { recording, placement, chooses, open_runs, .. } = streaming;
        let traced = self.code.traced(call, Way::streamed(recording, placement, chooses, open_runs))?;
        let mut arguments = pointers(call);
        arguments.push((&raw const streaming.logs).cast_mut().cast::<c_void>());
        let launched = Launched {
            function: traced.function,
            kernel,
            arguments,
            shape,
            dynamic_shared: room::leave_room(
                self,
                traced.function,
                kernel,
                shape,
                traced.dynamic_shared(shape),
            )?,
            claims: None,
        };
        // SAFETY: as in `launch`.
        unsafe { self.run(launched, Some(serve)) }
    }
}

/// Who loads kernels himself has spliced them, too.
fn foreign_choosing(chooses: Choosing) -> Result<(), DeviceError> {
    if chooses.after.is_none() {
        return Ok(());
    }
    let problem = "kernels that the program loads itself are recorded from their start on, not from a visit of a location";
    Err(DeviceError::Unsupported { problem: problem.to_owned() })
}

impl CudaDevice {
    /// Device memory beside a kernel.
    pub(super) fn beside(&mut self) -> Result<Beside<'_>, DeviceError> {
        let live = match &mut self.live {
            Some(live) => live,
            none => none.insert(Live::new()?),
        };
        Ok(Beside { allocations: &self.allocations, pinned: &self.pinned, live })
    }
}

impl LiveMemory for CudaDevice {
    fn start_read(&mut self, ranges: &[(u64, usize)]) -> Result<(), DeviceError> {
        self.beside()?.start_read(ranges)
    }

    fn finish_read(&mut self) -> Result<&[u8], DeviceError> {
        match &mut self.live {
            Some(live) => live.finish_read(),
            None => {
                Err(DeviceError::Unsupported { problem: "no read beside a kernel is under way".to_owned() })
            }
        }
    }

    fn write_live(&mut self, address: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.beside()?.write_live(address, bytes)
    }
}
