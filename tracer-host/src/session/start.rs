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
use super::{LaunchReport, Logs, Session, SessionError, TracedProgram, modules};
use crate::writer::{self, TraceWriter, WriterOptions};
use crate::{Choosing, Device, Policy, Recording, RecordingSpec, Visits};

impl<'d, W: Write + Send + 'static> Session<'d, W> {
    /// Allocates device memory and starts the file.
    ///
    /// # Errors
    /// If the specification contradicts itself or the format, the window names a kernel that the program does not
    /// have, memory is short, or the file cannot be written.
    pub fn start(
        device: &'d mut dyn Device,
        program: &TracedProgram<'_>,
        spec: &RecordingSpec,
        output: W,
    ) -> Result<Self, SessionError> {
        let hashes = source_hashes(program.points, program.modules.iter());
        Self::start_with(device, program.kernels, program.locations(), (spec, hashes), false, output)
    }

    /// Like [`start`](Self::start), for launches that may run at the same time: [`begin`](Self::begin) begins them. A part of the memory is set aside for the logs that
    /// each of them has from its start.
    ///
    /// # Errors
    /// As `start`.
    pub fn start_overlapping(
        device: &'d mut dyn Device,
        program: &TracedProgram<'_>,
        spec: &RecordingSpec,
        output: W,
    ) -> Result<Self, SessionError> {
        let hashes = source_hashes(program.points, program.modules.iter());
        Self::start_with(device, program.kernels, program.locations(), (spec, hashes), true, output)
    }

    /// Like [`start`](Self::start), for the kernels of a module that `#[warptrace::kernels]` made. The device
    /// takes the module's code.
    ///
    /// # Errors
    /// As `start`; also if the device cannot take the code.
    pub fn start_module(
        device: &'d mut dyn Device,
        module: &KernelModule,
        spec: &RecordingSpec,
        output: W,
    ) -> Result<Self, SessionError> {
        Self::start_modules(device, &[module], spec, output)
    }

    /// Like [`start_module`](Self::start_module), for the kernels of several modules, whose locations have
    /// ids of their own.
    ///
    /// # Errors
    /// As `start_module`; also if two of the modules have a location of the same id.
    pub fn start_modules(
        device: &'d mut dyn Device,
        modules: &[&KernelModule],
        spec: &RecordingSpec,
        output: W,
    ) -> Result<Self, SessionError> {
        let (kernels, locations) = modules::merged(modules)?;
        let names = modules.iter().flat_map(|module| std::iter::repeat_n(module.name, module.kernels.len()));
        for module in modules {
            device.add_code(module.ptx)?;
        }
        let hashes = source_hashes(&[], modules.iter().copied());
        let mut session = Self::start_with(device, &kernels, locations, (spec, hashes), false, output)?;
        session.modules = names.collect();
        Ok(session)
    }

    fn start_with(
        device: &'d mut dyn Device,
        sources: &[(&str, &str)],
        locations: Vec<LocationInfo>,
        (spec, hashes): (&RecordingSpec, Vec<(String, String)>),
        overlap: bool,
        output: W,
    ) -> Result<Self, SessionError> {
        spec.check()?;
        let recording = Recording { codec: spec.codec, dual: spec.dual, counting: spec.counting };
        let kernels: Vec<&str> = sources.iter().map(|(name, _)| *name).collect();
        // Of a program that loads its kernels later nobody knows their names.
        let unknown = if kernels.is_empty() { None } else { spec.window.unknown_kernel(&kernels) };
        if let Some(name) = unknown {
            return Err(SessionError::NoSuchKernel { name: name.to_owned(), known: kernels.join(", ") });
        }
        let shortest = match spec.policy {
            Policy::Ring => MIN_RING_ENTRIES,
            Policy::Stop | Policy::Stream => SEGMENT_MULTIPLE,
        };
        let limit = spec.memory_bytes(device.memory().free);
        let division = Division::of(limit, spec.chunk_bytes, shortest)?;
        let metadata = metadata(&*device, sources, locations, (spec, hashes), &division);
        let tables = Growing::new(metadata.clone())?;
        let writer_options = WriterOptions::default().with_compression(spec.compression());
        // While the device does its part.
        writer::get_ready(&metadata.tracks, &writer_options);
        let tracks = if spec.dual { 2 } else { 1 };
        let known = &tables.metadata().locations;
        // Of a program that loads its kernels later, who loads them finds the location.
        let after = spec.window.after.as_ref().filter(|_| !known.is_empty());
        let after = after.map(|visits: &Visits| visits.among(known)).transpose()?;
        let chooses = Choosing { warps: spec.window.looks_inside(), after };
        let logs = match spec.policy {
            Policy::Stop => {
                device.prepare(&kernels, Some((recording, spec.placement, chooses)))?;
                Logs::Kept(Box::new(Pool::new(device, division, tracks, false, overlap)?))
            }
            Policy::Ring => {
                device.prepare_ring(&kernels, recording, spec.placement, chooses)?;
                Logs::Kept(Box::new(Pool::new(device, division, tracks, true, overlap)?))
            }
            Policy::Stream => {
                let (stall, post_mortem) = (spec.stall(), spec.post_mortem);
                device.prepare_streamed(&kernels, recording, spec.placement, chooses, post_mortem)?;
                Logs::Streamed(Box::new(Streams::new(device, recording, division, stall, post_mortem)?))
            }
        };
        let writer = TraceWriter::create(output, &metadata, writer_options)?;
        Ok(Self {
            worker: Some(Worker::start(writer, spec.chunk_bytes, tracks)?),
            device,
            total: LaunchReport { memory: logs.memory_use(), ..LaunchReport::default() },
            logs,
            recording,
            placement: spec.placement,
            window: spec.window.clone(),
            chooses,
            recorded_of: Vec::new(),
            tables,
            modules: Vec::new(),
            launches: 0,
            pending: Vec::new(),
            running: Vec::new(),
            overlap,
            in_vain: None,
            failed: false,
            interrupt: None,
        })
    }
}
