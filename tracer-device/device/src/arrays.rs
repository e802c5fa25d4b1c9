//! Arguments of kernels that safe code can use: slices that are read, and arrays of which each thread writes
//! its own element.

use core::marker::PhantomData;

use crate::{Global, Pod};

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

/// The number of a block in its grid, which only the first thread of the block has.
#[derive(Debug)]
pub struct BlockIndex {
    index: u64,
    /// Stays with its thread.
    own: PhantomData<*mut ()>,
}

impl BlockIndex {
    /// The number, from 0: x fastest, then y, then z.
    #[inline(always)]
    pub fn get(&self) -> u64 {
        self.index
    }
}

/// Who has an element of a [`DisjointSlice`] for itself: a thread ([`ThreadIndex`]), or a block
/// ([`BlockIndex`]), whose first thread writes it.
pub trait Owner: sealed::Number {}
impl Owner for ThreadIndex {}
impl Owner for BlockIndex {}

mod sealed {
    /// A number that no two threads of a launch have.
    pub trait Number: Sized {
        /// Whether each thread has one.
        const IS_OF_THREAD: bool;

        fn number(&self) -> u64;

        /// The number of the thread that asks.
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

/// Numbers of threads and blocks.
pub mod thread {
    use core::marker::PhantomData;

    use super::{BlockIndex, ThreadIndex};
    use crate::simt;

    /// Returns this thread's number in the grid, whatever the dimensions of grid and block.
    #[inline(always)]
    pub fn index() -> ThreadIndex {
        // Threads past 2^64 share the last number, which no array reaches.
        let first = block().saturating_mul(u64::from(simt::block_threads()));
        ThreadIndex { index: first.saturating_add(u64::from(simt::linear_thread())), own: PhantomData }
    }

    /// Returns the number of this thread's block if the thread is the first of it, and `None` in the others.
    #[inline(always)]
    pub fn block_leader() -> Option<BlockIndex> {
        (simt::linear_thread() == 0).then(|| BlockIndex { index: block(), own: PhantomData })
    }

    /// Returns how many threads the grid has; `u64::MAX` if they are more.
    #[inline(always)]
    pub fn count() -> u64 {
        let [width, height, depth] = simt::grid_size().map(u64::from);
        (width * height).saturating_mul(depth).saturating_mul(u64::from(simt::block_threads()))
    }

    /// The block's number in the grid.
    #[inline(always)]
    fn block() -> u64 {
        let ([x, y, z], [width, height, _]) = (simt::block_idx(), simt::grid_size());
        let rows = u64::from(z) * u64::from(height) + u64::from(y);
        rows.saturating_mul(u64::from(width)).saturating_add(u64::from(x))
    }
}

/// An array that a kernel writes, one element a thread: the argument for results.
/// `DisjointSlice<T, BlockIndex>` has one element a block.
///
/// Safe, because no two threads can name the same element, and because a launch refuses a call whose written
/// arrays overlap others. It lives as long as its thread, and so does what it hands out.
#[derive(Debug)]
pub struct DisjointSlice<'a, T, By = ThreadIndex> {
    array: Global<T>,
    owners: PhantomData<fn(By)>,
    lifetime: PhantomData<&'a mut T>,
}

impl<'a, T: Pod, By: Owner> DisjointSlice<'a, T, By> {
    /// Whether each element is a thread's.
    #[doc(hidden)]
    pub const IS_BY_THREAD: bool = By::IS_OF_THREAD;

    /// Makes one of an array.
    ///
    /// # Safety
    /// The array is valid for `'a`, and is reached meanwhile by the other threads' `DisjointSlice` of the
    /// same launch only.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn new(array: &'a Global<T>) -> Self {
        Self { array: *array, owners: PhantomData, lifetime: PhantomData }
    }

    /// Returns the owner's element and its index, or `None` if there are fewer elements than owners before:
    /// of `thread::index()`, or of `thread::block_leader()`.
    ///
    /// # Panics
    /// If the number is another thread's. On the GPU no thread can have it; on the simulator a variable of
    /// the host's thread, which runs many lanes, could hand it over.
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
        // SAFETY: below the length; the number is the owner's own, all owners of an array are of one kind,
        // and `self` is used up, so that it is asked for once.
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
/// The array is valid for `'a`, and nothing writes it meanwhile.
#[doc(hidden)]
#[inline(always)]
pub unsafe fn slice<T: Pod>(array: &Global<T>) -> &[T] {
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
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no array of `{T}` in a device's memory",
    label = "not a `Buffer<{T}>`",
    note = "`device.upload(&values)?` copies a slice to the device, `device.zeros::<{T}>(length)?` makes an array there"
)]
pub unsafe trait DeviceArray<T> {
    /// The array as the device takes it.
    fn global(&self) -> Global<T>;
}
