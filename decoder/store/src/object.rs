//! An object as a source of bytes.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use futures::StreamExt;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectMeta};
use warptrace_decoder::ByteSource;

use crate::CACHE_BYTES;
use crate::cache::{BLOCK, Cache};
use crate::client::{StorePlace, runtime};
use crate::error::StoreError;

/// Maximum bytes of one request. A slow connection must transfer them within the request timeout.
const MOST_AT_ONCE: u64 = 1 << 20;

const AT_THE_SAME_TIME: usize = 8;

/// Maximum gap in blocks between requested blocks that is read with them. A separate request costs more.
const JOINED: u64 = 3;

type Block = (u64, Arc<[u8]>);

/// The version of an object that responses must have.
#[derive(Debug, PartialEq, Eq)]
struct Version {
    e_tag: Option<String>,
    /// Seconds; 0 if unknown.
    modified: i64,
    length: u64,
}

impl Version {
    fn new(meta: &ObjectMeta) -> Self {
        Self { e_tag: meta.e_tag.clone(), modified: meta.last_modified.timestamp(), length: meta.size }
    }
}

pub(crate) struct Object {
    place: StorePlace,
    path: Path,
    version: Version,
    cache: Mutex<Cache>,
    /// Notified when blocks are no longer in flight.
    landed: Condvar,
    /// The first error. Later reads fail at once instead of waiting for an unresponsive server.
    failed: Mutex<Option<StoreError>>,
}

impl Object {
    pub(crate) fn open(url: &str) -> Result<Self, StoreError> {
        let place = StorePlace::new(url)?;
        let path = place.path()?;
        // An empty object returns a separate error for the range.
        let (version, first) = runtime(&place.shown)?.block_on(get(&place, &path, 0..BLOCK, None))?;
        if version.e_tag.is_none() && version.modified == 0 {
            return Err(StoreError::NoVersion { url: place.shown });
        }
        let mut cache = Cache::default();
        cache.keep(0, first.into(), CACHE_BYTES);
        let (cache, failed) = (Mutex::new(cache), Mutex::new(None));
        Ok(Self { place, path, version, cache, landed: Condvar::new(), failed })
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        // No holder of the lock panics in the middle of a change.
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self) -> Option<StoreError> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads blocks that this thread has marked as in flight, and removes the mark.
    fn fetch(&self, blocks: Vec<u64>) -> Result<Vec<Block>, StoreError> {
        if blocks.is_empty() {
            return Ok(Vec::new());
        }
        let landing = Landing { object: self, blocks: &blocks };
        let length = self.version.length;
        let requests = runs(&blocks).into_iter().map(|run| {
            let range = run.start * BLOCK..(run.end * BLOCK).min(length);
            async move {
                let (_, bytes) = get(&self.place, &self.path, range, Some(&self.version)).await?;
                Ok::<_, StoreError>((run.start, bytes))
            }
        });
        let all = runtime(&self.place.shown)?.block_on(async {
            let mut answers = futures::stream::iter(requests).buffer_unordered(AT_THE_SAME_TIME);
            let mut all = Vec::new();
            while let Some(answer) = answers.next().await {
                let (first, bytes) = answer?;
                let parts = bytes.chunks(BLOCK as usize).map(Arc::<[u8]>::from);
                all.extend((first..).zip(parts));
            }
            Ok(all)
        });
        match &all {
            Ok(all) => {
                let mut cache = self.cache();
                for (block, bytes) in all {
                    cache.keep(*block, bytes.clone(), CACHE_BYTES);
                }
            }
            Err(error) => {
                let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
                failed.get_or_insert_with(|| StoreError::clone(error));
            }
        }
        drop(landing);
        all
    }

    fn begin(&self, cache: &mut Cache, blocks: impl Iterator<Item = u64>, most: usize) -> Vec<u64> {
        let missing: Vec<u64> = blocks.filter(|block| !cache.is_known(*block)).take(most).collect();
        cache.in_flight.extend(&missing);
        missing
    }
}

/// Blocks in flight. Dropping it ends that state, also after errors and panics.
struct Landing<'a> {
    object: &'a Object,
    blocks: &'a [u64],
}

impl Drop for Landing<'_> {
    fn drop(&mut self) {
        let mut cache = self.object.cache();
        for block in self.blocks {
            cache.in_flight.remove(block);
        }
        self.object.landed.notify_all();
    }
}

impl ByteSource for Object {
    fn length(&self) -> io::Result<u64> {
        Ok(self.version.length)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let (count, length) = (buffer.len() as u64, self.version.length);
        let end = offset.checked_add(count).filter(|end| *end <= length);
        let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
        if count == 0 {
            return Ok(());
        }
        let wanted = offset / BLOCK..end.div_ceil(BLOCK);
        let mut cache = self.cache();
        let ahead = end.saturating_add(cache.ahead(offset, count)).min(length).div_ceil(BLOCK);
        let mut next = wanted.start;
        while next < wanted.end {
            if let Some(block) = cache.get(next) {
                copy_block(next, &block, buffer, offset);
                next += 1;
                continue;
            }
            if let Some(error) = self.failed() {
                return Err(error.into());
            }
            if cache.in_flight.contains(&next) {
                cache = self.landed.wait(cache).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            // Read-ahead is done only together with missing blocks.
            let most = (CACHE_BYTES / 2 / BLOCK) as usize;
            let missing = self.begin(&mut cache, next..ahead, most);
            drop(cache);
            // Copies from the received blocks, because the cache may have dropped them.
            let mut came = self.fetch(missing)?;
            came.sort_unstable_by_key(|(block, _)| *block);
            for (number, block) in &came {
                if *number == next && next < wanted.end {
                    copy_block(next, block, buffer, offset);
                    next += 1;
                }
            }
            cache = self.cache();
        }
        Ok(())
    }

    fn will_read(&self, ranges: &[Range<u64>]) {
        let most = (CACHE_BYTES / 4 / BLOCK) as usize;
        let blocks = ranges.iter().flat_map(|range| {
            let end = range.end.min(self.version.length);
            range.start / BLOCK..if range.start < end { end.div_ceil(BLOCK) } else { 0 }
        });
        if self.failed().is_some() {
            return;
        }
        let missing = self.begin(&mut self.cache(), blocks.take(most), most);
        // The read that needs the blocks reports the error.
        let _ = self.fetch(missing);
    }
}

fn copy_block(number: u64, block: &[u8], buffer: &mut [u8], offset: u64) {
    let at = number * BLOCK;
    let from = offset.max(at);
    let to = (offset + buffer.len() as u64).min(at + block.len() as u64);
    // All are within the buffer and the block.
    let (length, into, of) = ((to - from) as usize, (from - offset) as usize, (from - at) as usize);
    buffer[into..into + length].copy_from_slice(&block[of..of + length]);
}

/// Joins nearby blocks into runs, each at most as long as a request.
fn runs(blocks: &[u64]) -> Vec<Range<u64>> {
    let mut blocks = blocks.to_vec();
    blocks.sort_unstable();
    let mut runs: Vec<Range<u64>> = Vec::new();
    for block in blocks {
        match runs.last_mut() {
            Some(run) if block <= run.end + JOINED && block < run.start + MOST_AT_ONCE / BLOCK => {
                run.end = run.end.max(block + 1);
            }
            _ => runs.push(block..block + 1),
        }
    }
    runs
}

/// Reads a range of an object. If a version is given, the object must have it.
async fn get(
    place: &StorePlace,
    path: &Path,
    range: Range<u64>,
    version: Option<&Version>,
) -> Result<(Version, Vec<u8>), StoreError> {
    // A weak ETag never matches in a server's comparison. The version is also compared below.
    let if_match = version.and_then(|version| version.e_tag.clone()).filter(|tag| !tag.starts_with("W/"));
    let options =
        GetOptions { range: Some(GetRange::Bounded(range.clone())), if_match, ..GetOptions::default() };
    let reading = async {
        let answer = place.store.get_opts(path, options).await?;
        let (found, expected) = (Version::new(&answer.meta), answer.range.end - answer.range.start);
        let mut bytes = Vec::new();
        let mut parts = answer.into_stream();
        while let Some(part) = parts.next().await {
            let part = part?;
            bytes.extend_from_slice(&part);
            if bytes.len() as u64 > expected {
                break;
            }
        }
        Ok((found, bytes, expected))
    };
    let (found, bytes, expected) = place.in_time(reading).await?;
    let url = place.shown.clone();
    if version.is_some_and(|version| *version != found) {
        return Err(StoreError::Changed { url });
    }
    if bytes.len() as u64 != expected {
        return Err(StoreError::Short { url, found: bytes.len() as u64, expected });
    }
    Ok((found, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_blocks_are_one_request_of_bounded_length() {
        assert_eq!(runs(&[12, 1, 2, 5, 14]), [1..6, 12..15]);
        let most = MOST_AT_ONCE / BLOCK;
        let all: Vec<u64> = (0..most + 3).collect();
        assert_eq!(runs(&all), [0..most, most..most + 3]);
        assert!(runs(&[]).is_empty());
    }

    #[test]
    fn blocks_fill_their_part_of_a_buffer() {
        let block: Vec<u8> = (0..BLOCK).map(|at| at as u8).collect();
        let mut buffer = [255; 6];
        copy_block(0, &block, &mut buffer, BLOCK - 2);
        copy_block(1, &[9, 8, 7, 6], &mut buffer, BLOCK - 2);
        assert_eq!(buffer, [254, 255, 9, 8, 7, 6]);
    }
}
