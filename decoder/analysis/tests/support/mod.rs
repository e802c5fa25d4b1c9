//! Traces to analyse: programs on the simulator, and streams written as they are given.
#![allow(dead_code, unreachable_pub, reason = "shared by test binaries that each use a part")]

use std::collections::BTreeMap;

use warptrace_analysis::fuzzing::check_trace;
use warptrace_decoder::TraceFile;
use warptrace_format::Event;
use warptrace_format::account::WarpAccount;
use warptrace_format::codec::{CodecSpec, PredictParams, encode_stream};
use warptrace_format::file::{
    ChunkRef, Compression, DeviceInfo, FrameTimes, LaunchInfo, LocationInfo, Metadata, PREAMBLE_BYTES,
    SECTION_HEADER_BYTES, TIMES, Tie,
};
use warptrace_host::writer::{TraceWriter, WriterOptions};
use warptrace_host::{RecordingSpec, Session, SimDevice, SimOptions, Times, TracedProgram};

pub const PREDICT: CodecSpec = CodecSpec::Predict(PredictParams::DEFAULT);

/// Records what `run` launches on the simulator.
pub fn recorded(program: &TracedProgram<'_>, run: impl FnOnce(&mut Session<'_, Vec<u8>>)) -> TraceFile {
    recorded_as(&RecordingSpec::new(PREDICT), program, run)
}

/// As [`recorded`], with the times of runs.
pub fn timed(program: &TracedProgram<'_>, run: impl FnOnce(&mut Session<'_, Vec<u8>>)) -> TraceFile {
    recorded_as(&RecordingSpec { times: Times::Runs, ..RecordingSpec::new(PREDICT) }, program, run)
}

fn recorded_as(
    spec: &RecordingSpec,
    program: &TracedProgram<'_>,
    run: impl FnOnce(&mut Session<'_, Vec<u8>>),
) -> TraceFile {
    let mut device = SimDevice::new(SimOptions::default());
    let mut session = Session::start(&mut device, program, spec, Vec::new()).unwrap();
    run(&mut session);
    let (bytes, _, report) = session.finish().unwrap();
    assert_eq!(report.lost, 0);
    let trace = TraceFile::from_bytes(bytes).unwrap();
    check_trace(&trace);
    trace
}

pub fn event(location: u16, mask: u32) -> Event {
    Event { location, mask }
}

/// Metadata with these locations: id, name, line of `k.rs`.
pub fn metadata(locations: &[(u16, &str, u32)]) -> Metadata {
    let mut metadata =
        Metadata::new("test", DeviceInfo::simulator("sim"), vec![PREDICT]).with_kernel("k", "k.rs");
    metadata.locations.extend(locations.iter().map(|&(id, name, line)| LocationInfo {
        file: "src/k.rs".to_owned(),
        line,
        column: 1,
        ..LocationInfo::new(id, name, "")
    }));
    metadata
}

/// Writes one launch of these warps, whose accounts `account` may change.
pub fn written(
    metadata: &Metadata,
    launch: &LaunchInfo,
    warps: &BTreeMap<u32, Vec<Event>>,
    account: impl Fn(u32, &mut WarpAccount),
) -> Vec<u8> {
    let mut writer = TraceWriter::create(Vec::new(), metadata, WriterOptions::default()).unwrap();
    writer.begin_launch(launch).unwrap();
    let mut accounts = Vec::new();
    for warp in 0..launch.warps() {
        let events = warps.get(&warp).map_or(&[][..], Vec::as_slice);
        let chunks = encode_stream(metadata.tracks[0], events, 400);
        for (sequence, (events, payload)) in (0..).zip(&chunks) {
            let chunk = ChunkRef { track: 0, warp, sequence, events: *events, payload };
            writer.write_chunks(launch.number(), &[chunk]).unwrap();
        }
        let recorded = events.len() as u64;
        let chunks = chunks.len() as u32;
        let mut of_warp = WarpAccount { attempted: recorded, recorded, lost: 0, chunks, finished: 1 };
        account(warp, &mut of_warp);
        accounts.push(of_warp);
    }
    writer.end_launch(launch.number(), 0, &accounts).unwrap();
    writer.finish().unwrap().0
}

/// A run: its event, how often, and when it began, in units of time.
pub type Run = (Event, u32, u32);

/// Writes one launch of these warps, with the times of the runs of those that `has_times` selects, in units of
/// `step` cycles. The file has neither index nor accounts: it ends after its last chunk.
pub fn with_times(
    metadata: &Metadata,
    launch: &LaunchInfo,
    warps: &BTreeMap<u32, Vec<Run>>,
    step: u32,
    has_times: impl Fn(u32) -> bool,
) -> Vec<u8> {
    let metadata = metadata.clone().with_property(TIMES, "runs");
    let expand = |runs: &Vec<Run>| runs.iter().flat_map(|run| vec![run.0; run.1 as usize]).collect();
    let events = warps.iter().map(|(&warp, runs)| (warp, expand(runs))).collect();
    let bytes = written(&metadata, launch, &events, |_, _| {});
    let (mut file, mut rest) = (bytes[..PREAMBLE_BYTES].to_vec(), &bytes[PREAMBLE_BYTES..]);
    // Each warp has one chunk, and that a frame of its own.
    let mut warps = warps.iter();
    loop {
        let (tag, length) = (&rest[..4], u64::from_le_bytes(rest[8..16].try_into().unwrap()));
        if [&b"ACCT"[..], b"INDX"].contains(&tag) {
            return file;
        }
        let (section, after) = rest.split_at(SECTION_HEADER_BYTES + usize::try_from(length).unwrap());
        let tie = Tie::to_encoded(section);
        file.extend(section);
        if tag == b"FRAM" {
            let (&warp, runs) = warps.next().unwrap();
            let next = runs.iter().skip(1).map(|run| Some(run.0)).chain([None]);
            let times = runs.iter().zip(next).flat_map(|(&(event, times, begin), next)| {
                let is_split = next == Some(event);
                [begin, if is_split { times } else { 0 }]
            });
            let times: Vec<u8> = times.flat_map(u32::to_le_bytes).collect();
            if has_times(warp) {
                let times = [&times[..]].into_iter();
                file.extend(FrameTimes::encode_section(tie, times, step, Compression::None).unwrap());
            }
        }
        rest = after;
    }
}
