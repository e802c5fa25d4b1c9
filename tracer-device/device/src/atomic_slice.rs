//! Arrays that threads reach by atomics only.

use core::marker::PhantomData;

use crate::{Global, Pod, atomic};

/// An array that all threads of a launch may read and write, each element by one atomic operation at a time:
/// the argument for counters, queues and marks.
///
/// `T` is `u32` or `u64`. Operations are relaxed: they say nothing about the order in which others see writes
/// to other elements. An index past the end is a panic, as of a slice.
#[derive(Debug)]
pub struct AtomicSlice<'a, T> {
    array: Global<T>,
    lifetime: PhantomData<&'a T>,
}

impl<T> Clone for AtomicSlice<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for AtomicSlice<'_, T> {}

impl<'a, T: Pod> AtomicSlice<'a, T> {
    /// Makes one of an array.
    ///
    /// # Safety
    /// The array is valid for `'a`, aligned, and reached by atomics only meanwhile.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn new(array: &'a Global<T>) -> Self {
        Self { array: *array, lifetime: PhantomData }
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

    /// Address of an element.
    #[inline(always)]
    #[track_caller]
    fn at(&self, index: usize) -> *mut T {
        assert!(
            (index as u64) < self.array.len(),
            "index out of bounds: the length is {} but the index is {index}",
            self.array.len()
        );
        self.array.at(index as u64)
    }
}

macro_rules! operations {
    ($int:ty: $($(#[$doc:meta])* $name:ident = $function:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// Returns the value before.
        ///
        /// # Panics
        /// If the array has no such element.
        #[inline(always)]
        #[track_caller]
        pub fn $name(&self, index: usize, value: $int) -> $int {
            // SAFETY: inside the array, which is valid, aligned and reached by atomics only.
            unsafe { atomic::$function(self.at(index), value) }
        }
    )*};
}

macro_rules! access {
    ($($int:ty: $load:ident, $store:ident, $compare_exchange:ident;)*) => {$(
        impl AtomicSlice<'_, $int> {
            /// Reads element `index`.
            ///
            /// # Panics
            /// If the array has no such element.
            #[inline(always)]
            #[track_caller]
            pub fn load(&self, index: usize) -> $int {
                // SAFETY: inside the array, which is valid, aligned and reached by atomics only.
                unsafe { atomic::$load(self.at(index)) }
            }

            /// Writes element `index`.
            ///
            /// # Panics
            /// If the array has no such element.
            #[inline(always)]
            #[track_caller]
            pub fn store(&self, index: usize, value: $int) {
                // SAFETY: as in `load`.
                unsafe { atomic::$store(self.at(index), value) }
            }

            /// Writes `new` to element `index` if `expected` stands there.
            ///
            /// # Errors
            /// The value that stands there, if it is another.
            ///
            /// # Panics
            /// If the array has no such element.
            #[inline(always)]
            #[track_caller]
            pub fn compare_exchange(&self, index: usize, expected: $int, new: $int) -> Result<$int, $int> {
                // SAFETY: as in `load`.
                let before = unsafe { atomic::$compare_exchange(self.at(index), expected, new) };
                if before == expected { Ok(before) } else { Err(before) }
            }
        }
    )*};
}

access! {
    u32: load_u32, store_u32, compare_exchange_u32;
    u64: load_u64, store_u64, compare_exchange_u64;
}

impl AtomicSlice<'_, u32> {
    operations! { u32:
        /// Adds to element `index`; wraps around.
        fetch_add = add_u32;
        /// Keeps the smaller of element `index` and `value`.
        fetch_min = min_u32;
        /// Keeps the larger of element `index` and `value`.
        fetch_max = max_u32;
        /// Sets the bits of `value` in element `index`.
        fetch_or = or_u32;
        /// Keeps those bits of element `index` that `value` has.
        fetch_and = and_u32;
        /// Replaces element `index`.
        swap = exchange_u32;
    }
}

impl AtomicSlice<'_, u64> {
    operations! { u64:
        /// Adds to element `index`; wraps around.
        fetch_add = add_u64;
        /// Keeps the smaller of element `index` and `value`.
        fetch_min = min_u64;
        /// Replaces element `index`.
        swap = exchange_u64;
    }
}
