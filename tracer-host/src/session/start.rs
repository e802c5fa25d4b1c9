//! How a recording starts.

use std::io::Write;

use warptrace_device::KernelModule;
use warptrace_format::file::{Growing, LocationInfo};
use warptrace_format::log::{MIN_RING_ENTRIES, SEGMENT_MULTIPLE};

use super::ledger::Ledger;
use super::memory::Division;
use super::metadata::{metadata, source_hashes};
use super::pool::Pool;
use super::stream::Streams;
use super::worker::Worker;
use super::{Policy, PoolMemory, Recorder, SessionError, SessionOptions, TracedProgram, modules};
use crate::writer::{self, TraceWriter, WriterOptions};
use crate::{Device, Recording};

impl<W: Write + Send + 'static> Recorder<W> {
    /// Allocates device memory and starts the file.
    ///
    /// # Errors
    /// If the options contradict the codec or the format, the window names a kernel that the program does not
    /// have, memory is short, or the file cannot be written.
    pub fn start(
        device: &mut dyn Device,
        program: &TracedProgram<'_>,
        options: &SessionOptions,
        output: W,
    ) -> Result<Self, SessionError> {
        let mut options = options.clone();
        options.properties.extend(source_hashes(program.points, program.modules.iter()));
        Self::start_with(device, program.kernels, program.locations(), &options, false, output)
    }

    /// Like [`start`](Self::start), for the kernels of modules that `#[warptrace::kernels]` made, whose
    /// locations have ids of their own. The device takes the modules' code.
    ///
    /// # Errors
    /// As `start`; also if two of the modules have a location of the same id, or the device cannot take the
    /// code.
    pub fn start_modules(
        device: &mut dyn Device,
        modules: &[&KernelModule],
        options: &SessionOptions,
        output: W,
    ) -> Result<Self, SessionError> {
        let (kernels, locations) = modules::merged(modules)?;
        for module in modules {
            device.add_code(module.ptx)?;
        }
        let mut options = options.clone();
        options.properties.extend(source_hashes(&[], modules.iter().copied()));
        Self::start_with(device, &kernels, locations, &options, false, output)
    }

    /// Starts a recording, whose launches may run at the same time if `overlaps`.
    pub(super) fn start_with(
        device: &mut dyn Device,
        sources: &[(&str, &str)],
        locations: Vec<LocationInfo>,
        options: &SessionOptions,
        overlaps: bool,
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
        let arenas = Pool::arenas(overlaps && options.policy != Policy::Ring);
        let division = Division::of(options.memory_bytes, options.chunk_bytes, arenas, shortest, &*device)?;
        let metadata = metadata(&*device, sources, locations, options, &division);
        let tables = Growing::new(metadata.clone())?;
        let writer_options = WriterOptions::default().with_compression(options.compression);
        // While the device does its part.
        writer::get_ready(&metadata.tracks, &writer_options);
        let tracks = if options.dual { 2 } else { 1 };
        let chooses = options.window.looks_inside();
        options.window.check(options.counted, options.opens_runs(), &tables.metadata().locations)?;
        let (mut pool, mut streams) = (None, None);
        match options.policy {
            Policy::Stop | Policy::Ring if options.pool == PoolMemory::Host => {
                return Err(SessionError::HostPool);
            }
            Policy::Stream { .. } if overlaps => return Err(SessionError::NoOverlap),
            Policy::Stop => {
                device.prepare(&kernels, Some((recording, options.placement, chooses)))?;
                pool = Some(Pool::new(device, division, tracks, false, overlaps)?);
            }
            Policy::Ring => {
                device.prepare_ring(&kernels, recording, options.placement, chooses)?;
                pool = Some(Pool::new(device, division, tracks, true, overlaps)?);
            }
            Policy::Stream { stall, open_runs } => {
                device.prepare_streamed(&kernels, recording, options.placement, chooses, open_runs)?;
                let all = Streams::new(device, recording, division, stall, open_runs, options.pool)?;
                streams = Some(Box::new(all));
            }
        }
        let writer = TraceWriter::create(output, &metadata, writer_options)?;
        let mut ledger = Ledger::new(recording, options.window.clone(), tables, pool);
        if let Some(streams) = &streams {
            ledger.total.memory = streams.memory_use();
        }
        Ok(Self {
            worker: Some(Worker::start(writer, options.chunk_bytes, tracks)?),
            ledger,
            streams,
            placement: options.placement,
            pending: Vec::new(),
            failed: false,
            interrupt: None,
        })
    }
}
