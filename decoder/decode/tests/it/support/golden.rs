//! Contents of the golden files.

use std::path::{Path, PathBuf};

use warptrace_decoder::{Completeness, TraceFile};
use warptrace_format::LocationKind;
use warptrace_format::chosen::ChosenWarps;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::{Compression, EarlyEnd, LaunchInfo, LocationInfo};

use super::{Recorder, Streams, decode, ecl, event, recording};

type Launches = Vec<(LaunchInfo, Streams)>;

#[derive(Debug)]
pub(crate) struct Golden {
    name: &'static str,
    pub(crate) recorder: Recorder,
    pub(crate) launches: Launches,
}

impl Golden {
    pub(crate) fn dual() -> Self {
        Self { name: "dual-v1.wtrc", recorder: recorder(Compression::None), launches: launches() }
    }

    pub(crate) fn compressed() -> Self {
        Self { name: "dual-zstd-v1.wtrc", recorder: recorder(Compression::Zstd(19)), launches: launches() }
    }

    pub(crate) fn chosen() -> Self {
        Self { name: "chosen-v1.wtrc", recorder: recorder(Compression::None), launches: windows() }
    }

    pub(crate) fn early_ends() -> Self {
        let mut recorder = recorder(Compression::None);
        recorder.early_ends = vec![(2, EarlyEnd::Interrupted), (1, EarlyEnd::failed("a misaligned address"))];
        Self { name: "early-ends-v1.wtrc", recorder, launches: launches() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        root.join("decoder/decode/tests/golden").join(self.name)
    }

    pub(crate) fn open(&self) -> TraceFile {
        let trace = TraceFile::open(self.path()).unwrap();
        assert_eq!(*trace.completeness(), Completeness::Complete);
        assert_eq!(*trace.metadata(), self.recorder.metadata);
        for (launch, streams) in &recording(&self.launches) {
            for track in 0..2 {
                assert_eq!(&decode(&trace, *launch, track).unwrap(), streams);
            }
        }
        trace
    }
}

fn launches() -> Launches {
    let first = LaunchInfo::new(1, 0, [2, 1, 1], [48, 1, 1], 0).unwrap();
    let second = LaunchInfo::new(2, 1, [1, 1, 1], [32, 1, 1], 128).unwrap();
    let events = |count: u16, mask: u32| {
        (0..count).map(|number| event(1 + number % 3 * (number % 5), mask >> (number % 7))).collect()
    };
    let streams = [(0, events(150, u32::MAX)), (1, events(20, 0xffff)), (3, events(1, 1))];
    vec![(first, streams.into()), (second, [(0, events(40, 0x8000_0001))].into())]
}

fn recorder(compression: Compression) -> Recorder {
    let mut recorder = Recorder::new(vec![ecl(), CodecSpec::Raw]).frame_bytes(600).compression(compression);
    recorder.metadata.created_unix_seconds = Some(1_500_000_000);
    recorder.metadata.locations = (1..=9)
        .map(|id| LocationInfo {
            file: "kernels/src/example.rs".into(),
            line: 10 * u32::from(id),
            column: 5,
            // Location 1 is the function's entry, 2 a loop in it, the others are arms in the loop.
            function: "example".into(),
            kind: match id {
                1 => LocationKind::Entry,
                2 => LocationKind::LoopBody,
                _ => LocationKind::Arm,
            },
            parent: (id - 1).min(2),
            rejoin_line: 300,
            rejoin_column: 6,
            ..LocationInfo::new(id, format!("point {id}"), "a decision")
        })
        .collect();
    recorder
}

fn windows() -> Launches {
    let whole = |number| LaunchInfo::new(number, 0, [5, 1, 1], [80, 1, 1], 0).unwrap();
    let warps = ChosenWarps { first_block: 0, blocks: 2, block_step: 3, first_warp: 1, block_warps: 2 };
    let block = ChosenWarps { first_block: 4, blocks: 1, block_step: 1, first_warp: 0, block_warps: 3 };
    let events = |count: u16| vec![event(count % 9 + 1, 0xffff); usize::from(count)];
    let streams = [(1, events(3)), (10, events(4))];
    vec![
        (whole(0).with_chosen(ChosenWarps::NONE).unwrap(), Streams::new()),
        (whole(1).with_chosen(warps).unwrap(), streams.into()),
        (whole(2).with_chosen(block).unwrap(), [(13, events(5))].into()),
    ]
}
