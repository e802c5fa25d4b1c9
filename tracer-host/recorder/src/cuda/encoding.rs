//! Merging and encoding on the GPU with the kernels of `warptrace-encode`.

use std::collections::HashMap;
use std::time::Duration;

use cudarc::driver::{result, sys};
use warptrace_abi::log::LoggedLaunch;
use warptrace_abi::pool::{Claims, PoolDescriptor};
use warptrace_device::KernelCall;
use warptrace_encode::{
    ACCOUNTS_THREADS, AccountsJob, CLASSES_THREADS, Codec, FLATTEN_THREADS, FlattenJob, MERGE_THREADS,
    PREDICT_LANES, PREDICT_THREADS, encode_predict_call, encode_serial_call, find_classes_call, flatten_call,
    link_call, merge_call, pack_accounts_call, serial_shared_bytes,
};
use warptrace_format::codec::CodecSpec;

use super::driver::Called;
use super::gather::Packing;
use super::launch::{Launched, pointers};
use super::{CudaDevice, code, driver};
use crate::{Allocation, Blocks, Device, DeviceError, Encoded, LaunchShape};

/// PTX of the merge and encode kernels, compressed with zstd.
const PTX: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/encode.ptx.zst"));
/// The same kernels assembled for some architectures, each compressed with zstd.
const CUBINS: &[(u32, &[u8])] = include!(concat!(env!("OUT_DIR"), "/encode.cubins.rs"));

/// Minimum and maximum threads of a block that encodes serially.
const MIN_SERIAL_THREADS: u32 = 4;
const MAX_SERIAL_THREADS: u32 = 32;
/// Blocks of a multiprocessor that pack tiles at the same time, by their shared memory.
const PACK_BLOCKS: u32 = 4;
/// Maximum resident blocks of a multiprocessor.
const MAX_BLOCKS: u32 = 32;

/// Returns the PTX of the merge and encode kernels; empty if this crate was built without a device compiler.
pub fn encoder_ptx() -> String {
    String::from_utf8(unpack(PTX)).expect("text, as the compiler wrote it")
}

fn unpack(packed: &[u8]) -> Vec<u8> {
    zstd::decode_all(packed).expect("compressed by the build script")
}

pub(super) struct Encoding {
    module: sys::CUmodule,
    functions: HashMap<&'static str, sys::CUfunction>,
}

const KERNELS: [&str; 11] = [
    "warptrace_find_classes",
    "warptrace_link_segments",
    "warptrace_flatten_warps",
    "warptrace_merge",
    "warptrace_encode_predict",
    "warptrace_encode_raw_serial",
    "warptrace_encode_ecl_serial",
    "warptrace_encode_predict_serial",
    "warptrace_place_chunks",
    "warptrace_pack_data",
    "warptrace_pack_accounts",
];

impl Encoding {
    /// Loads a cubin if one fits and the driver accepts it, otherwise PTX, which the driver compiles.
    pub(super) fn load(architecture: u32) -> Result<Self, DeviceError> {
        // A cubin runs on its architecture and on later ones with the same major version.
        let fits = |found: u32| found / 10 == architecture / 10 && found <= architecture;
        let cubin = CUBINS.iter().filter(|(found, _)| fits(*found)).max_by_key(|(found, _)| *found);
        // SAFETY: a cubin from the assembler at build time. A driver older than the assembler may refuse it.
        let loaded =
            cubin.and_then(|(_, image)| unsafe { driver::load_cubin("merging", &unpack(image)) }.ok());
        let module = match loaded {
            Some(module) => module,
            None => load_ptx()?,
        };
        let mut functions = HashMap::new();
        for kernel in KERNELS {
            functions.insert(kernel, code::function(module, kernel)?);
        }
        Ok(Self { module, functions })
    }

    /// Returns how the chunks of a data track are packed on a device with this many multiprocessors.
    pub(super) fn packing(&self, (track, streams): (u32, u32), multiprocessors: u32) -> Packing {
        let functions = [self.functions["warptrace_place_chunks"], self.functions["warptrace_pack_data"]];
        Packing { functions, track, streams, blocks: PACK_BLOCKS * multiprocessors }
    }

    /// # Safety
    /// No kernel of the module runs or will run.
    pub(super) unsafe fn unload(&self) {
        // Errors are ignored. SAFETY: loaded by `load`, and no longer used.
        let _ = unsafe { result::module::unload(self.module) };
    }
}

fn load_ptx() -> Result<sys::CUmodule, DeviceError> {
    let ptx = encoder_ptx();
    if ptx.is_empty() {
        return Err(DeviceError::no_device_code(None));
    }
    driver::load_ptx("what merges and encodes", &ptx)
}

pub(super) fn encode(
    device: &mut CudaDevice,
    spec: CodecSpec,
    pool: &PoolDescriptor,
    launches: &[LoggedLaunch],
    table: Allocation,
) -> Result<Encoded, DeviceError> {
    let Some(last) = launches.last() else { return Ok(Encoded::default()) };
    let streams = last.first_stream + last.tracks * last.warps;
    let codec = Codec::new(spec).ok_or_else(|| DeviceError::Unsupported {
        problem: format!("no kernel encodes with `{}`", spec.name()),
    })?;
    device.write_launches(launches, table)?;
    let table = table.address;
    let count = launches.len() as u32;
    let mut time = Duration::ZERO;
    // One warp per stream.
    let shape = device.encoding_shape(streams, MERGE_THREADS, MERGE_THREADS / 32, 0);
    let merge = merge_call(pool, table, count, streams, codec);
    let mut claims = device.launch_encoding(Some(pool), &merge, &shape, &mut time)?;
    let chunks = claims.chunks.min(pool.chunk_count);
    if chunks == 0 {
        return Ok(Encoded { claims, time, collected: 0 });
    }
    if let CodecSpec::Predict(params) = spec
        && chunks > claims.serial
    {
        let shape = device.encoding_shape(chunks, PREDICT_THREADS, PREDICT_THREADS / PREDICT_LANES, 0);
        let call = encode_predict_call(pool, table, count, chunks, params);
        device.launch_encoding(Some(pool), &call, &shape, &mut time)?;
    }
    if claims.serial != 0 {
        // A second track is raw.
        let second = (last.tracks > 1 && spec != CodecSpec::Raw).then_some(CodecSpec::Raw);
        for spec in [Some(spec), second].into_iter().flatten() {
            let bytes = Codec::new(spec).map_or(0, serial_shared_bytes);
            let threads = device.serial_threads(chunks);
            let shape = device.encoding_shape(chunks, threads, threads, bytes);
            let call = encode_serial_call(pool, table, count, chunks, spec);
            claims = device.launch_encoding(Some(pool), &call, &shape, &mut time)?;
        }
    }
    Ok(Encoded { claims, time, collected: 0 })
}

pub(super) fn find_classes(
    device: &mut CudaDevice,
    pool: &PoolDescriptor,
    launches: &[LoggedLaunch],
    table: Allocation,
) -> Result<Encoded, DeviceError> {
    let Some(last) = launches.last() else { return Ok(Encoded::default()) };
    let (streams, mut time) = (last.first_stream + last.tracks * last.warps, Duration::ZERO);
    device.write_launches(launches, table)?;
    let shape = device.encoding_shape(streams, CLASSES_THREADS, CLASSES_THREADS / 32, 0);
    let call = find_classes_call(pool, table.address, launches.len() as u32, streams);
    let claims = device.launch_encoding(Some(pool), &call, &shape, &mut time)?;
    Ok(Encoded { claims, time, collected: 0 })
}

/// Packs accounts, and spans if asked for, into `scratch`.
pub(super) fn pack_accounts(
    device: &mut CudaDevice,
    launches: &[LoggedLaunch],
    [table, scratch]: [Allocation; 2],
    (classes, spans): (u64, bool),
) -> Result<Encoded, DeviceError> {
    let Some(last) = launches.last() else { return Ok(Encoded::default()) };
    let job = AccountsJob {
        table: table.address,
        classes,
        target: scratch.address,
        launches: launches.len() as u32,
        streams: last.first_stream + last.tracks * last.warps,
        spans: spans.into(),
        unused: 0,
    };
    let words = job.words(last.tracks);
    if 4 * words > scratch.bytes {
        return Ok(Encoded::default());
    }
    device.write_launches(launches, table)?;
    device.fill(scratch.address, 16, 0)?;
    let (threads, mut time) = (ACCOUNTS_THREADS, Duration::ZERO);
    let shape = device.encoding_shape(job.streams, threads, threads, 0);
    device.launch_encoding(None, &pack_accounts_call(&job), &shape, &mut time)?;
    Ok(Encoded { collected: words as u32, time, ..Encoded::default() })
}

/// Creates a non-blocking stream whose kernels start before pending kernels of other streams.
pub(super) fn priority_stream() -> Result<sys::CUstream, DeviceError> {
    let (mut least, mut greatest, mut stream) = (0, 0, std::ptr::null_mut());
    // SAFETY: a context is current; the calls write to the given variables.
    unsafe {
        sys::cuCtxGetStreamPriorityRange(&raw mut least, &raw mut greatest)
            .result()
            .called("cuCtxGetStreamPriorityRange")?;
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        sys::cuStreamCreateWithPriority(&raw mut stream, flags, greatest)
            .result()
            .called("cuStreamCreateWithPriority")?;
    }
    Ok(stream)
}

pub(super) fn flatten(device: &mut CudaDevice, job: &FlattenJob) -> Result<(), DeviceError> {
    let mut time = Duration::ZERO;
    let shape = device.encoding_shape(job.segment_count.max(1), FLATTEN_THREADS, FLATTEN_THREADS, 0);
    device.launch_encoding(None, &link_call(job), &shape, &mut time)?;
    let shape = device.encoding_shape(job.round_warps.max(1), FLATTEN_THREADS, FLATTEN_THREADS / 32, 0);
    device.launch_encoding(None, &flatten_call(job), &shape, &mut time)?;
    Ok(())
}

/// Runs all encode kernels once without work: the driver cannot set them up while a kernel runs.
pub(super) fn warm_up(device: &mut CudaDevice, spec: CodecSpec) -> Result<(), DeviceError> {
    flatten(device, &FlattenJob::default())?;
    let (pool, mut time) = (PoolDescriptor::default(), Duration::ZERO);
    let codec = Codec::new(spec).unwrap_or(Codec::Raw);
    let shape = device.encoding_shape(1, MERGE_THREADS, MERGE_THREADS / 32, 0);
    device.launch_encoding(None, &find_classes_call(&pool, 0, 1, 0), &shape, &mut time)?;
    device.launch_encoding(None, &merge_call(&pool, 0, 1, 0, codec), &shape, &mut time)?;
    let shape = device.encoding_shape(1, ACCOUNTS_THREADS, ACCOUNTS_THREADS, 0);
    device.launch_encoding(None, &pack_accounts_call(&AccountsJob::default()), &shape, &mut time)?;
    if let CodecSpec::Predict(params) = spec {
        let shape = device.encoding_shape(1, PREDICT_THREADS, PREDICT_THREADS / PREDICT_LANES, 0);
        device.launch_encoding(None, &encode_predict_call(&pool, 0, 1, 0, params), &shape, &mut time)?;
    }
    let second = (spec != CodecSpec::Raw).then_some(CodecSpec::Raw);
    for spec in [Some(spec), second].into_iter().flatten() {
        let bytes = Codec::new(spec).map_or(0, serial_shared_bytes);
        let shape = device.encoding_shape(1, MAX_SERIAL_THREADS, MAX_SERIAL_THREADS, bytes);
        device.launch_encoding(None, &encode_serial_call(&pool, 0, 1, 0, spec), &shape, &mut time)?;
    }
    Ok(())
}

impl CudaDevice {
    /// Returns the threads of a block that encodes serially. Diverged threads of a warp run in turns, so each
    /// block gets the fewest threads that fill the device.
    fn serial_threads(&self, chunks: u32) -> u32 {
        let mut threads = MIN_SERIAL_THREADS;
        while threads < MAX_SERIAL_THREADS && chunks > threads * MAX_BLOCKS * self.multiprocessors {
            threads *= 2;
        }
        threads
    }

    /// Writes the table of launches, and loads the encode kernels if needed.
    fn write_launches(&mut self, launches: &[LoggedLaunch], table: Allocation) -> Result<(), DeviceError> {
        let words = launches.iter().flat_map(LoggedLaunch::to_words);
        self.write(table.address, &words.flat_map(u32::to_le_bytes).collect::<Vec<u8>>())?;
        if self.encoding.is_none() {
            self.encoding = Some(Encoding::load(self.architecture)?);
        }
        Ok(())
    }

    /// Returns a shape of `threads` threads per `each` of `items` items, with `bytes` shared bytes a thread.
    fn encoding_shape(&self, items: u32, threads: u32, each: u32, bytes: u32) -> LaunchShape {
        // With fewer blocks than needed, each block processes more items.
        let most = MAX_BLOCKS * self.multiprocessors;
        let grid = [items.div_ceil(each).min(most), 1, 1];
        LaunchShape {
            dynamic_shared: threads * bytes,
            ..LaunchShape::new(grid, [threads, 1, 1], Blocks::Independent)
        }
    }

    /// Runs an encode kernel; returns the reservation counters afterwards.
    fn launch_encoding(
        &mut self,
        pool: Option<&PoolDescriptor>,
        call: &KernelCall,
        shape: &LaunchShape,
        time: &mut Duration,
    ) -> Result<Claims, DeviceError> {
        let kernel = call.name();
        let function = self.encoding.as_ref().and_then(|encoding| encoding.functions.get(kernel)).copied();
        let function = function.ok_or_else(|| DeviceError::no_device_code(None))?;
        let launched = Launched {
            function,
            kernel,
            arguments: pointers(call),
            shape,
            dynamic_shared: u64::from(shape.dynamic_shared),
            claims: pool.map(|pool| pool.claims),
        };
        // SAFETY: the arguments match the kernel. Pool and logs belong to launches that have ended, and
        // nothing else uses them. The table was written for these launches.
        let ran = unsafe { self.run(launched, None) }?;
        *time += ran.kernel;
        Ok(ran.claims)
    }
}
