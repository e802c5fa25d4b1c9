//! Start of a recording.

use std::io::Write;

use warptrace_abi::log::{FirstSegments, MIN_RING_ENTRIES, SEGMENT_MULTIPLE};
use warptrace_device::KernelModule;
use warptrace_format::file::{CLOCK_STEP, Growing, HostTimes, LocationInfo, TIMER_STEP, WAITS_LEFT_OUT};
use warptrace_format::span::WarpSpan;

use super::code::add_code;
use super::ledger::Ledger;
use super::memory::Division;
use super::metadata::{metadata, source_hashes};
use super::pool::Pool;
use super::stream::Streams;
use super::worker::Worker;
use super::{Recorder, SessionError, TracedProgram, modules};
use crate::origin;
use crate::writer::{self, TraceWriter, WriterOptions};
use crate::{
    ClockSteps, Device, DeviceClocks, HostMessage, MemoryType, Policy, Prepare, RecordingSpec, Times, Visits,
};

impl<W: Write + Send + 'static> Recorder<W> {
    /// Allocates device memory and starts the file. Fails if the specification is contradictory or
    /// unsupported, the window names an unknown kernel, memory is exhausted, or the file cannot be written.
    pub fn start(
        device: &mut dyn Device,
        program: &TracedProgram<'_>,
        spec: &RecordingSpec,
        output: W,
    ) -> Result<Self, SessionError> {
        let modules: Vec<&KernelModule> = program.modules.iter().collect();
        let code = (&*modules, program.ptx);
        Self::start_with(device, &program.kernels(), program.locations(), (spec, code), false, output)
    }

    /// Like [`start`](Self::start), for modules made by `#[warptrace::kernels]`, whose code it adds to the
    /// device. Also fails if two modules have a location with the same ID, or the device cannot use the code.
    pub fn start_modules(
        device: &mut dyn Device,
        modules: &[&KernelModule],
        spec: &RecordingSpec,
        output: W,
    ) -> Result<Self, SessionError> {
        let (kernels, locations) = modules::merged(modules)?;
        let names = modules.iter().flat_map(|module| std::iter::repeat_n(module.name, module.kernels.len()));
        device.prepare(&Prepare { code: modules, ..Prepare::default() })?;
        let mut recorder =
            Self::start_with(device, &kernels, locations, (spec, (modules, "")), false, output)?;
        recorder.modules = names.collect();
        Ok(recorder)
    }

    /// Starts a recording, with concurrent launches if `overlaps`. `ptx` is the code of modules without PTX.
    pub(super) fn start_with(
        device: &mut dyn Device,
        sources: &[(&str, &str)],
        mut locations: Vec<LocationInfo>,
        (spec, (modules, ptx)): (&RecordingSpec, (&[&KernelModule], &str)),
        overlaps: bool,
        output: W,
    ) -> Result<Self, SessionError> {
        spec.check()?;
        let kernels: Vec<&str> = sources.iter().map(|(name, _)| *name).collect();
        // The kernels of a program that loads code later are unknown here.
        let unknown = if kernels.is_empty() { None } else { spec.window.unknown_kernel(&kernels) };
        if let Some(name) = unknown {
            return Err(SessionError::NoSuchKernel { name: name.to_owned(), known: kernels.join(", ") });
        }
        let shortest = match spec.policy {
            Policy::Ring => FirstSegments::of_lanes(MIN_RING_ENTRIES),
            Policy::Stop | Policy::Stream => FirstSegments::of_streams(SEGMENT_MULTIPLE),
        };
        let arenas = Pool::arenas(overlaps && spec.policy != Policy::Ring);
        let limit = spec.memory_bytes(device.facts().free_bytes);
        let times = u32::from(spec.times.has_runs());
        let span_bytes = if spec.times.has_blocks() { size_of::<WarpSpan>() as u64 } else { 0 };
        let division = Division::new(limit, spec.chunk_bytes, arenas, shortest)?;
        let data_track = spec.traced(None).data_track().unwrap_or(0);
        let place = if spec.host_logs { MemoryType::Host } else { MemoryType::Device };
        let division = Division { place, times, data_track, span_bytes, ..division };
        // If code is loaded later, the loader resolves the location.
        let after = spec.window.after.as_ref().filter(|_| !locations.is_empty());
        let after = after.map(|visits: &Visits| visits.among(&locations)).transpose()?;
        let mut recording = spec.traced(after);
        let left_out = modules::add_waits(&mut locations, modules, &mut recording, spec.codec)?;
        add_code(&mut locations, modules, ptx, recording, &*device);
        let hashes = source_hashes(modules.iter().copied());
        let mut metadata = metadata(&*device, sources, locations, (spec, hashes), &division);
        if left_out != 0 {
            metadata.properties.push((WAITS_LEFT_OUT.to_owned(), left_out.to_string()));
        }
        let tables = Growing::new(metadata.clone())?;
        let writer_options = WriterOptions::default().with_compression(spec.compression());
        // Runs in parallel to the preparation of the device.
        writer::get_ready(&metadata.tracks, &writer_options);
        if spec.policy == Policy::Stream && overlaps {
            return Err(SessionError::NoOverlap);
        }
        let traced = Some((recording, spec.codec));
        device.prepare(&Prepare { kernels: &kernels, traced, ..Prepare::default() })?;
        let (mut pool, mut streams) = (None, None);
        if spec.policy == Policy::Stream {
            let all = Streams::new(device, recording, spec.codec, division, spec.stall())?;
            streams = Some(Box::new(all));
        } else {
            let is_ring = spec.policy == Policy::Ring;
            pool = Some(Pool::new(device, division, recording.tracks(), is_ring, overlaps)?);
        }
        if spec.times != Times::Off
            && let Ok(DeviceClocks { steps: Some(ClockSteps { cycles, nanoseconds }), .. }) =
                device.clocks(true)
        {
            let steps = [(CLOCK_STEP, cycles), (TIMER_STEP, nanoseconds)];
            metadata.properties.extend(steps.map(|(name, step)| (name.to_owned(), step.to_string())));
        }
        metadata.origin = origin::origin_of(device).map(Box::new);
        let mut writer = TraceWriter::create(output, &metadata, writer_options)?;
        let clock = (spec.times != Times::Off).then(|| device.facts().clock);
        if let Some(clock) = &clock {
            let readings = vec![clock.compare(device)];
            writer.write_message(&HostMessage::Times(HostTimes { launches: Vec::new(), readings }))?;
        }
        let mut ledger = Ledger::new(spec.codec, spec.window.clone(), tables, pool, clock);
        if let Some(streams) = &streams {
            ledger.total.memory = streams.memory_use();
        }
        Ok(Self {
            worker: Some(Worker::start(writer, spec.chunk_bytes, recording)?),
            ledger,
            streams,
            recording,
            modules: Vec::new(),
            failed: false,
            interrupt: None,
        })
    }
}
