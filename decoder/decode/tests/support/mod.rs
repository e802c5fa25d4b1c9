//! Traces to test with, made by the project's own writer.
#![allow(dead_code, unreachable_pub, reason = "shared by test binaries that each use a part")]

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use warptrace_decoder::{DecodeError, TraceFile, WarpFilter};
use warptrace_format::Event;
use warptrace_format::account::WarpAccount;
use warptrace_format::codec::{CodecSpec, EclParams, encode_stream};
use warptrace_format::file::{ChunkRef, Compression, DeviceInfo, EarlyEnd, LaunchInfo, Metadata};
use warptrace_host::writer::{TraceWriter, WriterOptions};

/// What each warp of a launch recorded.
pub type Streams = BTreeMap<u32, Vec<Event>>;

/// Everything that a trace holds: launch number to streams.
pub type Recording = BTreeMap<u32, Streams>;

pub fn event(location: u16, mask: u32) -> Event {
    Event { location, mask }
}

pub fn ecl() -> CodecSpec {
    CodecSpec::Ecl(EclParams::new(9, 2, 8).expect("the parameters are in range"))
}

pub fn metadata(tracks: Vec<CodecSpec>) -> Metadata {
    let device = DeviceInfo::simulator("warptrace simulator");
    let metadata = Metadata::new("warptrace test", device, tracks)
        .with_kernel("first", "first.rs")
        .with_kernel("second", "second.rs")
        .with_property("argument", "value")
        .with_pool(512, 1000);
    (1..=20).fold(metadata, |metadata, id| metadata.with_location(id, format!("point {id}"), "a trace point"))
}

/// Describes a recording and writes it.
#[derive(Clone, Debug)]
pub struct Recorder {
    pub metadata: Metadata,
    pub options: WriterOptions,
    /// Payload bytes of a chunk.
    pub capacity: u32,
    /// Chunks of a warp that one `write_chunks` call takes: small numbers make frames that overlap.
    pub batch: usize,
    /// Changes accounting on its way into the file.
    pub account: fn(u32, u32, &mut WarpAccount),
    /// Launches that did not run to their end.
    pub early_ends: Vec<(u32, EarlyEnd)>,
}

impl Recorder {
    pub fn new(tracks: Vec<CodecSpec>) -> Self {
        Self {
            metadata: metadata(tracks),
            options: WriterOptions::default(),
            capacity: 480,
            batch: usize::MAX,
            account: |_, _, _| {},
            early_ends: Vec::new(),
        }
    }

    pub fn compression(mut self, compression: Compression) -> Self {
        self.options = self.options.with_compression(compression);
        self
    }

    pub fn frame_bytes(mut self, bytes: u32) -> Self {
        self.options = self.options.with_frame_bytes(bytes);
        self
    }

    /// Writes one track of one launch.
    fn write_track(
        &self,
        writer: &mut TraceWriter<Vec<u8>>,
        launch: &LaunchInfo,
        track: u32,
        streams: &Streams,
    ) {
        let codec = self.metadata.tracks[track as usize];
        let chunks: BTreeMap<u32, _> = streams
            .iter()
            .map(|(&warp, events)| (warp, encode_stream(codec, events, self.capacity)))
            .collect();
        let longest = chunks.values().map(Vec::len).max().unwrap_or(0);
        let mut from = 0;
        while from < longest {
            let to = from.saturating_add(self.batch).min(longest);
            let mut batch = Vec::new();
            for (&warp, chunks) in &chunks {
                for (sequence, (events, payload)) in (0u32..).zip(chunks) {
                    if (from..to).contains(&(sequence as usize)) {
                        batch.push(ChunkRef { track, warp, sequence, events: *events, payload });
                    }
                }
            }
            // Given in the wrong order: sorting is the writer's work.
            batch.reverse();
            writer.write_chunks(launch.number(), &batch).unwrap();
            from = to;
        }
        let accounts: Vec<_> = (0..launch.warps())
            .filter(|&warp| launch.is_chosen(warp))
            .map(|warp| {
                let recorded = streams.get(&warp).map_or(0, |events| events.len() as u64);
                let chunks = chunks.get(&warp).map_or(0, |chunks| chunks.len() as u32);
                let mut account = WarpAccount { attempted: recorded, recorded, lost: 0, chunks, finished: 1 };
                (self.account)(track, warp, &mut account);
                account
            })
            .collect();
        writer.end_launch(launch.number(), track, &accounts).unwrap();
    }

    /// Writes a trace whose tracks all hold the same events.
    pub fn record(&self, launches: &[(LaunchInfo, Streams)]) -> Vec<u8> {
        let tracks = self.metadata.tracks.len();
        self.record_tracks(
            &launches.iter().map(|(launch, streams)| (*launch, vec![streams; tracks])).collect::<Vec<_>>(),
        )
    }

    /// Writes a trace with the given streams for each launch and track.
    pub fn record_tracks(&self, launches: &[(LaunchInfo, Vec<&Streams>)]) -> Vec<u8> {
        let mut writer = TraceWriter::create(Vec::new(), &self.metadata, self.options).unwrap();
        for (launch, tracks) in launches {
            writer.begin_launch(launch).unwrap();
            for (track, streams) in (0..).zip(tracks) {
                self.write_track(&mut writer, launch, track, streams);
            }
        }
        for (launch, end) in &self.early_ends {
            writer.end_early(*launch, end).unwrap();
        }
        let (bytes, summary) = writer.finish().unwrap();
        assert_eq!(summary.bytes, bytes.len() as u64);
        bytes
    }
}

/// Two launches, two tracks, few events: every kind of section in less than 3 KB. The block of 40 threads has
/// a second warp of 8 lanes.
pub fn small() -> (Vec<u8>, Recording) {
    let first = LaunchInfo::new(3, 0, [2, 1, 1], [40, 1, 1], 0).unwrap();
    let second = LaunchInfo::new(4, 1, [1, 2, 1], [32, 1, 1], 64).unwrap();
    let streams = |seed: u16| -> Streams {
        (0..4u16)
            .filter(|warp| *warp != 2 && (seed == 0 || *warp < 2))
            .map(|warp| {
                let events = (0..10 + warp).map(|number| {
                    let mask = if warp % 2 == 1 { 0x0f } else { u32::MAX >> (number % 5) };
                    event(1 + (number * (warp + 1) + seed) % 7, mask)
                });
                (u32::from(warp), events.collect())
            })
            .collect()
    };
    let launches = [(first, streams(0)), (second, streams(1))];
    let mut recorder = Recorder::new(vec![ecl(), CodecSpec::Raw]).frame_bytes(120);
    recorder.metadata.locations.truncate(7);
    let bytes = recorder.record(&launches);
    (bytes, launches.into_iter().map(|(launch, streams)| (launch.number(), streams)).collect())
}

/// The events of a track, warp by warp.
pub fn decode(trace: &TraceFile, launch: u32, track: u32) -> Result<Streams, DecodeError> {
    decode_filtered(trace, launch, track, &WarpFilter::all())
}

pub fn decode_filtered(
    trace: &TraceFile,
    launch: u32,
    track: u32,
    filter: &WarpFilter,
) -> Result<Streams, DecodeError> {
    let mut streams = Streams::new();
    let mut last = 0;
    let flow = trace.decode_all(launch, track, filter, &mut |block| {
        assert!(last <= block.warp, "warps come in order");
        last = block.warp;
        let events = streams.entry(block.warp).or_default();
        assert_eq!(block.first_event, events.len() as u64);
        events.extend_from_slice(block.events);
        ControlFlow::Continue(())
    })?;
    assert_eq!(flow, ControlFlow::Continue(()));
    Ok(streams)
}
