//! Traces for tests. The recorder's tests include this file by its path.
#![allow(dead_code, reason = "other test programs need a part of it")]
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

pub(crate) mod golden;
pub(crate) mod sections;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use sections::Sections;
use warptrace_decoder::{DecodeError, TraceFile, WarpFilter};
use warptrace_format::Event;
use warptrace_format::account::WarpAccount;
use warptrace_format::codec::{CodecSpec, EclParams, encode_stream};
use warptrace_format::file::{ChunkRef, Compression, DeviceInfo, EarlyEnd, LaunchInfo, Metadata};

pub(crate) type Streams = BTreeMap<u32, Vec<Event>>;

pub(crate) type Recording = BTreeMap<u32, Streams>;

pub(crate) fn event(location: u16, mask: u32) -> Event {
    Event { location, mask }
}

pub(crate) fn ecl() -> CodecSpec {
    CodecSpec::Ecl(EclParams::new(9, 2, 8).expect("the parameters are in range"))
}

pub(crate) fn metadata(tracks: Vec<CodecSpec>) -> Metadata {
    let device = DeviceInfo::simulator("warptrace simulator");
    let metadata = Metadata::new("warptrace test", device, tracks)
        .with_kernel("first", "first.rs")
        .with_kernel("second", "second.rs")
        .with_property("argument", "value")
        .with_pool(512, 1000);
    (1..=20).fold(metadata, |metadata, id| metadata.with_location(id, format!("point {id}"), "a trace point"))
}

pub(crate) trait Output {
    fn begin_launch(&mut self, launch: &LaunchInfo);
    /// Receives chunks in any order.
    fn write_chunks(&mut self, launch: u32, chunks: &[ChunkRef<'_>]);
    /// Receives the accounts of the chosen warps.
    fn end_launch(&mut self, launch: &LaunchInfo, track: u32, accounts: &[WarpAccount]);
    fn end_early(&mut self, launch: u32, end: &EarlyEnd);
}

#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    pub(crate) metadata: Metadata,
    pub(crate) compression: Compression,
    pub(crate) frame_bytes: Option<u32>,
    /// Payload bytes of a chunk.
    pub(crate) capacity: u32,
    /// Chunks of a warp in one `write_chunks` call. Small numbers make overlapping frames.
    pub(crate) batch: usize,
    /// Changes accounts before they are written.
    pub(crate) account: fn(u32, u32, &mut WarpAccount),
    pub(crate) early_ends: Vec<(u32, EarlyEnd)>,
}

impl Recorder {
    pub(crate) fn new(tracks: Vec<CodecSpec>) -> Self {
        Self {
            metadata: metadata(tracks),
            compression: Compression::default(),
            frame_bytes: None,
            capacity: 480,
            batch: usize::MAX,
            account: |_, _, _| {},
            early_ends: Vec::new(),
        }
    }

    pub(crate) fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    pub(crate) fn frame_bytes(mut self, bytes: u32) -> Self {
        self.frame_bytes = Some(bytes);
        self
    }

    fn write_track(&self, output: &mut impl Output, launch: &LaunchInfo, track: u32, streams: &Streams) {
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
            // Reversed, because the writer must sort chunks.
            batch.reverse();
            output.write_chunks(launch.number(), &batch);
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
        output.end_launch(launch, track, &accounts);
    }

    pub(crate) fn record(&self, launches: &[(LaunchInfo, Streams)]) -> Vec<u8> {
        let mut file = self.file();
        self.record_into(&mut file, launches);
        file.0.finish()
    }

    /// Makes a trace with the given streams for each launch and track.
    pub(crate) fn record_tracks(&self, launches: &[(LaunchInfo, Vec<&Streams>)]) -> Vec<u8> {
        let mut file = self.file();
        self.record_tracks_into(&mut file, launches);
        file.0.finish()
    }

    fn file(&self) -> File {
        File(Sections::new(&self.metadata), self.frame_bytes.unwrap_or(1 << 20), self.compression)
    }

    pub(crate) fn record_into(&self, output: &mut impl Output, launches: &[(LaunchInfo, Streams)]) {
        let tracks = self.metadata.tracks.len();
        let launches: Vec<_> =
            launches.iter().map(|(launch, streams)| (*launch, vec![streams; tracks])).collect();
        self.record_tracks_into(output, &launches);
    }

    fn record_tracks_into(&self, output: &mut impl Output, launches: &[(LaunchInfo, Vec<&Streams>)]) {
        for (launch, tracks) in launches {
            output.begin_launch(launch);
            for (track, streams) in (0..).zip(tracks) {
                self.write_track(output, launch, track, streams);
            }
        }
        self.early_ends.iter().for_each(|(launch, end)| output.end_early(*launch, end));
    }
}

/// A file with the size and the compression of its frames.
struct File(Sections, u32, Compression);

impl Output for File {
    fn begin_launch(&mut self, launch: &LaunchInfo) {
        self.0.put(&launch.encode_section());
    }

    fn write_chunks(&mut self, launch: u32, chunks: &[ChunkRef<'_>]) {
        self.0.put_chunks(launch, chunks, (self.1.into(), self.2));
    }

    fn end_launch(&mut self, launch: &LaunchInfo, track: u32, accounts: &[WarpAccount]) {
        self.0.put_accounts(launch, track, accounts, &[]);
    }

    fn end_early(&mut self, launch: u32, end: &EarlyEnd) {
        self.0.put(&end.encode_section(launch).unwrap());
    }
}

/// Two launches, two tracks, few events: every kind of section in less than 3 KB. Some warps have 8 lanes.
pub(crate) fn small_recording() -> (Recorder, [(LaunchInfo, Streams); 2]) {
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
    let mut recorder = Recorder::new(vec![ecl(), CodecSpec::Raw]).frame_bytes(120);
    recorder.metadata.locations.truncate(7);
    (recorder, [(first, streams(0)), (second, streams(1))])
}

pub(crate) fn small() -> (Vec<u8>, Recording) {
    let (recorder, launches) = small_recording();
    (recorder.record(&launches), recording(&launches))
}

pub(crate) fn recording(launches: &[(LaunchInfo, Streams)]) -> Recording {
    launches.iter().map(|(launch, streams)| (launch.number(), streams.clone())).collect()
}

pub(crate) fn decode(trace: &TraceFile, launch: u32, track: u32) -> Result<Streams, DecodeError> {
    decode_filtered(trace, launch, track, &WarpFilter::all())
}

pub(crate) fn decode_filtered(
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
