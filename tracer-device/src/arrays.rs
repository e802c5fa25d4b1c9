//! Arguments of kernels that safe code can use: slices that are read, and arrays of which each thread writes
//! its own element.

use core::marker::PhantomData;

use crate::Global;

/// The number of a thread in its grid. Each thread can make its own, and no other.
#[derive(Debug)]
pub struct ThreadIndex {
    index: u64,
    /// Stays with its thread.
    own: PhantomData<*mut ()>,
}

impl ThreadIndex {
    /// The number, from 0: block by block, in a block x fastest, then y, then z.
    #[inline(always)]
    pub fn get(&self) -> u64 {
        self.index
    }
}

/// Numbers of threads.
pub mod thread {
    use core::marker::PhantomData;

    use super::ThreadIndex;
    use crate::simt;

    /// Answers this thread's number in the grid, whatever the dimensions of grid and block.
    #[inline(always)]
    pub fn index() -> ThreadIndex {
        let ([x, y, z], [width, height, _]) = (simt::block_idx(), simt::grid_size());
        let rows = u64::from(z) * u64::from(height) + u64::from(y);
        let block = rows.saturating_mul(u64::from(width)).saturating_add(u64::from(x));
        // Threads past 2^64 share the last number, which no array reaches.
        let first = block.saturating_mul(u64::from(simt::block_threads()));
        ThreadIndex { index: first.saturating_add(u64::from(simt::linear_thread())), own: PhantomData }
    }
}

/// An array that a kernel writes, one element a thread: the argument for results.
///
/// Safe, because no two threads can name the same element, and because a launch refuses a call whose written
/// arrays overlap others.
#[derive(Debug)]
pub struct DisjointSlice<'a, T> {
    array: Global<T>,
    lifetime: PhantomData<&'a mut T>,
}

impl<'a, T: Copy> DisjointSlice<'a, T> {
    /// Makes one of an array.
    ///
    /// # Safety
    /// The array is valid for `'a`, and nobody reaches it meanwhile but by the other threads' `DisjointSlice`
    /// of the same launch.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn new(array: Global<T>) -> Self {
        Self { array, lifetime: PhantomData }
    }

    /// Answers the thread's element and its index, or `None` if there are fewer elements than threads before.
    #[inline(always)]
    pub fn own(self, thread: ThreadIndex) -> Option<(usize, &'a mut T)> {
        let index = thread.index;
        if index >= self.array.len() {
            return None;
        }
        // SAFETY: below the length; the thread's number is its own, and `self` is used up, so that it is asked
        // for once.
        Some((index as usize, unsafe { &mut *self.array.at(index) }))
    }

    /// Number of elements.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.array.len() as usize
    }

    /// Whether there are none.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.array.is_empty()
    }
}

/// Makes a slice of an array.
///
/// # Safety
/// The array is valid for `'a`, and nobody writes it meanwhile.
#[doc(hidden)]
#[inline(always)]
pub unsafe fn slice<T: Copy>(array: &Global<T>) -> &[T] {
    if array.is_empty() {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { core::slice::from_raw_parts(array.at(0), array.len() as usize) }
}

/// An array in a device's memory that kernels may be given.
///
/// # Safety
/// As long as its device has memory there, [`global`](Self::global) names elements of type `T` that are valid
/// values.
#[cfg(not(target_arch = "nvptx64"))]
pub unsafe trait DeviceArray<T> {
    /// The array as the device takes it.
    fn global(&self) -> Global<T>;
}
