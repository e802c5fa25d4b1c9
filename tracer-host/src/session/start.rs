//! How a session starts.

use std::io::Write;

use warptrace_device::KernelModule;
use warptrace_format::file::{Growing, LocationInfo};
use warptrace_format::log::{MIN_RING_ENTRIES, SEGMENT_MULTIPLE};

use super::memory::Division;
use super::metadata::{metadata, source_hashes};
use super::pool::Pool;
use super::stream::Streams;
use super::worker::Worker;
use super::{
    LaunchReport, Logs, Policy, PoolMemory, Session, SessionError, SessionOptions, TracedProgram, modules,
};
use crate::writer::{self, TraceWriter, WriterOptions};
use crate::{Device, Recording};

impl<'d, W: Write + Send + 'static> Session<'d, W> {
    /// Allocates device memory and starts the file.
    ///
    /// # Errors
    /// If the options contradict the codec or the format, the window names a kernel that the program does not
    /// have, memory is short, or the file cannot be written.
    pub fn start(
        device: &'d mut dyn Device,
        program: &TracedProgram<'_>,
        options: &SessionOptions,
        output: W,
    ) -> Result<Self, SessionError> {
        let mut options = options.clone();
        options.properties.extend(source_hashes(program.points, program.modules.iter()));
        Self::start_with(device, program.kernels, program.locations(), &options, output)
    }

    /// Like [`start`](Self::start), for the kernels of a module that `#[warptrace::kernels]` made. The device
    /// takes the module's code.
    ///
    /// # Errors
    /// As `start`; also if the device cannot take the code.
    pub fn start_module(
        device: &'d mut dyn Device,
        module: &KernelModule,
        options: &SessionOptions,
        output: W,
    ) -> Result<Self, SessionError> {
        Self::start_modules(device, &[module], options, output)
    }

    /// Like [`start_module`](Self::start_module), for the kernels of several modules, whose locations have
    /// ids of their own.
    ///
    /// # Errors
    /// As `start_module`; also if two of the modules have a location of the same id.
    pub fn start_modules(
        device: &'d mut dyn Device,
        modules: &[&KernelModule],
        options: &SessionOptions,
        output: W,
    ) -> Result<Self, SessionError> {
        let (kernels, locations) = modules::merged(modules)?;
        let names = modules.iter().flat_map(|module| std::iter::repeat_n(module.name, module.kernels.len()));
        for module in modules {
            device.add_code(module.ptx)?;
        }
        let mut options = options.clone();
        options.properties.extend(source_hashes(&[], modules.iter().copied()));
        let mut session = Self::start_with(device, &kernels, locations, &options, output)?;
        session.modules = names.collect();
        Ok(session)
    }

    fn start_with(
        device: &'d mut dyn Device,
        sources: &[(&str, &str)],
        locations: Vec<LocationInfo>,
        options: &SessionOptions,
        output: W,
    ) -> Result<Self, SessionError> {
        let recording = Recording { codec: options.codec, dual: options.dual, counted: options.counted };
        let kernels: Vec<&str> = sources.iter().map(|(name, _)| *name).collect();
        // Of a program that loads its kernels later nobody knows their names.
        let unknown = if kernels.is_empty() { None } else { options.window.unknown_kernel(&kernels) };
        if let Some(name) = unknown {
            return Err(SessionError::NoSuchKernel { name: name.to_owned(), known: kernels.join(", ") });
        }
        let shortest = match options.policy {
            Policy::Ring => MIN_RING_ENTRIES,
            Policy::Stop | Policy::Stream { .. } => SEGMENT_MULTIPLE,
        };
        let division = Division::of(options.memory_bytes, options.chunk_bytes, shortest, &*device)?;
        let metadata = metadata(&*device, sources, locations, options, &division);
        let tables = Growing::new(metadata.clone())?;
        let writer_options = WriterOptions::default().with_compression(options.compression);
        // While the device does its part.
        writer::get_ready(&metadata.tracks, &writer_options);
        let tracks = if options.dual { 2 } else { 1 };
        let chooses = options.window.looks_inside();
        options.window.check(options.counted, options.opens_runs(), &tables.metadata().locations)?;
        let logs = match options.policy {
            Policy::Stop | Policy::Ring if options.pool == PoolMemory::Host => {
                return Err(SessionError::HostPool);
            }
            Policy::Stop => {
                device.prepare(&kernels, Some((recording, options.placement, chooses)))?;
                Logs::Kept(Box::new(Pool::new(device, division, tracks, false, options.overlap)?))
            }
            Policy::Ring => {
                device.prepare_ring(&kernels, recording, options.placement, chooses)?;
                Logs::Kept(Box::new(Pool::new(device, division, tracks, true, options.overlap)?))
            }
            Policy::Stream { stall, open_runs } => {
                device.prepare_streamed(&kernels, recording, options.placement, chooses, open_runs)?;
                Logs::Streamed(Box::new(Streams::new(
                    device,
                    recording,
                    division,
                    stall,
                    open_runs,
                    options.pool,
                )?))
            }
        };
        let writer = TraceWriter::create(output, &metadata, writer_options)?;
        Ok(Self {
            worker: Some(Worker::start(writer, options.chunk_bytes, tracks)?),
            device,
            total: LaunchReport { memory: logs.memory_use(), ..LaunchReport::default() },
            logs,
            recording,
            placement: options.placement,
            window: options.window.clone(),
            tables,
            modules: Vec::new(),
            launches: 0,
            pending: Vec::new(),
            running: Vec::new(),
            overlap: options.overlap,
            in_vain: None,
            failed: false,
            interrupt: None,
        })
    }
}
