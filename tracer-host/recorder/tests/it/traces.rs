//! Traces of programs on the simulator, which tests of other packages read. `WARPTRACE_OVERWRITE_GOLDEN=1
//! cargo test -p warptrace-host` rewrites the files.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use std::path::Path;

use warptrace_analysis::fuzzing::check_trace;
use warptrace_decoder::TraceFile;
use warptrace_format::codec::{CodecSpec, PredictParams};
use warptrace_format::file::{COMMAND, PREAMBLE_BYTES, SectionHeader};
use warptrace_host::{MemorySize, RecordingSpec, Session, SimDevice, SimOptions, Times, TracedProgram};
use warptrace_workloads::fractal::{self, FractalOptions};
use warptrace_workloads::inputs::generate::usa_road_ny_like;
use warptrace_workloads::mis::{self, MisOptions};
use warptrace_workloads::stress::{self, StressOptions};

use crate::recordings::sections::Sections;
use crate::support::assert_golden;

pub(crate) fn recorded(
    times: Times,
    program: &TracedProgram<'_>,
    run: impl FnOnce(&mut Session<'_, Vec<u8>>),
) -> TraceFile {
    let trace = TraceFile::from_bytes(recorded_bytes(times, program, run)).unwrap();
    check_trace(&trace);
    trace
}

fn recorded_bytes(
    times: Times,
    program: &TracedProgram<'_>,
    run: impl FnOnce(&mut Session<'_, Vec<u8>>),
) -> Vec<u8> {
    let spec = RecordingSpec {
        times,
        memory: Some(MemorySize(64 << 20)),
        properties: vec![(COMMAND.to_owned(), "traces".to_owned())],
        ..RecordingSpec::new(CodecSpec::Predict(PredictParams::DEFAULT))
    };
    let mut device = SimDevice::new(SimOptions::default());
    let mut session = Session::start(&mut device, program, &spec, Vec::new()).unwrap();
    run(&mut session);
    let (bytes, _, report) = session.finish().unwrap();
    assert_eq!(report.lost, 0);
    bytes
}

/// Removes the host's clock, process and name, which differ between runs.
fn reproducible(bytes: Vec<u8>) -> Vec<u8> {
    let mut metadata = TraceFile::from_bytes(bytes.clone()).unwrap().metadata().clone();
    metadata.origin = None;
    let mut file = Sections::new(&metadata);
    let mut rest = &bytes[PREAMBLE_BYTES..];
    while !rest.is_empty() {
        let header = SectionHeader::parse(rest, 0).unwrap();
        let (section, after) = rest.split_at(header.total_bytes() as usize);
        if [b"LNCH", b"FRAM", b"TIME", b"ACCT", b"SPAN"].contains(&&header.tag.0) {
            file.put(section);
        }
        rest = after;
    }
    file.finish()
}

fn fractal(times: Times) -> Vec<u8> {
    recorded_bytes(times, &fractal::PROGRAM.traced(), |session| {
        fractal::run(session, &FractalOptions::new(100, 300)).unwrap();
    })
}

fn mis(times: Times) -> Vec<u8> {
    let graph = usa_road_ny_like(600, 1).unwrap();
    recorded_bytes(times, &mis::PROGRAM.traced(), |session| {
        mis::run(session, &graph, &MisOptions::default()).unwrap();
    })
}

fn stress(times: Times) -> Vec<u8> {
    recorded_bytes(times, &stress::PROGRAM.traced(), |session| {
        stress::run(session, &StressOptions::new(300, 4)).unwrap();
    })
}

#[test]
fn the_golden_traces_are_recorded_byte_for_byte_as_ever() {
    for (name, times, record) in [
        ("fractal", Times::Off, fractal as fn(Times) -> Vec<u8>),
        ("fractal-runs", Times::Runs, fractal),
        ("fractal-all", Times::All, fractal),
        ("mis", Times::Off, mis),
        ("mis-blocks", Times::Blocks, mis),
        ("mis-all", Times::All, mis),
        ("stress", Times::Off, stress),
        ("stress-runs", Times::Runs, stress),
    ] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../decoder/analysis/tests/traces");
        assert_golden(&folder.join(format!("{name}.wtrc")), &reproducible(record(times)));
    }
}
