//! Device arrays, which grow between rounds.

use warptrace_device::Global;
use warptrace_host::{Buffer, Device, DeviceError, Pod};
use warptrace_kernels::dmr::{DmrMesh, DmrWork, MAX_POINTS, MAX_TRIANGLES, counter, scratch, unpack_point};

use super::DmrError;
use super::outcome::Refined;
use super::prepare::Records;
use crate::grid::Grid;

pub(super) struct Arrays {
    points: Buffer<u128>,
    acute: Buffer<u32>,
    triangles: Buffer<u128>,
    links: Buffer<u128>,
    owners: Buffer<u64>,
    queue: Buffer<u32>,
    states: Buffer<u32>,
    centres: Buffer<u128>,
    metas: Buffer<u128>,
    scratch: Buffer<u32>,
    warp_counts: Buffer<u32>,
    block_counts: Buffer<u32>,
    counters: Buffer<u32>,
    pub(super) points_used: u32,
    pub(super) triangles_used: u32,
    /// Worklist: positions `head..tail`, modulo the length of the ring.
    pub(super) head: u32,
    pub(super) tail: u32,
    pub(super) growths: u32,
}

/// Returns the same memory as an array of 32-bit words.
fn words(records: &Buffer<u128>) -> Global<u32> {
    let global = records.global();
    Global::new(global.at(0).expose_provenance() as u64, 4 * global.len())
}

/// Allocates at least `length` elements: `values`, then zeros (dead triangles or unused points).
fn padded<T: Pod>(device: &mut dyn Device, values: &[T], length: usize) -> Result<Buffer<T>, DeviceError> {
    let buffer = Buffer::filled(device, length.max(values.len()), 0)?;
    buffer.write(device, values)?;
    Ok(buffer)
}

impl Arrays {
    /// Uploads a mesh. Reserves `room` times its size, and scratch for cavities of `bound` triangles.
    pub(super) fn new(
        device: &mut dyn Device,
        records: &Records,
        grid: Grid,
        room: f64,
        bound: u32,
    ) -> Result<Self, DmrError> {
        let items = (grid.blocks() * grid.threads()) as usize;
        let scaled = |length: usize, limit: u32| ((length as f64 * room) as usize).min(limit as usize);
        let points = scaled(records.points.len(), MAX_POINTS);
        let triangles = scaled(records.triangles.len(), MAX_TRIANGLES);
        Ok(Self {
            points: padded(device, &records.points, points)?,
            acute: Buffer::upload(device, &records.acute)?,
            triangles: padded(device, &records.triangles, triangles)?,
            links: padded(device, &records.links, triangles)?,
            owners: Buffer::filled(device, triangles, 0xff)?,
            queue: Buffer::filled(device, ring(triangles), 0)?,
            states: Buffer::filled(device, items, 0)?,
            centres: Buffer::filled(device, items, 0)?,
            metas: Buffer::filled(device, items, 0)?,
            scratch: Buffer::filled(device, items * scratch::words(bound) as usize, 0)?,
            warp_counts: Buffer::filled(device, items / 32, 0)?,
            block_counts: Buffer::filled(device, 2 * grid.blocks() as usize, 0)?,
            counters: Buffer::filled(device, counter::COUNT, 0)?,
            // A mesh has fewer than 2^32 points and triangles.
            points_used: records.points.len() as u32,
            triangles_used: records.triangles.len() as u32,
            head: 0,
            tail: 0,
            growths: 0,
        })
    }

    pub(super) fn mesh(&self) -> DmrMesh {
        DmrMesh {
            points: self.points.global(),
            acute: self.acute.global(),
            triangles: self.triangles.global(),
            triangle_words: words(&self.triangles),
            links: self.links.global(),
            link_words: words(&self.links),
            owners: self.owners.global(),
        }
    }

    pub(super) fn work(&self) -> DmrWork {
        DmrWork {
            queue: self.queue.global(),
            states: self.states.global(),
            centres: self.centres.global(),
            metas: self.metas.global(),
            scratch: self.scratch.global(),
            warp_counts: self.warp_counts.global(),
            block_counts: self.block_counts.global(),
            counters: self.counters.global(),
        }
    }

    pub(super) fn waiting(&self) -> u32 {
        self.tail.wrapping_sub(self.head)
    }

    pub(super) fn take_counters(
        &self,
        device: &mut dyn Device,
    ) -> Result<[u32; counter::COUNT], DeviceError> {
        let counters = self.counters.download(device)?;
        self.counters.fill(device, 0)?;
        Ok(std::array::from_fn(|i| counters[i]))
    }

    pub(super) fn reserve_scratch(&mut self, device: &mut dyn Device, words: u64) -> Result<(), DeviceError> {
        if self.scratch.len() as u64 >= words {
            return Ok(());
        }
        let larger = Buffer::filled(device, usize::try_from(words).unwrap_or(usize::MAX), 0)?;
        std::mem::replace(&mut self.scratch, larger).free(device)?;
        self.growths += 1;
        Ok(())
    }

    /// Reserves memory for a round of `items` items, each with one point and two triangles.
    pub(super) fn reserve(&mut self, device: &mut dyn Device, items: u32) -> Result<(), DmrError> {
        let (points, triangles) = (self.points_used as usize, self.triangles_used as usize);
        let items = items as usize;
        if points + items > self.points.len() {
            let length = capacity("points", points, items, MAX_POINTS)?;
            grow(device, &mut self.points, points, length)?;
            self.growths += 1;
        }
        if triangles + 2 * items > self.triangles.len() {
            let length = capacity("triangles", triangles, 2 * items, MAX_TRIANGLES)?;
            grow(device, &mut self.triangles, triangles, length)?;
            grow(device, &mut self.links, triangles, length)?;
            // Kernels ignore owners of earlier rounds, so the new array does not keep them.
            let owners = Buffer::filled(device, length, 0xff)?;
            std::mem::replace(&mut self.owners, owners).free(device)?;
            self.growths += 1;
            if ring(length) > self.queue.len() {
                let old = self.queue.download(device)?;
                let mask = old.len() - 1;
                let entries: Vec<u32> =
                    (0..self.waiting()).map(|i| old[self.head.wrapping_add(i) as usize & mask]).collect();
                let larger = padded(device, &entries, ring(length))?;
                std::mem::replace(&mut self.queue, larger).free(device)?;
                (self.head, self.tail) = (0, entries.len() as u32);
            }
        }
        Ok(())
    }

    pub(super) fn finish(self, device: &mut dyn Device) -> Result<Refined, DeviceError> {
        let mut points = self.points.download(device)?;
        points.truncate(self.points_used as usize);
        let triangles = self.triangles.download(device)?;
        let links = self.links.download(device)?;
        let used = self.triangles_used as usize;
        let refined = Refined::from_records(
            points.into_iter().map(unpack_point).collect(),
            &triangles[..used],
            &links[..used],
        );
        self.free(device)?;
        Ok(refined)
    }

    pub(super) fn free(self, device: &mut dyn Device) -> Result<(), DeviceError> {
        for records in [self.points, self.triangles, self.links, self.centres, self.metas] {
            records.free(device)?;
        }
        self.owners.free(device)?;
        let words = [
            self.acute,
            self.queue,
            self.states,
            self.scratch,
            self.warp_counts,
            self.block_counts,
            self.counters,
        ];
        words.into_iter().try_for_each(|words| words.free(device))
    }
}

/// Length of a ring for all entries before and after a round: each slot has at most one entry.
fn ring(triangles: usize) -> usize {
    (2 * triangles).next_power_of_two()
}

/// Length of an array with `used` elements that must take `more`: twice as long, within the limit.
fn capacity(what: &'static str, used: usize, more: usize, limit: u32) -> Result<usize, DmrError> {
    let limit = limit as usize;
    if used + more > limit {
        return Err(DmrError::TooLarge { what, found: (used + more) as u64, limit: limit as u64 });
    }
    Ok((2 * used).max(used + more).min(limit))
}

/// Replaces an array with a longer one that keeps the first `used` elements.
fn grow(
    device: &mut dyn Device,
    buffer: &mut Buffer<u128>,
    used: usize,
    length: usize,
) -> Result<(), DeviceError> {
    let kept = buffer.download(device)?;
    let larger = padded(device, &kept[..used], length)?;
    std::mem::replace(buffer, larger).free(device)
}
