//! Traces to show.

use warptrace_decoder::TraceFile;
use warptrace_format::Event;
use warptrace_format::account::WarpAccount;
use warptrace_format::codec::{CodecSpec, PredictParams, encode_stream};
use warptrace_format::file::{ChunkRef, DeviceInfo, EarlyEnd, LaunchInfo, LocationInfo, Metadata};
use warptrace_host::writer::{TraceWriter, WriterOptions};
use warptrace_host::{RecordingSpec, Session, SimDevice, SimOptions, Times, TracedProgram};
use warptrace_workloads::fractal::{self, FractalOptions};
use warptrace_workloads::inputs::generate::usa_road_ny_like;
use warptrace_workloads::mis::{self, MisOptions};

const PREDICT: CodecSpec = CodecSpec::Predict(PredictParams::DEFAULT);

/// Records what `run` launches on the simulator.
fn recorded(program: &TracedProgram<'_>, run: impl FnOnce(&mut Session<'_, Vec<u8>>)) -> Vec<u8> {
    recorded_as(&RecordingSpec::new(PREDICT), program, run)
}

fn recorded_as(
    spec: &RecordingSpec,
    program: &TracedProgram<'_>,
    run: impl FnOnce(&mut Session<'_, Vec<u8>>),
) -> Vec<u8> {
    let mut device = SimDevice::new(SimOptions::default());
    let mut session = Session::start(&mut device, program, spec, Vec::new()).unwrap();
    run(&mut session);
    session.finish().unwrap().0
}

/// Bytes of a trace of a small picture.
pub(super) fn fractal_bytes() -> Vec<u8> {
    recorded(&fractal::PROGRAM.traced(), |session| {
        fractal::run(session, &FractalOptions::new(100, 300)).unwrap();
    })
}

/// A trace of a small picture: one kernel, one launch.
pub(super) fn fractal() -> TraceFile {
    TraceFile::from_bytes(fractal_bytes()).unwrap()
}

/// The same with times.
pub(super) fn timed(times: Times) -> TraceFile {
    let spec = RecordingSpec { times, ..RecordingSpec::new(PREDICT) };
    let bytes = recorded_as(&spec, &fractal::PROGRAM.traced(), |session| {
        fractal::run(session, &FractalOptions::new(100, 300)).unwrap();
    });
    TraceFile::from_bytes(bytes).unwrap()
}

/// A trace of two kernels.
pub(super) fn mis() -> TraceFile {
    mis_with(Times::Off)
}

/// The same with times.
pub(super) fn mis_with(times: Times) -> TraceFile {
    let graph = usa_road_ny_like(600, 1).unwrap();
    let spec = RecordingSpec { times, ..RecordingSpec::new(PREDICT) };
    let bytes = recorded_as(&spec, &mis::PROGRAM.traced(), |session| {
        mis::run(session, &graph, &MisOptions::default()).unwrap();
    });
    TraceFile::from_bytes(bytes).unwrap()
}

/// Events of a warp (location, mask), how many it lost, and whether it finished.
pub(super) type Warp<'a> = (&'a [(u16, u32)], u64, bool);

/// A trace of a kernel with three locations in `src/k.rs`, written as it is given: for each warp its events,
/// events that it lost, and whether it finished. `end` is how the launch ended, if not by itself.
pub(super) fn written(warps: &[Warp<'_>], end: Option<EarlyEnd>) -> TraceFile {
    let device = DeviceInfo::simulator("sim");
    let mut metadata = Metadata::new("test", device, vec![PREDICT]).with_kernel("spin", "k.rs");
    let locations = [(1, "ENTER", 10), (2, "WAIT", 12), (3, "LEAVE", 0)];
    metadata.locations.extend(locations.map(|(id, name, line)| LocationInfo {
        file: "src/k.rs".to_owned(),
        line,
        column: 1,
        ..LocationInfo::new(id, name, "")
    }));
    let mut writer = TraceWriter::create(Vec::new(), &metadata, WriterOptions::default()).unwrap();
    let blocks = u32::try_from(warps.len()).unwrap();
    writer.begin_launch(&LaunchInfo::new(0, 0, [blocks, 1, 1], [32, 1, 1], 0).unwrap()).unwrap();
    let mut accounts = Vec::new();
    for (warp, (events, lost, has_finished)) in (0..).zip(warps) {
        let events: Vec<Event> = events.iter().map(|&(location, mask)| Event { location, mask }).collect();
        let chunks = encode_stream(PREDICT, &events, 400);
        for (sequence, (events, payload)) in (0..).zip(&chunks) {
            let chunk = ChunkRef { track: 0, warp, sequence, events: *events, payload };
            writer.write_chunks(0, &[chunk]).unwrap();
        }
        let recorded = events.len() as u64;
        let (attempted, chunks) = (recorded + lost, u32::try_from(chunks.len()).unwrap());
        let finished = u32::from(*has_finished);
        accounts.push(WarpAccount { attempted, recorded, lost: *lost, chunks, finished });
    }
    writer.end_launch(0, 0, &accounts).unwrap();
    if let Some(end) = end {
        writer.end_early(0, &end).unwrap();
    }
    TraceFile::from_bytes(writer.finish().unwrap().0).unwrap()
}
