//! Encoding of a drain, on one of the writer threads.

use bytemuck::TransparentWrapper;
use rayon::prelude::*;
use warptrace_format::chunk::{SPLIT, TIME_BYTES, bytes_of_times};
use warptrace_format::file::{AccountRun, LaunchInfo};
use warptrace_format::span::WarpSpan;

use super::drained::{Accounts, Drained, Span};
use crate::packed::{self, Piece, Unpacked};
use crate::session::classes::{ClassRun, Classes, StreamName};
use crate::session::{LaunchReport, SessionError};
use crate::writer::{Batch, BatchChunk, ChunkRef, EncodedBatch, EncodedData, Encoder, TrackEnd};

/// A drain that is encoded and not yet written.
pub(super) struct EncodedDrain<'d> {
    pub(super) data: EncodedData,
    pub(super) batch: Option<EncodedBatch<'d>>,
    pub(super) ends: Vec<TrackEnd<'d>>,
    /// Its counts, to be added to the totals.
    pub(super) counts: LaunchReport,
}

/// Properties of the recording that encoding a drain needs.
#[derive(Clone)]
pub(super) struct Encoding {
    pub(super) encoder: Encoder,
    pub(super) chunk_bytes: usize,
    pub(super) tracks: u32,
    pub(super) data_track: Option<u32>,
}

impl Encoding {
    /// Encodes a drain with chunks of `launches`. `ordered` is memory that the result borrows.
    pub(super) fn encode<'d>(
        &self,
        drained: &'d Drained,
        launches: &[LaunchInfo],
        ordered: &'d mut Vec<BatchChunk>,
    ) -> Result<EncodedDrain<'d>, SessionError> {
        let spans = Span::peel_slice(&drained.spans);
        let mut counts = LaunchReport { time_bytes: size_of_val(spans) as u64, ..LaunchReport::default() };
        let classes = drained.classes.as_ref().map(|firsts| firsts.classes()).transpose()?.flatten();
        let ends = self.ends(&drained.end, drained.accounts(self.tracks), classes, spans, &mut counts);
        let data = self.encode_data(drained, launches, &mut counts)?;
        if drained.packed.is_empty() && ends.is_empty() {
            return Ok(EncodedDrain { data, batch: None, ends, counts });
        }
        let (chunk_bytes, data_track) = (self.chunk_bytes, self.data_track);
        let find = |batch: &mut Batch| {
            let pieces: Vec<_> =
                packed::pieces(&drained.packed, chunk_bytes, packed::piece_bytes(&drained.packed)).collect();
            let find = |piece| found(batch, piece, chunk_bytes, data_track, classes);
            let pieces: Vec<_> = pieces.into_par_iter().map(find).collect();
            for piece in pieces {
                let (found, [chunks, payload_bytes, time_bytes]) = piece?;
                counts.chunks += chunks;
                counts.payload_bytes += payload_bytes;
                counts.time_bytes += time_bytes;
                batch.add(found);
            }
            Ok::<(), SessionError>(())
        };
        let payload = |found: &BatchChunk| {
            let [runs, padding] = found.times;
            let times = found.length + padding;
            let of = |bytes| packed::payload(&drained.packed, found.at, bytes);
            [of(0..found.length), of(times..times + bytes_of_times(runs) as u32)]
        };
        let batch = self.encoder.encode(launches, find, payload, classes, &ends, ordered)?;
        Ok(EncodedDrain { data, batch: Some(batch), ends, counts })
    }

    /// Returns the accounts of each launch and track, and adds them to `counts`.
    fn ends<'a>(
        &self,
        launches: &[LaunchInfo],
        accounts: Accounts<'_>,
        classes: Option<&Classes>,
        mut spans: &'a [WarpSpan],
        counts: &mut LaunchReport,
    ) -> Vec<TrackEnd<'a>> {
        // Accounts in damaged memory may have any value.
        let add = |sum: &mut u64, more| *sum = sum.wrapping_add(more);
        let (mut first, mut ends) = (0, Vec::new());
        for info in launches {
            for track in 0..self.tracks {
                let warps = info.chosen().count() as usize;
                let streams = first..first + warps;
                first += warps;
                let mut of_track = &[][..];
                if track == 0 {
                    (of_track, spans) = spans.split_at_checked(warps).unwrap_or_default();
                }
                let of_class = |run: ClassRun| AccountRun {
                    warps: run.count,
                    account: accounts.get(run.class as usize),
                };
                let runs = match classes.and_then(|classes| classes.of_track(info, track)) {
                    Some((_, runs)) => AccountRun::joined(runs.map(of_class)),
                    None => accounts.runs(streams),
                };
                let [attempted, recorded, lost] = sums(&runs);
                ends.push(TrackEnd { launch: info.number(), track, accounts: runs, spans: of_track });
                if track == 0 {
                    add(&mut counts.attempted, attempted);
                    add(&mut counts.recorded, recorded);
                    add(&mut counts.lost, lost);
                } else if self.data_track == Some(track) {
                    add(&mut counts.accesses, recorded);
                    add(&mut counts.lost_accesses, lost);
                } else {
                    add(&mut counts.twin_lost, lost);
                }
            }
        }
        ends
    }
}

fn sums(runs: &[AccountRun]) -> [u64; 3] {
    runs.iter().fold([0; 3], |sums, AccountRun { warps, account }| {
        let each = [account.attempted, account.recorded, account.lost];
        std::array::from_fn(|at| u64::wrapping_add(sums[at], each[at].wrapping_mul((*warps).into())))
    })
}

/// Returns the chunks of a piece, except on the data track. Also returns the number of chunks counted for all
/// streams of their classes, and for track 0 the bytes of events and of times.
fn found(
    batch: &Batch,
    piece: Piece<'_>,
    chunk_bytes: usize,
    data_track: Option<u32>,
    classes: Option<&Classes>,
) -> Result<(Vec<BatchChunk>, [u64; 3]), SessionError> {
    let (mut all, mut chunks) = (Vec::with_capacity(piece.chunks), 0);
    let (mut payload_bytes, mut time_bytes) = (0, 0);
    for Unpacked { header, payload, at } in packed::chunks(piece, chunk_bytes) {
        if data_track == Some(header.track) {
            continue;
        }
        let (launch, warp) = (header.launch, header.warp);
        // A kernel that writes out of bounds may have overwritten the pool.
        let damaged = |problem: String| SessionError::DamagedChunk { launch, warp, problem };
        let Some(info) = batch.launch(launch) else {
            return Err(damaged("no such launch is being recorded".to_owned()));
        };
        // The device numbers only recorded warps.
        let Some(warp) = info.chosen_warp(warp) else {
            return Err(damaged(format!("{} warps of the launch record", info.chosen().count())));
        };
        let payload =
            payload.ok_or_else(|| damaged(format!("it claims {} bytes of payload", header.length)))?;
        let (sequence, events, track) = (header.sequence, header.events, header.track);
        let behind = bytes_of_times(header.runs) + u64::from(header.padding);
        let encoded = (payload.len() as u64)
            .checked_sub(behind)
            .filter(|_| header.padding < TIME_BYTES && header.runs != SPLIT);
        let encoded = encoded
            .ok_or_else(|| damaged(format!("it claims the times of {} runs", header.runs & !SPLIT)))?;
        let payload = &payload[..encoded as usize];
        let mut found = batch.check(launch, &ChunkRef { track, warp, sequence, events, payload }, at)?;
        found.times = [header.runs, header.padding];
        all.push(found);
        let name = StreamName { launch, track, warp: header.warp };
        let streams = classes.map_or(1, |classes| classes.size(name).into());
        chunks += streams;
        if track == 0 {
            payload_bytes += streams * encoded;
            time_bytes += behind;
        }
    }
    Ok((all, [chunks, payload_bytes, time_bytes]))
}
