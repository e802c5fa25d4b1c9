//! Host memory for values copied from a device.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::{AnyBitPattern, NoUninit};

/// Values copied from a device: in a vector, or in page-locked memory that the device fills without the help of
/// a core. Clearing or dropping it gives page-locked memory back to its device.
pub struct HostMemory<T> {
    vec: Vec<T>,
    locked: Option<Locked>,
    /// Values in page-locked memory; 0 without it. The vector is then empty.
    length: usize,
}

impl<T: AnyBitPattern + NoUninit> HostMemory<T> {
    /// Returns the values as a vector, which the caller may extend. Copies them from page-locked memory.
    pub fn vec(&mut self) -> &mut Vec<T> {
        if let Some(locked) = self.locked.take() {
            self.vec.extend_from_slice(&locked.values()[..std::mem::take(&mut self.length)]);
        }
        &mut self.vec
    }

    /// Appends `more` zeros to the vector, and returns them.
    pub(crate) fn append_zeros(&mut self, more: usize) -> &mut [T] {
        let vec = self.vec();
        let before = vec.len();
        vec.resize(before + more, T::zeroed());
        &mut vec[before..]
    }

    /// Removes all values. Keeps the vector's memory.
    pub fn clear(&mut self) {
        self.vec.clear();
        (self.locked, self.length) = (None, 0);
    }

    /// Appends `more` values in page-locked memory: returns them, to be overwritten. `take` returns page-locked
    /// memory of at least this many bytes, or `None`. Then nothing has changed.
    pub(crate) fn append_locked(
        &mut self,
        more: usize,
        take: impl FnOnce(usize) -> Option<Locked>,
    ) -> Option<&mut [T]> {
        let (before, after) = (self.len(), self.len() + more);
        if self.locked.as_mut().is_none_or(|locked| locked.values::<T>().len() < after) {
            // At least doubled, so that the values are not copied often.
            let mut larger = take(after.max(2 * before) * size_of::<T>())?;
            larger.values_mut()[..before].copy_from_slice(self);
            self.vec.clear();
            self.locked = Some(larger);
        }
        self.length = after;
        Some(&mut self.locked.as_mut()?.values_mut()[before..after])
    }
}

impl<T> Default for HostMemory<T> {
    fn default() -> Self {
        Self { vec: Vec::new(), locked: None, length: 0 }
    }
}

impl<T> From<Vec<T>> for HostMemory<T> {
    fn from(vec: Vec<T>) -> Self {
        Self { vec, ..Self::default() }
    }
}

impl<T: AnyBitPattern + NoUninit> Deref for HostMemory<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.locked.as_ref().map_or(&self.vec, |locked| &locked.values()[..self.length])
    }
}

impl<T: AnyBitPattern + NoUninit> DerefMut for HostMemory<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.locked {
            Some(locked) => &mut locked.values_mut()[..self.length],
            None => &mut self.vec,
        }
    }
}

impl<T> fmt::Debug for HostMemory<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_locked = self.locked.is_some();
        f.debug_struct("HostMemory").field("is_locked", &is_locked).finish_non_exhaustive()
    }
}

/// Page-locked memory of a device, initialized. Start and size are multiples of 4 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub(crate) start: NonNull<u8>,
    pub(crate) bytes: usize,
}

// SAFETY: any thread may access the memory; who has the block borrows it as a vector lends its values.
unsafe impl Send for Block {}
// SAFETY: see above.
unsafe impl Sync for Block {}

/// Blocks of a device that are not in use.
pub(crate) type Free = Arc<Mutex<Vec<Block>>>;

/// A block in use. Dropping it makes it free.
#[derive(Debug)]
pub(crate) struct Locked {
    block: Block,
    home: Free,
}

impl Locked {
    pub(crate) fn new(block: Block, home: &Free) -> Self {
        Self { block, home: Arc::clone(home) }
    }

    pub(crate) fn start(&self) -> *mut u8 {
        self.block.start.as_ptr()
    }

    fn values<T: AnyBitPattern>(&self) -> &[T] {
        let Block { start, bytes } = self.block;
        // SAFETY: the block's memory is initialized, and nothing writes it while the block is borrowed.
        let bytes = unsafe { std::slice::from_raw_parts(start.as_ptr(), bytes) };
        bytemuck::cast_slice(bytes)
    }

    fn values_mut<T: AnyBitPattern + NoUninit>(&mut self) -> &mut [T] {
        let Block { start, bytes } = self.block;
        // SAFETY: see above; the block is borrowed mutably.
        let bytes = unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), bytes) };
        bytemuck::cast_slice_mut(bytes)
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        self.home.lock().unwrap_or_else(PoisonError::into_inner).push(self.block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a function that takes blocks of exactly the requested bytes, at most `most`.
    fn takes(free: &Free, most: usize) -> impl Fn(usize) -> Option<Locked> {
        move |bytes| {
            let memory = vec![0xaa_aa_aa_aa_u32; bytes.div_ceil(4)].leak();
            let block = Block { start: NonNull::from(memory).cast(), bytes };
            (bytes <= most).then(|| Locked::new(block, free))
        }
    }

    #[test]
    fn values_are_the_same_in_both_kinds_of_memory() {
        let free = Free::default();
        let take = takes(&free, 32);
        let mut memory = HostMemory::<u32>::from(vec![1, 2]);
        memory.append_locked(2, &take).expect("16 bytes").copy_from_slice(&[3, 4]);
        assert_eq!(*memory, [1, 2, 3, 4]);
        memory.append_locked(2, &take).expect("a larger block").copy_from_slice(&[5, 6]);
        assert_eq!((free.lock().unwrap().len(), &*memory), (1, &[1, 2, 3, 4, 5, 6][..]));
        // Without a block, nothing changes, and the vector takes more.
        assert!(memory.append_locked(3, &take).is_none());
        assert_eq!(memory.len(), 6);
        memory.vec().push(7);
        assert_eq!((free.lock().unwrap().len(), &*memory), (2, &[1, 2, 3, 4, 5, 6, 7][..]));
        memory.clear();
        assert!(memory.is_empty());
        memory.append_locked(1, &take).expect("4 bytes")[0] = 9;
        memory[0] += 1;
        assert_eq!(*memory, [10]);
        drop(memory);
        assert_eq!(free.lock().unwrap().iter().map(|block| block.bytes).collect::<Vec<_>>(), [16, 32, 4]);
    }
}
