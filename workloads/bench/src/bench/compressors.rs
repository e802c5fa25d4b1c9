//! Runs common compressors on raw traces: the sizes that a tracer without a codec could reach.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use warptrace_decoder::{TraceFile, WarpFilter};

pub(crate) struct Compressor {
    /// Name and level, as on a command line.
    pub(crate) name: &'static str,
    compress: fn(Input<'_>, Counter) -> io::Result<Counter>,
}

#[derive(Clone, Copy)]
struct Input<'a> {
    bytes: &'a [u8],
    deadline: Option<Instant>,
}

impl Input<'_> {
    /// Writes all bytes to `encoder`. Fails with `TimedOut` if the deadline passes.
    fn feed(self, encoder: &mut impl Write) -> io::Result<()> {
        for part in self.bytes.chunks(1 << 20) {
            if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            encoder.write_all(part)?;
        }
        Ok(())
    }
}

pub(crate) const COMPRESSORS: &[Compressor] = &[
    Compressor { name: "gzip -9", compress: gzip },
    Compressor { name: "bzip2 -9", compress: bzip2 },
    Compressor { name: "zstd -19", compress: zstd },
    Compressor { name: "xz -9", compress: xz },
];

fn gzip(input: Input<'_>, output: Counter) -> io::Result<Counter> {
    let mut encoder = flate2::write::GzEncoder::new(output, flate2::Compression::best());
    input.feed(&mut encoder)?;
    encoder.finish()
}

fn bzip2(input: Input<'_>, output: Counter) -> io::Result<Counter> {
    let mut encoder = bzip2::write::BzEncoder::new(output, bzip2::Compression::best());
    input.feed(&mut encoder)?;
    encoder.finish()
}

fn zstd(input: Input<'_>, output: Counter) -> io::Result<Counter> {
    let mut encoder = zstd::stream::write::Encoder::new(output, 19)?;
    input.feed(&mut encoder)?;
    encoder.finish()
}

fn xz(input: Input<'_>, output: Counter) -> io::Result<Counter> {
    let mut encoder = liblzma::write::XzEncoder::new(output, 9);
    input.feed(&mut encoder)?;
    encoder.finish()
}

#[derive(Debug, Default)]
struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Compressor {
    /// Returns the compressed size and the time; `None` if the deadline passed.
    fn run(&self, bytes: &[u8], deadline: Option<Instant>) -> io::Result<Option<(u64, Duration)>> {
        let started = Instant::now();
        match (self.compress)(Input { bytes, deadline }, Counter::default()) {
            Ok(output) => Ok(Some((output.0, started.elapsed()))),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Returns at most `limit` bytes of the raw trace in `path`, ordered by launch and warp. An event has five
/// bytes: location, then mask in little-endian order.
pub(super) fn raw_prefix(path: &Path, limit: usize) -> anyhow::Result<Vec<u8>> {
    let trace = TraceFile::open(path)?;
    let mut bytes = Vec::new();
    for info in trace.launches() {
        let flow = trace.decode_all(info.number(), 0, &WarpFilter::all(), &mut |block| {
            for event in block.events {
                if bytes.len() + 5 > limit {
                    return ControlFlow::Break(());
                }
                // The codecs measured here have one-byte locations.
                bytes.push(event.location as u8);
                bytes.extend(event.mask.to_le_bytes());
            }
            ControlFlow::Continue(())
        })?;
        if flow.is_break() {
            break;
        }
    }
    Ok(bytes)
}

/// Runs every compressor on every input, `jobs` at a time, each on one core. As each ends, calls `done` with
/// the input, the compressor, and its size and time, or `None` if the deadline passed.
pub(super) fn run_all(
    inputs: &[&[u8]],
    jobs: usize,
    deadline: Option<Instant>,
    mut done: impl FnMut(usize, &Compressor, Option<(u64, Duration)>) -> anyhow::Result<()> + Send,
) -> anyhow::Result<()> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(&mut done);
    let work = || -> anyhow::Result<()> {
        loop {
            // Finishes one compressor before the next, so that a deadline leaves complete columns.
            let job = next.fetch_add(1, Ordering::Relaxed);
            let (number, input) = (job / inputs.len().max(1), job % inputs.len().max(1));
            let (Some(compressor), Some(bytes)) = (COMPRESSORS.get(number), inputs.get(input)) else {
                return Ok(());
            };
            let found =
                compressor.run(bytes, deadline).with_context(|| format!("{} failed", compressor.name))?;
            let mut done = done.lock().expect("no thread panics while it holds the lock");
            (*done)(input, compressor, found)?;
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..jobs.max(1)).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("compressors do not panic"))
    })
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn each_compressor_is_the_one_it_is_named() {
        let bytes: Vec<u8> = (0..100_000_u32).flat_map(|n| (n / 7 % 50).to_le_bytes()).collect();
        for compressor in COMPRESSORS {
            let (size, _) = compressor.run(&bytes, None).unwrap().unwrap();
            assert!(size > 50 && size < bytes.len() as u64 / 10, "{}: {size}", compressor.name);
        }
        let mut packed = Vec::new();
        flate2::read::GzEncoder::new(&bytes[..], flate2::Compression::best())
            .read_to_end(&mut packed)
            .unwrap();
        assert_eq!(COMPRESSORS[0].run(&bytes, None).unwrap().unwrap().0, packed.len() as u64);
        packed.clear();
        bzip2::read::BzEncoder::new(&bytes[..], bzip2::Compression::best()).read_to_end(&mut packed).unwrap();
        assert_eq!(COMPRESSORS[1].run(&bytes, None).unwrap().unwrap().0, packed.len() as u64);
        let mut plain = Vec::new();
        bzip2::read::BzDecoder::new(&packed[..]).read_to_end(&mut plain).unwrap();
        assert_eq!(plain, bytes);
    }

    #[test]
    fn every_pair_is_run_once_however_many_at_a_time() {
        for jobs in [1, 3, 20] {
            let mut seen = Vec::new();
            let inputs: [&[u8]; 2] = [b"one one one", b"two"];
            run_all(&inputs, jobs, None, |input, compressor, found| {
                assert!(found.unwrap().0 > 0);
                seen.push((input, compressor.name));
                Ok(())
            })
            .unwrap();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), 2 * COMPRESSORS.len());
        }
    }
    #[test]
    fn after_the_deadline_nothing_is_compressed() {
        let inputs: [&[u8]; 1] = [&[7; 3 << 20]];
        let mut left_out = 0;
        run_all(&inputs, 2, Some(Instant::now()), |_, _, found| {
            assert_eq!(found, None);
            left_out += 1;
            Ok(())
        })
        .unwrap();
        assert_eq!(left_out, COMPRESSORS.len());
    }
}
