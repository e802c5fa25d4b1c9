//! Division of chunks into frames.

use rayon::prelude::*;
use warptrace_format::chunk::{SPLIT, TIME_BYTES};
use warptrace_format::file::CHUNK_ENTRY_BYTES;

use super::batch::BatchChunk;

/// Chunks whose lengths one task adds up.
const AT_ONCE: usize = 1 << 10;

/// Cuts chunks into frames of 1 to `most_chunks` chunks. `most` returns the maximum bytes of a frame from the
/// total bytes. Returns the chunks of each frame.
pub(super) fn cut(
    chunks: &[BatchChunk],
    most: impl FnOnce(u64) -> u64,
    most_chunks: usize,
) -> Vec<&[BatchChunk]> {
    // The sum of a block suffices if no frame can end in it.
    let sums: Vec<u64> = chunks.par_chunks(AT_ONCE).map(|chunks| chunks.iter().map(bytes).sum()).collect();
    let most = most(sums.iter().sum());
    let mut frames = Vec::new();
    let (mut from, mut frame_bytes) = (0, 0);
    for (block, sum) in sums.into_iter().enumerate() {
        let start = block * AT_ONCE;
        let end = chunks.len().min(start + AT_ONCE);
        if frame_bytes + sum <= most && end - from <= most_chunks {
            frame_bytes += sum;
            continue;
        }
        for (at, chunk) in (start..end).zip(&chunks[start..end]) {
            let more = bytes(chunk);
            if at > from && (frame_bytes + more > most || at - from == most_chunks) {
                frames.push(&chunks[from..at]);
                (from, frame_bytes) = (at, 0);
            }
            frame_bytes += more;
        }
    }
    if from < chunks.len() {
        frames.push(&chunks[from..]);
    }
    frames
}

/// Times count with their maximum size, because it limits the runs of a frame.
fn bytes(chunk: &BatchChunk) -> u64 {
    let times = u64::from(chunk.times[0] & !SPLIT) * u64::from(TIME_BYTES);
    CHUNK_ENTRY_BYTES as u64 + u64::from(chunk.length) + times
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference implementation: chunks of frames, one chunk at a time.
    fn one_by_one(chunks: &[BatchChunk], most: u64, most_chunks: usize) -> Vec<usize> {
        let mut frames: Vec<(usize, u64)> = Vec::new();
        for chunk in chunks {
            match frames.last_mut() {
                Some((count, sum)) if *count < most_chunks && *sum + bytes(chunk) <= most => {
                    *count += 1;
                    *sum += bytes(chunk);
                }
                _ => frames.push((1, bytes(chunk))),
            }
        }
        frames.into_iter().map(|(count, _)| count).collect()
    }

    #[test]
    fn frames_end_where_the_next_chunk_would_be_too_much() {
        let chunks: Vec<_> = (0..10_000u32)
            .map(|at| BatchChunk { length: 1 + at * at % 97, ..BatchChunk::default() })
            .collect();
        for count in [0, 1, 2, 1023, 1024, 1025, 10_000] {
            for (most, most_chunks) in [
                (1, 10),
                (100, 10),
                (5_000, 70),
                (70_000, 9_999),
                (70_000, 1_024),
                (200_000, 2_000),
                (1 << 40, 1 << 20),
            ] {
                let chunks = &chunks[..count];
                let total = |bytes_of_all| {
                    assert_eq!(bytes_of_all, chunks.iter().map(bytes).sum::<u64>());
                    most
                };
                let found = cut(chunks, total, most_chunks);
                let found: Vec<_> = found.iter().map(|frame| frame.len()).collect();
                assert_eq!(found, one_by_one(chunks, most, most_chunks), "{count} {most} {most_chunks}");
            }
        }
    }
}
