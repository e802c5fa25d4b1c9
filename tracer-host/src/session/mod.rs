//! A recording from its first launch to its last byte.

mod drain;
mod error;
mod pool;

use std::io::Write;
use std::time::{Duration, Instant};

use warptrace_device::{KernelCall, TracePoints};
use warptrace_format::chunk::DEFAULT_CHUNK_BYTES;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::{LaunchInfo, LocationInfo, Metadata};

pub use self::error::SessionError;
use self::pool::Pool;
use crate::writer::{Compression, Summary, TraceWriter, WriterOptions};
use crate::{Device, DeviceError, LaunchShape, LaunchTime, Launcher, Placement, Recording, Tracing};

/// The program that a session traces, for the file's metadata.
#[derive(Clone, Copy, Debug)]
pub struct TracedProgram<'a> {
    /// Each kernel's name and source file.
    pub kernels: &'a [(&'a str, &'a str)],
    /// The trace points of all kernels; ids are unique in the program.
    pub points: &'a [TracePoints],
}

/// What to record and how.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Codec of the trace.
    pub codec: CodecSpec,
    /// Record every event raw as well, on track 1.
    pub dual: bool,
    /// Where compiled kernels keep the encoder's tables.
    pub placement: Placement,
    /// Bytes of a chunk, header included: a power of two from 512 B to 1 MiB.
    pub chunk_bytes: u32,
    /// Bytes of device memory for chunks.
    pub pool_bytes: u64,
    /// Compression of the file's frames.
    pub compression: Compression,
    /// Name and version of the tool, for the file.
    pub tool: String,
    /// Free-form pairs for the file, such as the program's arguments.
    pub properties: Vec<(String, String)>,
}

impl SessionOptions {
    /// The defaults: no raw twin, 4 KiB chunks, a pool of 512 MiB, zstd.
    pub fn new(codec: CodecSpec) -> Self {
        Self {
            codec,
            dual: false,
            placement: Placement::default(),
            chunk_bytes: DEFAULT_CHUNK_BYTES,
            pool_bytes: 512 << 20,
            compression: Compression::default(),
            tool: concat!("warptrace ", env!("CARGO_PKG_VERSION")).to_owned(),
            properties: Vec::new(),
        }
    }
}

/// What one traced launch cost and yielded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaunchReport {
    /// Events that reached a trace point.
    pub attempted: u64,
    /// Of these, in the trace.
    pub recorded: u64,
    /// Of these, without room in the pool.
    pub lost: u64,
    /// Chunks written, all tracks together.
    pub chunks: u64,
    /// Payload bytes of track 0: what the codec made of the events.
    pub payload_bytes: u64,
    /// The kernel alone.
    pub kernel: Duration,
    /// Copying from the device.
    pub copy: Duration,
    /// Sorting, compressing and writing.
    pub write: Duration,
}

impl LaunchReport {
    fn add(&mut self, other: &Self) {
        self.attempted += other.attempted;
        self.recorded += other.recorded;
        self.lost += other.lost;
        self.chunks += other.chunks;
        self.payload_bytes += other.payload_bytes;
        self.kernel += other.kernel;
        self.copy += other.copy;
        self.write += other.write;
    }
}

/// Records launches of one program on one device into one file.
///
/// A launch that fails leaves the session unusable; what was written before it is a readable file.
pub struct Session<'d, W: Write> {
    device: &'d mut dyn Device,
    writer: TraceWriter<W>,
    pool: Pool,
    recording: Recording,
    placement: Placement,
    kernels: Vec<String>,
    launches: u32,
    failed: bool,
    total: LaunchReport,
}

impl<W: Write> std::fmt::Debug for Session<'_, W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("recording", &self.recording)
            .field("launches", &self.launches)
            .finish_non_exhaustive()
    }
}

impl<'d, W: Write> Session<'d, W> {
    /// Allocates the pool and starts the file.
    ///
    /// # Errors
    /// If the options contradict the codec or the format, memory is short, or the file cannot be written.
    pub fn start(
        device: &'d mut dyn Device,
        program: &TracedProgram<'_>,
        options: &SessionOptions,
        output: W,
    ) -> Result<Self, SessionError> {
        if !matches!(options.codec, CodecSpec::Raw | CodecSpec::Ecl(_)) {
            let problem =
                format!("kernels record with `raw` or `ecl`, not yet with `{}`", options.codec.name());
            return Err(DeviceError::Unsupported { problem }.into());
        }
        let recording = Recording { codec: options.codec, dual: options.dual };
        let chunk_count = pool::chunk_count(options)?;
        let metadata = metadata(&*device, program, options, chunk_count);
        metadata.check()?;
        for (kernel, _) in program.kernels {
            device.prepare(kernel, Some((recording, options.placement)))?;
        }
        let pool = Pool::new(device, options, chunk_count)?;
        let writer_options = WriterOptions::default().with_compression(options.compression);
        let writer = TraceWriter::create(output, &metadata, writer_options)?;
        Ok(Self {
            device,
            writer,
            pool,
            recording,
            placement: options.placement,
            kernels: program.kernels.iter().map(|(name, _)| (*name).to_owned()).collect(),
            launches: 0,
            failed: false,
            total: LaunchReport::default(),
        })
    }

    /// Runs a kernel, waits for it, and writes what it recorded.
    ///
    /// # Safety
    /// The arguments name memory of the session's device that is valid for what the kernel does with it.
    ///
    /// # Errors
    /// If the kernel was not named in the program, the launch has a shape that cannot be traced, the kernel fails,
    /// or the file cannot be written.
    pub unsafe fn record(
        &mut self,
        call: &KernelCall,
        shape: &LaunchShape,
    ) -> Result<LaunchReport, SessionError> {
        if self.failed {
            return Err(SessionError::Unusable);
        }
        self.failed = true;
        // SAFETY: the caller's promise.
        let report = unsafe { self.record_launch(call, shape) }?;
        self.failed = false;
        self.total.add(&report);
        Ok(report)
    }

    unsafe fn record_launch(
        &mut self,
        call: &KernelCall,
        shape: &LaunchShape,
    ) -> Result<LaunchReport, SessionError> {
        let kernel = self.kernels.iter().position(|name| name == call.name()).ok_or_else(|| {
            SessionError::UnknownKernel { kernel: call.name().to_owned(), known: self.kernels.join(", ") }
        })?;
        let info =
            LaunchInfo::new(self.launches, kernel as u32, shape.grid, shape.block, shape.dynamic_shared)?;
        let resident = self.device.resident_warps(shape);
        let descriptor = self.pool.prepare(self.device, &info, resident)?;
        let tracing = Tracing { recording: self.recording, placement: self.placement, pool: descriptor };
        // SAFETY: the caller's promise for the arguments; the pool is prepared for this launch.
        let time = unsafe { self.device.launch(call, shape, Some(&tracing)) }?;
        self.launches += 1;

        let mut report = LaunchReport { kernel: time.kernel, ..LaunchReport::default() };
        self.writer.begin_launch(&info)?;
        drain::chunks(self.device, &self.pool, &info, &mut self.writer, &mut report)?;
        drain::accounts(self.device, &self.pool, &info, self.recording.dual, &mut self.writer, &mut report)?;
        Ok(report)
    }

    /// Sum of all launches so far.
    pub fn total(&self) -> &LaunchReport {
        &self.total
    }

    /// Writes the index and ends the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(mut self) -> Result<(W, Summary, LaunchReport), SessionError> {
        self.pool.free(self.device)?;
        let started = Instant::now();
        let (output, summary) = self.writer.finish()?;
        self.total.write += started.elapsed();
        Ok((output, summary, self.total))
    }
}

impl<W: Write> Launcher for Session<'_, W> {
    fn device(&mut self) -> &mut dyn Device {
        self.device
    }

    unsafe fn launch(&mut self, call: &KernelCall, shape: &LaunchShape) -> Result<LaunchTime, SessionError> {
        // SAFETY: the caller's promise.
        let report = unsafe { self.record(call, shape) }?;
        Ok(LaunchTime { kernel: report.kernel })
    }
}

fn metadata(
    device: &dyn Device,
    program: &TracedProgram<'_>,
    options: &SessionOptions,
    chunk_count: u32,
) -> Metadata {
    let mut tracks = vec![options.codec];
    if options.dual {
        tracks.push(CodecSpec::Raw);
    }
    let mut metadata = Metadata::new(options.tool.clone(), device.info(), tracks)
        .with_pool(options.chunk_bytes, chunk_count);
    for (name, source) in program.kernels {
        metadata = metadata.with_kernel(*name, *source);
    }
    for points in program.points {
        for point in points.points {
            let (line, column) = points.position(point).unwrap_or((0, 0));
            metadata.locations.push(LocationInfo {
                id: point.id,
                name: point.name.to_owned(),
                description: point.what.to_owned(),
                file: points.file.to_owned(),
                line,
                column,
            });
        }
    }
    metadata.properties = options.properties.clone();
    metadata
}
