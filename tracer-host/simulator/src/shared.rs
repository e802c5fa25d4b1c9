//! A block's shared memory.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Initial content of shared memory. On a GPU, it contains the data of earlier blocks.
pub(crate) const POISON: u8 = 0xa5;
const ALIGNMENT: usize = 16;

/// Shared memory of one resident block. Reuses its allocations for the next block.
#[derive(Default)]
pub(crate) struct SharedMemory {
    statics: Vec<Static>,
    dynamic: Option<Region>,
}

struct Static {
    key: usize,
    region: Region,
    used: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SharedError {
    SizeChanged { before: usize, now: usize },
    TooMuch { total: usize },
}

impl SharedMemory {
    pub(crate) fn start_block(&mut self, dynamic_bytes: usize) {
        for entry in &mut self.statics {
            entry.used = false;
        }
        if self.dynamic.as_ref().is_none_or(|region| region.bytes != dynamic_bytes) {
            self.dynamic = Some(Region::new(dynamic_bytes));
        }
        if let Some(region) = &self.dynamic {
            region.poison();
        }
    }

    /// Returns the block's memory for the static named by `key`.
    pub(crate) fn fixed(&mut self, key: usize, bytes: usize, limit: usize) -> Result<*mut u8, SharedError> {
        if let Some(entry) = self.statics.iter().find(|entry| entry.key == key && entry.used) {
            if entry.region.bytes != bytes {
                return Err(SharedError::SizeChanged { before: entry.region.bytes, now: bytes });
            }
            return Ok(entry.region.start());
        }
        let used: usize =
            self.statics.iter().filter(|entry| entry.used).map(|entry| entry.region.bytes).sum();
        let total = used.saturating_add(bytes).saturating_add(self.dynamic().1);
        if total > limit {
            return Err(SharedError::TooMuch { total });
        }
        let at = match self.statics.iter().position(|entry| entry.key == key) {
            Some(at) => at,
            None => {
                self.statics.push(Static { key, region: Region::new(bytes), used: false });
                self.statics.len() - 1
            }
        };
        let entry = &mut self.statics[at];
        if entry.region.bytes != bytes {
            entry.region = Region::new(bytes);
        }
        entry.used = true;
        entry.region.poison();
        Ok(entry.region.start())
    }

    pub(crate) fn dynamic(&self) -> (*mut u8, usize) {
        self.dynamic
            .as_ref()
            .map_or((NonNull::dangling().as_ptr(), 0), |region| (region.start(), region.bytes))
    }
}

/// A 16-byte aligned allocation that kernels access through raw pointers.
struct Region {
    start: NonNull<u8>,
    bytes: usize,
}

impl Region {
    fn layout(bytes: usize) -> Layout {
        Layout::from_size_align(bytes.max(1), ALIGNMENT).expect("shared memory is far below isize::MAX")
    }

    fn new(bytes: usize) -> Self {
        let layout = Self::layout(bytes);
        // SAFETY: the layout's size is not zero.
        let Some(start) = NonNull::new(unsafe { alloc(layout) }) else { handle_alloc_error(layout) };
        let region = Self { start, bytes };
        region.poison();
        region
    }

    fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    fn poison(&self) {
        // SAFETY: the region is `bytes` long and has no references. No running block has requested it.
        unsafe { self.start.as_ptr().write_bytes(POISON, self.bytes) };
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout.
        unsafe { dealloc(self.start.as_ptr(), Self::layout(self.bytes)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(start: *mut u8, length: usize) -> Vec<u8> {
        // SAFETY: the tests pass regions from `SharedMemory` and hold no other reference.
        unsafe { std::slice::from_raw_parts(start, length) }.to_vec()
    }

    #[test]
    fn a_block_finds_poison_and_each_key_has_memory_of_its_own() {
        let mut shared = SharedMemory::default();
        shared.start_block(8);
        let first = shared.fixed(1, 20, 1000).unwrap();
        let second = shared.fixed(2, 16, 1000).unwrap();
        assert_ne!(first, second);
        assert!(first.addr().is_multiple_of(16) && second.addr().is_multiple_of(16));
        assert_eq!(bytes(first, 20), [POISON; 20]);
        let (dynamic, length) = shared.dynamic();
        assert_eq!(bytes(dynamic, length), [POISON; 8]);
        // SAFETY: inside the regions.
        unsafe {
            first.write(1);
            dynamic.write(2);
        }
        assert_eq!(shared.fixed(1, 20, 1000).unwrap(), first);
        assert_eq!(bytes(first, 1), [1], "asking again does not clear");
        shared.start_block(8);
        let again = shared.fixed(1, 20, 1000).unwrap();
        assert_eq!(bytes(again, 20), [POISON; 20]);
        assert_eq!(bytes(shared.dynamic().0, 8), [POISON; 8]);
    }

    #[test]
    fn sizes_and_the_total_are_checked() {
        let mut shared = SharedMemory::default();
        shared.start_block(10);
        shared.fixed(1, 20, 100).unwrap();
        assert_eq!(shared.fixed(1, 21, 100), Err(SharedError::SizeChanged { before: 20, now: 21 }));
        assert_eq!(shared.fixed(2, 71, 100), Err(SharedError::TooMuch { total: 101 }));
        shared.start_block(0);
        shared.fixed(1, 21, 100).unwrap();
    }
}
