//! Test traces.

use warptrace_decoder::TraceFile;
use warptrace_format::Event;
use warptrace_format::account::WarpAccount;
use warptrace_format::codec::{CodecSpec, PredictParams, encode_stream};
use warptrace_format::file::{ChunkRef, DeviceInfo, EarlyEnd, LaunchInfo, LocationInfo, Metadata};

use super::sections::Sections;

const PREDICT: CodecSpec = CodecSpec::Predict(PredictParams::DEFAULT);

/// Reads a recorded trace. The suffix of its name states the recorded times.
pub(super) fn recorded(name: &str) -> TraceFile {
    TraceFile::from_bytes(recorded_bytes(name)).unwrap()
}

pub(super) fn recorded_bytes(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../decoder/analysis/tests/traces");
    std::fs::read(format!("{folder}/{name}.wtrc")).unwrap()
}

/// A trace of a small image: one kernel, one launch.
pub(super) fn fractal() -> TraceFile {
    recorded("fractal")
}

pub(super) fn mis() -> TraceFile {
    recorded("mis")
}

/// Events of a warp (location, mask), number of lost events, and whether the warp finished.
pub(super) type Warp<'a> = (&'a [(u16, u32)], u64, bool);

/// Writes a trace of a kernel with three locations in `src/k.rs`, with one block for each entry of `warps`.
/// `end` describes an early end of the launch.
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
    let mut file = Sections::new(&metadata);
    let blocks = u32::try_from(warps.len()).unwrap();
    let launch = LaunchInfo::new(0, 0, [blocks, 1, 1], [32, 1, 1], 0).unwrap();
    file.put(&launch.encode_section());
    let mut accounts = Vec::new();
    for (warp, (events, lost, has_finished)) in (0..).zip(warps) {
        let events: Vec<Event> = events.iter().map(|&(location, mask)| Event { location, mask }).collect();
        let chunks = encode_stream(PREDICT, &events, 400);
        for (sequence, (events, payload)) in (0..).zip(&chunks) {
            let chunk = ChunkRef { track: 0, warp, sequence, events: *events, payload };
            file.put_frame(0, &[chunk]);
        }
        let recorded = events.len() as u64;
        let (attempted, chunks) = (recorded + lost, u32::try_from(chunks.len()).unwrap());
        let finished = u32::from(*has_finished);
        accounts.push(WarpAccount { attempted, recorded, lost: *lost, chunks, finished });
    }
    file.put_accounts(&launch, 0, &accounts, &[]);
    if let Some(end) = end {
        file.put(&end.encode_section(0).unwrap());
    }
    TraceFile::from_bytes(file.finish()).unwrap()
}
