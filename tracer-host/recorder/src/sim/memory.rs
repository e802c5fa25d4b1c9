//! Device memory of the simulator: zeroed host memory.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};

use warptrace_format::file::LaunchInfo;
use warptrace_format::span::WarpSpan;

use crate::{AddressMap, Allocation, DeviceError, LiveMemory};

/// Alignment of allocations, as on a GPU.
const ALIGN: usize = 256;

/// Size of atomic accesses of lanes and host while a kernel runs, in bytes.
const WORD_BYTES: usize = size_of::<u64>();

#[derive(Debug, Default)]
pub(super) struct Memory {
    allocations: AddressMap<Arc<Block>>,
    /// Parts of another device's allocations, kept alive while shared.
    shared: AddressMap<Arc<Block>>,
    /// Allocated bytes, and their maximum so far.
    pub(super) allocated: u64,
    pub(super) peak: u64,
    /// Reads while a kernel runs that were not returned yet.
    reads: VecDeque<Vec<u64>>,
    answered: Vec<u64>,
    /// Multiprocessors of the running launch, and its start by the simulator's timer.
    pub(super) placing: (u32, u64),
}

/// An allocation. The allocator gets requests for larger blocks with a small alignment: for others it writes
/// zeros instead of providing zeroed pages, which takes seconds for a large pool that is hardly used.
#[derive(Debug)]
struct Block {
    length: usize,
    allocated: u64,
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.checked_add(ALIGN)?, size_of::<u64>()).ok()
}

impl Memory {
    pub(super) fn allocate(&mut self, bytes: u64) -> Result<Allocation, DeviceError> {
        let out_of_memory = |reason: &str| DeviceError::OutOfMemory { bytes, reason: reason.to_owned() };
        let length =
            usize::try_from(bytes.max(1)).map_err(|_| out_of_memory("larger than the address space"))?;
        let layout = layout(length).ok_or_else(|| out_of_memory("larger than the address space"))?;
        // SAFETY: the layout has a size of at least 1.
        let pointer = unsafe { alloc_zeroed(layout) };
        if pointer.is_null() {
            return Err(out_of_memory("the host has no more memory"));
        }
        let allocated = pointer.expose_provenance() as u64;
        let address = allocated.next_multiple_of(ALIGN as u64);
        self.allocations.insert(address, length as u64, Arc::new(Block { length, allocated }));
        self.allocated += bytes;
        self.peak = self.peak.max(self.allocated);
        Ok(Allocation { address, bytes })
    }

    pub(super) fn free(&mut self, allocation: Allocation) -> Result<(), DeviceError> {
        let Allocation { address, bytes } = allocation;
        self.allocations.remove(address).ok_or(DeviceError::OutOfBounds { address, bytes })?;
        self.allocated -= bytes;
        Ok(())
    }

    /// Returns a memory that shares a part of an allocation of this one.
    pub(super) fn sharing(&self, allocation: Allocation) -> Result<Self, DeviceError> {
        let Allocation { address, bytes } = allocation;
        let block = self.allocations.around(address, bytes);
        let block = block.ok_or(DeviceError::OutOfBounds { address, bytes })?;
        let mut sharing = Self::default();
        sharing.shared.insert(address, bytes, Arc::clone(block));
        Ok(sharing)
    }

    /// Returns a pointer to bytes that must be inside one allocation.
    pub(super) fn pointer(&self, address: u64, bytes: usize) -> Result<*mut u8, DeviceError> {
        let length = bytes as u64;
        let block = self.allocations.around(address, length).or_else(|| self.shared.around(address, length));
        block.ok_or(DeviceError::OutOfBounds { address, bytes: length })?;
        Ok(std::ptr::with_exposed_provenance_mut(address as usize))
    }

    /// Returns memory as words that lanes may write concurrently.
    fn words(&self, address: u64, bytes: usize) -> Result<&[AtomicU64], DeviceError> {
        let start = self.pointer(address, bytes)?;
        if !address.is_multiple_of(WORD_BYTES as u64) || !bytes.is_multiple_of(WORD_BYTES) {
            return Err(DeviceError::Unsupported {
                problem: format!(
                    "{bytes} bytes at {address:#x} cannot be copied while a kernel runs: address and length must be multiples of {WORD_BYTES}"
                ),
            });
        }
        // SAFETY: inside an allocation, which is aligned, initialized, and alive during this borrow. Lanes
        // access the memory used here only by atomics of this size.
        Ok(unsafe { std::slice::from_raw_parts(start.cast::<AtomicU64>(), bytes / WORD_BYTES) })
    }
}

impl LiveMemory for Memory {
    /// Copies immediately.
    fn start_read(&mut self, ranges: &[(u64, usize)]) -> Result<(), DeviceError> {
        let mut read = std::mem::take(&mut self.answered);
        read.clear();
        for &(address, bytes) in ranges {
            copy_words(address, self.words(address, bytes)?, &mut read);
        }
        self.reads.push_back(read);
        Ok(())
    }

    fn finish_read(&mut self) -> Result<&[u8], DeviceError> {
        self.answered = self.reads.pop_front().unwrap_or_default();
        Ok(bytemuck::cast_slice(&self.answered))
    }

    fn write_live(&mut self, address: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        store_words(self.words(address, bytes.len())?, bytes);
        Ok(())
    }

    fn place_spans(&self, launch: &LaunchInfo, spans: &mut [WarpSpan]) {
        let warps_per_block = launch.threads_per_block().div_ceil(32);
        let warp = |index: usize| launch.chosen().warp(index as u32, warps_per_block).unwrap_or_default();
        let (multiprocessors, start) = self.placing;
        warptrace_sim::place(spans, |index| warp(index) / warps_per_block, multiprocessors, start);
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let layout = layout(self.length).expect("it was allocated with this layout");
        // SAFETY: allocated in `allocate` with this layout, and nothing uses it any more.
        unsafe { dealloc(std::ptr::with_exposed_provenance_mut(self.allocated as usize), layout) };
    }
}

/// Copies words of memory. Lanes write the second word of an entry last, so if it is new, the first word is
/// new, too. If only the first word is new, the second word still has the tag of the old entry.
fn copy_words(address: u64, words: &[AtomicU64], to: &mut Vec<u64>) {
    let alone = usize::from(!address.is_multiple_of(2 * WORD_BYTES as u64)).min(words.len());
    let (alone, rest) = words.split_at(alone);
    let (pairs, last) = rest.as_chunks::<2>();
    to.extend(alone.iter().map(|word| word.load(Acquire)));
    to.extend(pairs.iter().flat_map(pair));
    to.extend(last.iter().map(|word| word.load(Acquire)));
}

/// Reads the words of an entry: the first word is read while the second one does not change.
fn pair([first, second]: &[AtomicU64; 2]) -> [u64; 2] {
    loop {
        let before = second.load(Acquire);
        let words = [first.load(Acquire), second.load(Acquire)];
        if words[1] == before {
            return words;
        }
    }
}

/// Stores bytes as words, in order.
fn store_words(words: &[AtomicU64], bytes: &[u8]) {
    let (new, _) = bytes.as_chunks::<WORD_BYTES>();
    for (word, &new) in words.iter().zip(new) {
        word.store(u64::from_ne_bytes(new), Release);
    }
}
