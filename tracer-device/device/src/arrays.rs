//! Kernel arguments for safe code: slices to read, and arrays in which each thread writes its own element.

use core::marker::PhantomData;

use crate::{Global, Pod};

/// The index of a thread in its grid. A thread can create only its own index.
#[derive(Debug)]
pub struct ThreadIndex {
    index: u64,
    /// Prevents a transfer to another thread.
    own: PhantomData<*mut ()>,
}

impl ThreadIndex {
    /// Returns the index, from 0. It counts block by block, and within a block x first, then y, then z.
    #[inline(always)]
    pub fn get(&self) -> u64 {
        self.index
    }
}

/// The index of a block in its grid. Only the first thread of the block can create it.
#[derive(Debug)]
pub struct BlockIndex {
    index: u64,
    own: PhantomData<*mut ()>,
}

impl BlockIndex {
    /// Returns the index, from 0. It counts x first, then y, then z.
    #[inline(always)]
    pub fn get(&self) -> u64 {
        self.index
    }
}

/// The owner of an element of a [`DisjointSlice`]: a thread, or a block, whose first thread writes it.
pub trait Owner: sealed::Number {}
impl Owner for ThreadIndex {}
impl Owner for BlockIndex {}

mod sealed {
    /// An index that is unique among the threads of a launch.
    pub trait Number: Sized {
        /// Whether every thread has one.
        const IS_OF_THREAD: bool;

        fn number(&self) -> u64;

        /// Returns the index of the calling thread.
        #[cfg(not(target_arch = "nvptx64"))]
        fn current() -> Option<Self>;
    }

    impl Number for super::ThreadIndex {
        const IS_OF_THREAD: bool = true;

        #[inline(always)]
        fn number(&self) -> u64 {
            self.index
        }

        #[cfg(not(target_arch = "nvptx64"))]
        fn current() -> Option<Self> {
            Some(super::thread::index())
        }
    }

    impl Number for super::BlockIndex {
        const IS_OF_THREAD: bool = false;

        #[inline(always)]
        fn number(&self) -> u64 {
            self.index
        }

        #[cfg(not(target_arch = "nvptx64"))]
        fn current() -> Option<Self> {
            super::thread::block_leader()
        }
    }
}

/// Indices of threads and blocks.
pub mod thread {
    use core::marker::PhantomData;

    use super::{BlockIndex, ThreadIndex};
    use crate::simt;

    /// Returns this thread's index in the grid, for grids and blocks of any dimension.
    #[inline(always)]
    pub fn index() -> ThreadIndex {
        // Threads past 2^64 share the last index, which no array reaches.
        let first = block().saturating_mul(u64::from(simt::block_threads()));
        ThreadIndex { index: first.saturating_add(u64::from(simt::linear_thread())), own: PhantomData }
    }

    /// Returns the index of this thread's block in the first thread of the block, and `None` in all others.
    #[inline(always)]
    pub fn block_leader() -> Option<BlockIndex> {
        (simt::linear_thread() == 0).then(|| BlockIndex { index: block(), own: PhantomData })
    }

    /// Returns the number of threads in the grid, at most `u64::MAX`.
    #[inline(always)]
    pub fn count() -> u64 {
        let [width, height, depth] = simt::grid_size().map(u64::from);
        (width * height).saturating_mul(depth).saturating_mul(u64::from(simt::block_threads()))
    }

    #[inline(always)]
    fn block() -> u64 {
        let ([x, y, z], [width, height, _]) = (simt::block_idx(), simt::grid_size());
        let rows = u64::from(z) * u64::from(height) + u64::from(y);
        rows.saturating_mul(u64::from(width)).saturating_add(u64::from(x))
    }
}

/// An array for results, one element per thread. `DisjointSlice<T, BlockIndex>` has one element per block.
///
/// It is safe: no two threads can refer to the same element, and a launch refuses calls whose written arrays
/// overlap others. It and the references from it live as long as its thread.
#[derive(Debug)]
pub struct DisjointSlice<'a, T, By = ThreadIndex> {
    array: Global<T>,
    owners: PhantomData<fn(By)>,
    lifetime: PhantomData<&'a mut T>,
}

impl<'a, T: Pod, By: Owner> DisjointSlice<'a, T, By> {
    /// True if elements belong to threads, false if they belong to blocks.
    #[doc(hidden)]
    pub const IS_BY_THREAD: bool = By::IS_OF_THREAD;

    /// Creates a slice of an array.
    ///
    /// # Safety
    /// The array is valid for `'a`. During `'a`, only `DisjointSlice`s of the launch's threads access it.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn new(array: &'a Global<T>) -> Self {
        Self { array: *array, owners: PhantomData, lifetime: PhantomData }
    }

    /// Returns the owner's element and its index, or `None` if the array is too short.
    ///
    /// # Panics
    /// If the index belongs to another thread. This is possible only on the simulator, where one host thread
    /// runs many lanes.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn own(self, owner: By) -> Option<(usize, &'a mut T)> {
        let index = owner.number();
        #[cfg(not(target_arch = "nvptx64"))]
        assert!(
            By::current().is_some_and(|own| own.number() == index),
            "{index} is the number of another thread"
        );
        if index >= self.array.len() {
            return None;
        }
        // SAFETY: the index is below the length. The index belongs to this owner only: all owners of an array
        // are of one kind (threads or blocks), so no two have the same number. `self` is consumed, so the
        // element is returned once.
        Some((index as usize, unsafe { &mut *self.array.at(index) }))
    }

    /// Returns the number of elements.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.array.len() as usize
    }

    /// Returns true if the array has no elements.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.array.is_empty()
    }
}

/// Creates a slice of an array.
///
/// # Safety
/// The array is valid, and nothing writes it, while the slice exists.
#[doc(hidden)]
#[inline(always)]
pub unsafe fn slice<T: Pod>(array: &Global<T>) -> &[T] {
    if array.is_empty() {
        return &[];
    }
    // SAFETY: guaranteed by the caller.
    unsafe { core::slice::from_raw_parts(array.at(0), array.len() as usize) }
}

/// An array in device memory, as an argument for kernels.
///
/// # Safety
/// While the device has that memory, [`global`](Self::global) refers to valid values of type `T`.
#[cfg(not(target_arch = "nvptx64"))]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no array of `{T}` in a device's memory",
    label = "not a `Buffer<{T}>`",
    note = "`device.upload(&values)?` copies a slice to the device, `device.zeros::<{T}>(length)?` makes an array there"
)]
pub unsafe trait DeviceArray<T> {
    /// Returns the array as the device receives it.
    fn global(&self) -> Global<T>;
}
