//! Recordings made with the writer.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use std::path::Path;

use warptrace_format::account::WarpAccount;
use warptrace_format::file::EarlyEnd;
use warptrace_host::writer::{ChunkRef, LaunchInfo, TraceWriter, WriterOptions};

use crate::recordings::{Output, Recorder, Recording, Streams, recording, small_recording};

impl Output for TraceWriter<Vec<u8>> {
    fn begin_launch(&mut self, launch: &LaunchInfo) {
        self.begin_launch(launch).unwrap();
    }

    fn write_chunks(&mut self, launch: u32, chunks: &[ChunkRef<'_>]) {
        self.write_chunks(launch, chunks).unwrap();
    }

    fn end_launch(&mut self, launch: &LaunchInfo, track: u32, accounts: &[WarpAccount]) {
        self.end_launch(launch.number(), track, accounts).unwrap();
    }

    fn end_early(&mut self, launch: u32, end: &EarlyEnd) {
        self.end_early(launch, end).unwrap();
    }
}

pub(crate) fn record(recorder: &Recorder, launches: &[(LaunchInfo, Streams)]) -> Vec<u8> {
    let options = WriterOptions::default().with_compression(recorder.compression);
    let options = recorder.frame_bytes.map_or(options, |bytes| options.with_frame_bytes(bytes));
    let mut writer = TraceWriter::create(Vec::new(), &recorder.metadata, options).unwrap();
    recorder.record_into(&mut writer, launches);
    let (bytes, summary) = writer.finish().unwrap();
    assert_eq!(summary.bytes, bytes.len() as u64);
    bytes
}

pub(crate) fn small() -> (Vec<u8>, Recording) {
    let (recorder, launches) = small_recording();
    (record(&recorder, &launches), recording(&launches))
}

pub(crate) fn overwrite(path: &Path, written: &[u8]) {
    if std::env::var_os("WARPTRACE_OVERWRITE_GOLDEN").is_some_and(|value| value == "1") {
        std::fs::write(path, written).unwrap();
    }
}

pub(crate) fn assert_golden(path: &Path, written: &[u8]) {
    overwrite(path, written);
    let golden = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let differs = written.iter().zip(&golden).position(|(new, old)| new != old);
    let lengths = [written.len(), golden.len()];
    assert!(
        differs.is_none() && lengths[0] == lengths[1],
        "{}: what is written has changed: first byte {differs:?}, lengths {lengths:?}; see \
         docs/reference/format/evolution.md",
        path.display()
    );
}
