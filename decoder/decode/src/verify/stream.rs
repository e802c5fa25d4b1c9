//! Verification of one warp: decodes all chunks, checks all events, compares two tracks ([`super::twin`]).

use std::collections::BTreeMap;

use warptrace_format::codec::{CodecSpec, Decoder, Item};
use warptrace_format::file::{LaunchInfo, RecordedPolicy};

use super::twin::{EventTimes, LaneEvents, TwinComparison, Verdict};
use crate::error::DecodeError;
use crate::feed::{ChunkFeed, EventReader, FrameFeed, MemoryFeed, Sequence, Stream};
use crate::file::TraceFile;
use crate::items::WarpItem;
use crate::times::Runs;
use crate::window::Held;

pub(super) struct Rules<'a> {
    pub(super) file: &'a TraceFile,
    pub(super) info: &'a LaunchInfo,
    pub(super) codecs: &'a [CodecSpec],
    /// `known[id]`: whether the location table has `id`.
    pub(super) known: &'a [bool],
    pub(super) policy: &'a RecordedPolicy,
    pub(super) is_timed: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Count {
    pub(super) events: u64,
    pub(super) first: u64,
}

#[derive(Debug, Default)]
pub(super) struct StreamCheck {
    pub(super) chunks: u64,
    pub(super) events: u64,
    pub(super) unknown: BTreeMap<u16, Count>,
    /// Events with lanes that the warp does not have, and the mask of the first.
    pub(super) outside: Option<(Count, u32)>,
    pub(super) timed_runs: u64,
    pub(super) untimed: Option<Count>,
    pub(super) failed: bool,
    /// The error, unless it is an unreadable frame, which the window has reported.
    pub(super) error: Option<DecodeError>,
}

impl StreamCheck {
    fn fail(mut self, error: DecodeError) -> Self {
        self.failed = true;
        self.error = Some(error)
            .filter(|error| matches!(error, DecodeError::Chunk { .. } | DecodeError::Sequence { .. }));
        self
    }
}

#[derive(Debug)]
pub(super) struct WarpCheck {
    pub(super) tracks: Vec<StreamCheck>,
    pub(super) comparison: Option<Comparison>,
}

#[derive(Debug)]
pub(super) struct Comparison {
    pub(super) verdict: Verdict,
    pub(super) matched: u64,
    /// With recorded ends: first events of trace and twin that the other one has lost.
    pub(super) passed_over: [u64; 2],
}

/// Checks one warp. `decoders` holds one decoder for each track.
pub(super) fn check_warp(rules: &Rules<'_>, warp: u32, held: &Held, decoders: &mut [Decoder]) -> WarpCheck {
    let stream = |track| Stream { launch: rules.info.number(), track, warp };
    match held {
        Held::Chunks(_) => {
            check_feeds(rules, warp, decoders, |track| MemoryFeed::new(held.chunks(track as usize)))
        }
        Held::Huge => {
            check_feeds(rules, warp, decoders, |track| FrameFeed::new(rules.file, stream(track)).timed())
        }
    }
}

fn check_feeds<F: ChunkFeed>(
    rules: &Rules<'_>,
    warp: u32,
    decoders: &mut [Decoder],
    feed: impl Fn(u32) -> F,
) -> WarpCheck {
    let stream = |track| Stream { launch: rules.info.number(), track, warp };
    let mut check = WarpCheck { tracks: Vec::with_capacity(decoders.len()), comparison: None };
    for (track, decoder) in (0..).zip(decoders) {
        let codec = rules.codecs.get(1).filter(|_| track == 0);
        // An error ends the track here. The track's own check reports it.
        let runs = |track, codec| {
            let mut reader = EventReader::new(feed(track), stream(track), codec);
            std::iter::from_fn(move || {
                reader.next_run()?.ok().map(|(event, times)| EventTimes { event, times })
            })
        };
        let mut comparison = codec.map(|&codec| {
            // With other policies, a warp that lost events has its beginning recorded.
            if *rules.policy != RecordedPolicy::Ring {
                return TwinComparison::new(runs(1, codec));
            }
            let [trace, twin] =
                [(0, rules.codecs[0]), (1, codec)].map(|(track, codec)| LaneEvents::new(runs(track, codec)));
            TwinComparison::of_ends(runs(1, codec), [trace.more_than(&twin), twin.more_than(&trace)])
        });
        let found = check_stream(rules, stream(track), decoder, feed(track), &mut |item| {
            if let Some(comparison) = &mut comparison {
                match item {
                    Item::Run { event, times } => comparison.push(EventTimes { event, times }),
                    Item::Cycle { .. } => {
                        item.for_each(&mut |event| comparison.push(EventTimes { event, times: 1 }));
                    }
                }
            }
        });
        if let Some(mut comparison) = comparison {
            let (verdict, matched) = comparison.finish();
            let passed_over = comparison.passed_over();
            check.comparison = Some(Comparison { verdict, matched, passed_over });
        }
        check.tracks.push(found);
    }
    check
}

fn check_stream<F: ChunkFeed>(
    rules: &Rules<'_>,
    stream: Stream,
    decoder: &mut Decoder,
    mut feed: F,
    each: &mut impl FnMut(Item<'_>),
) -> StreamCheck {
    let lanes = rules.info.lane_mask(stream.warp).unwrap_or(0);
    let mut check = StreamCheck::default();
    let mut sequence = Sequence::new(stream);
    let mut runs = Runs::new(stream.warp);
    loop {
        let chunk = match feed.next_chunk() {
            Ok(Some(chunk)) => chunk,
            Ok(None) => return check,
            Err(error) => return check.fail(error),
        };
        if let Err(error) = sequence.check(chunk) {
            return check.fail(error);
        }
        let mut number = check.events;
        let mut timed = runs.chunk(chunk);
        let mut time = |WarpItem { first_event: first, item, begin, .. }: WarpItem<'_>| match begin {
            Some(_) => check.timed_runs += 1,
            None => check.untimed.get_or_insert(Count { events: 0, first }).events += item.events(),
        };
        let result = decoder.decode_items(&chunk.payload, chunk.events, &mut |item| {
            let times = u64::from(item.times());
            for (number, &event) in (number..).zip(item.body()) {
                let first = Count { events: 0, first: number };
                if !rules.known[usize::from(event.location)] {
                    check.unknown.entry(event.location).or_insert(first).events += times;
                }
                if event.mask & !lanes != 0 {
                    check.outside.get_or_insert((first, event.mask)).0.events += times;
                }
            }
            match &mut timed {
                Some(runs) => runs.take(number, &item, &mut time),
                None if rules.is_timed && stream.track == 0 => {
                    time(WarpItem {
                        warp: stream.warp,
                        first_event: number,
                        item,
                        begin: None,
                        missing: None,
                    });
                }
                None => {}
            }
            each(item);
            number += item.events();
        });
        if let Some(runs) = timed {
            runs.end(&mut time);
        }
        if let Err(error) = result {
            return check.fail(chunk.error(stream, error));
        }
        check.chunks += 1;
        check.events = number;
    }
}
