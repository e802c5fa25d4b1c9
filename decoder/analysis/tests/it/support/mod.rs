//! Traces to analyse: recordings of programs on the simulator, and given streams. The tests of the report
//! include this file by its path.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(dead_code, reason = "the report needs a part of it")]

#[path = "../../../../decode/tests/it/support/sections.rs"]
pub(crate) mod sections;

use std::collections::BTreeMap;

use sections::Sections;
use warptrace_analysis::fuzzing::check_trace;
use warptrace_decoder::TraceFile;
use warptrace_format::Event;
use warptrace_format::account::WarpAccount;
use warptrace_format::chunk::{DeviceTimes, SPLIT};
use warptrace_format::codec::{CodecSpec, PredictParams, encode_stream};
use warptrace_format::file::{
    ChunkRef, Compression, DeviceInfo, FrameTimes, LaunchInfo, LocationInfo, Metadata, TIMES, Tie,
};

pub(crate) const PREDICT: CodecSpec = CodecSpec::Predict(PredictParams::DEFAULT);

/// Opens the trace of a program. `tracer-host/recorder/tests/it/traces.rs` records these.
pub(crate) fn recorded(name: &str) -> TraceFile {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/traces");
    let trace = TraceFile::open(format!("{folder}/{name}.wtrc")).unwrap();
    check_trace(&trace);
    trace
}

pub(crate) fn event(location: u16, mask: u32) -> Event {
    Event { location, mask }
}

pub(crate) fn metadata(locations: &[(u16, &str, u32)]) -> Metadata {
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

pub(crate) fn written(
    metadata: &Metadata,
    launch: &LaunchInfo,
    warps: &BTreeMap<u32, Vec<Event>>,
    account: impl Fn(u32, &mut WarpAccount),
) -> Vec<u8> {
    let mut file = Sections::new(metadata);
    file.put(&launch.encode_section());
    let mut accounts = Vec::new();
    for warp in 0..launch.warps() {
        let events = warps.get(&warp).map_or(&[][..], Vec::as_slice);
        let chunks = encode_stream(metadata.tracks[0], events, 400);
        for (sequence, (events, payload)) in (0..).zip(&chunks) {
            let chunk = ChunkRef { track: 0, warp, sequence, events: *events, payload };
            file.put_frame(launch.number(), &[chunk]);
        }
        let recorded = events.len() as u64;
        let chunks = chunks.len() as u32;
        let mut of_warp = WarpAccount { attempted: recorded, recorded, lost: 0, chunks, finished: 1 };
        account(warp, &mut of_warp);
        accounts.push(of_warp);
    }
    file.put_accounts(launch, 0, &accounts, &[]);
    file.finish()
}

/// A run: its event, repetitions, and start time in units of time.
pub(crate) type TimedEvents = (Event, u32, u32);

/// Writes one launch of these warps, with times, in units of `step` cycles, of the runs of warps for which
/// `has_times` returns true. The file has neither index nor accounts: it ends after its last chunk.
pub(crate) fn with_times(
    metadata: &Metadata,
    launch: &LaunchInfo,
    warps: &BTreeMap<u32, Vec<TimedEvents>>,
    step: u32,
    has_times: impl Fn(u32) -> bool,
) -> Vec<u8> {
    let mut file = Sections::new(&metadata.clone().with_property(TIMES, "runs"));
    file.put(&launch.encode_section());
    for (&warp, runs) in warps {
        let events: Vec<Event> = runs.iter().flat_map(|run| vec![run.0; run.1 as usize]).collect();
        let chunks = encode_stream(metadata.tracks[0], &events, 400);
        let [(events, payload)] = &chunks[..] else { panic!("each warp has one chunk") };
        let chunk = ChunkRef { track: 0, warp, sequence: 0, events: *events, payload };
        let frame = file.bytes.len();
        file.put_frame(launch.number(), &[chunk]);
        if has_times(warp) {
            let next = runs.iter().skip(1).map(|run| Some(run.0)).chain([None]);
            let times = runs.iter().zip(next).flat_map(|(&(event, times, begin), next)| {
                let is_split = next == Some(event);
                [begin, if is_split { times } else { 0 }]
            });
            let times: Vec<u8> = times.flat_map(u32::to_le_bytes).collect();
            let (tie, times) =
                (Tie::to_encoded(&file.bytes[frame..]), [DeviceTimes::new(SPLIT, &times)].into_iter());
            file.put(&FrameTimes::encode_section(tie, times, step, Compression::None).unwrap());
        }
    }
    file.bytes
}
