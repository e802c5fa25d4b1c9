//! Sorting of chunks into the order of the file: by launch, track, warp and sequence.
//!
//! ```text
//! pieces, as they were found     ┌──────────────┐ ┌──────────────┐ ┌─────
//!   each by ranges of streams    │ 0 │ 1 │ 2 …  │ │ 0 │ 1 │ 2 …  │ │ 0 │
//!                                └──────────────┘ └──────────────┘ └─────
//! each range out of all pieces   ┌──────────┐ ┌──────────┐ ┌─────
//!   each by stream and sequence  │ 0  0  0  │ │ 1  1  1  │ │ 2
//!                                └──────────┘ └──────────┘ └─────
//! ```
//!
//! Both steps work on pieces of data that fit into a core's cache. The first step processes all pieces in
//! parallel, the second step all ranges.

use std::borrow::Cow;

use rayon::prelude::*;

use super::batch::BatchChunk;

/// Streams per chunk above which a range is sorted by comparison: counting would visit every stream.
const MOST_STREAMS: u64 = 8;
/// Average chunks in a range of streams.
const RANGE_CHUNKS: usize = 1 << 10;
/// Maximum chunks of a piece; longer pieces are split.
const MOST_PIECE_CHUNKS: usize = 1 << 13;
/// Maximum ranges per thread, so that threads that finish early take more. A single thread needs no ranges.
const RANGES_A_THREAD: usize = 8;
/// Maximum ranges, so that a piece has several chunks in each.
const MOST_RANGES: usize = 256;

/// Sorts the chunks of all pieces into `ordered`, whose old content is overwritten. All streams are below
/// `streams`. Chunks of one stream with the same sequence number have no defined order.
pub(super) fn order(pieces: &[Vec<BatchChunk>], streams: u64, ordered: &mut Vec<BatchChunk>) {
    let count: usize = pieces.iter().map(Vec::len).sum();
    // Existing elements need no reset: all are overwritten.
    ordered.resize(count, BatchChunk::default());
    let ranges = Ranges::new(count, streams, rayon::current_num_threads());
    let pieces: Vec<&[BatchChunk]> =
        pieces.iter().flat_map(|piece| piece.chunks(MOST_PIECE_CHUNKS)).collect();
    let grouped: Vec<Grouped<'_>> = pieces.par_iter().map(|piece| ranges.group(piece)).collect();
    let mut rest = &mut ordered[..];
    let mut targets = Vec::with_capacity(ranges.count);
    for range in 0..ranges.count {
        let chunks = grouped.iter().map(|piece| piece.range(range).len()).sum();
        let (target, after) = std::mem::take(&mut rest).split_at_mut(chunks);
        rest = after;
        targets.push(target);
    }
    targets.into_par_iter().enumerate().with_max_len(1).for_each(|(range, target)| {
        ranges.place(range, &grouped, target);
    });
}

#[derive(Clone, Copy, Debug)]
struct Ranges {
    /// Log2 of the streams in a range.
    shift: u32,
    count: usize,
}

impl Ranges {
    fn new(chunks: usize, streams: u64, threads: usize) -> Self {
        let most = if threads == 1 { 1 } else { MOST_RANGES.min(RANGES_A_THREAD * threads) };
        let wanted = (chunks / RANGE_CHUNKS).clamp(1, most) as u64;
        let shift = streams.div_ceil(wanted).max(1).next_power_of_two().trailing_zeros();
        // At most `wanted`.
        Self { shift, count: (streams.saturating_sub(1) >> shift) as usize + 1 }
    }

    const fn range(self, chunk: &BatchChunk) -> usize {
        (chunk.stream >> self.shift) as usize
    }

    /// Groups the chunks of a piece by range. Keeps their order within a range.
    fn group(self, piece: &[BatchChunk]) -> Grouped<'_> {
        if self.count == 1 {
            return Grouped { chunks: Cow::Borrowed(piece), starts: vec![0, piece.len()] };
        }
        let mut starts = vec![0; self.count + 1];
        for chunk in piece {
            starts[self.range(chunk) + 1] += 1;
        }
        let mut next = 0;
        for start in &mut starts {
            next += *start;
            *start = next;
        }
        let mut chunks = piece.to_vec();
        let mut places = starts.clone();
        for chunk in piece {
            let place = &mut places[self.range(chunk)];
            chunks[*place] = *chunk;
            *place += 1;
        }
        Grouped { chunks: Cow::Owned(chunks), starts }
    }

    fn place(self, range: usize, grouped: &[Grouped<'_>], target: &mut [BatchChunk]) {
        let runs = || grouped.iter().flat_map(|piece| piece.range(range));
        let width = 1u64 << self.shift;
        if width > MOST_STREAMS * target.len() as u64 {
            target.iter_mut().zip(runs()).for_each(|(to, chunk)| *to = *chunk);
            target.sort_unstable_by_key(|chunk| (chunk.stream, chunk.sequence));
            return;
        }
        let first = (range as u64) << self.shift;
        // First the chunk count of each stream, then the next position of the stream.
        let mut places = vec![0u32; width as usize];
        runs().for_each(|chunk| places[(chunk.stream - first) as usize] += 1);
        let mut next = 0;
        for place in &mut places {
            next += std::mem::replace(place, next);
        }
        for chunk in runs() {
            let place = &mut places[(chunk.stream - first) as usize];
            target[*place as usize] = *chunk;
            *place += 1;
        }
        for stream in target.chunk_by_mut(|a, b| a.stream == b.stream) {
            if !stream.is_sorted_by_key(|chunk| chunk.sequence) {
                stream.sort_unstable_by_key(|chunk| chunk.sequence);
            }
        }
    }
}

struct Grouped<'a> {
    chunks: Cow<'a, [BatchChunk]>,
    /// Start of each range, followed by the end of the last one.
    starts: Vec<usize>,
}

impl Grouped<'_> {
    fn range(&self, range: usize) -> &[BatchChunk] {
        &self.chunks[self.starts[range]..self.starts[range + 1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(count: usize, piece: usize, streams: u64, step: u64) -> Vec<Vec<BatchChunk>> {
        let mut state = 1u64;
        let mut next = vec![0; streams as usize];
        let chunks: Vec<BatchChunk> = (0..count as u32)
            .map(|at| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let stream = (state >> 33) % (streams / step) * step;
                next[stream as usize] += 1;
                BatchChunk { stream, sequence: next[stream as usize], at, ..BatchChunk::default() }
            })
            .collect();
        chunks.chunks(piece).map(<[BatchChunk]>::to_vec).collect()
    }

    fn keys(chunks: &[BatchChunk]) -> Vec<(u64, u32, u32)> {
        chunks.iter().map(|chunk| (chunk.stream, chunk.sequence, chunk.at)).collect()
    }

    #[test]
    fn pieces_of_any_size_and_streams_of_any_number_are_brought_into_order() {
        let mut ordered = vec![BatchChunk { stream: u64::MAX, ..BatchChunk::default() }; 7];
        for (count, piece, streams, step) in [
            (0, 1, 1, 1),
            (1, 1, 1, 1),
            (5_000, 7, 1, 1),
            (5_000, 5_000, 3, 1),
            (20_000, 1_000, 20_000, 1),
            (20_000, 999, 20_000, 5_000),
            (20_000, 1_000, 900_000, 1),
            (300_000, 2_048, 40_001, 1),
            (300_000, 2_048, 40_001, 10_000),
        ] {
            let mut pieces = pieces(count, piece, streams, step);
            // As after concurrent reservations, later chunks of a stream may be found before earlier ones.
            pieces.reverse();
            pieces.iter_mut().step_by(2).for_each(|piece| piece.reverse());
            let mut expected = keys(&pieces.concat());
            expected.sort_unstable();
            order(&pieces, streams, &mut ordered);
            assert_eq!(keys(&ordered), expected, "{count} {piece} {streams} {step}");
        }
    }
}
