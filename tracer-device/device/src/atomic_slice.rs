//! Arrays with atomic access only.

use core::marker::PhantomData;

use crate::{Global, Pod, atomic};

/// An array that all threads of a launch may read and write, for counters, queues and flags. Each access to
/// an element (`u32` or `u64`) is one relaxed atomic operation, which does not order writes to other
/// elements. Methods with an index panic if it is out of bounds.
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
    /// Creates a slice of an array.
    ///
    /// # Safety
    /// The array is valid for `'a` and aligned. During `'a`, it is accessed only by atomics.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn new(array: &'a Global<T>) -> Self {
        Self { array: *array, lifetime: PhantomData }
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
        /// Returns the previous value.
        #[inline(always)]
        #[track_caller]
        pub fn $name(&self, index: usize, value: $int) -> $int {
            // SAFETY: the element is inside the array, which is valid, aligned and accessed only by atomics.
            unsafe { atomic::$function(self.at(index), value) }
        }
    )*};
}

macro_rules! access {
    ($($int:ty: $load:ident, $store:ident, $compare_exchange:ident;)*) => {$(
        impl AtomicSlice<'_, $int> {
            /// Loads element `index`.
            #[inline(always)]
            #[track_caller]
            pub fn load(&self, index: usize) -> $int {
                // SAFETY: the element is inside the array, which is valid, aligned and accessed only by
                // atomics.
                unsafe { atomic::$load(self.at(index)) }
            }

            /// Stores to element `index`.
            #[inline(always)]
            #[track_caller]
            pub fn store(&self, index: usize, value: $int) {
                // SAFETY: see `load`.
                unsafe { atomic::$store(self.at(index), value) }
            }

            /// Stores `new` to element `index` if its value is `expected`. Returns the previous value.
            ///
            /// # Errors
            /// The current value, if it is not `expected`.
            #[inline(always)]
            #[track_caller]
            pub fn compare_exchange(&self, index: usize, expected: $int, new: $int) -> Result<$int, $int> {
                // SAFETY: see `load`.
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
        /// Adds `value` to element `index`. Wraps on overflow.
        fetch_add = add_u32;
        /// Stores the minimum of element `index` and `value`.
        fetch_min = min_u32;
        /// Stores the maximum of element `index` and `value`.
        fetch_max = max_u32;
        /// Sets the bits of `value` in element `index`.
        fetch_or = or_u32;
        /// Clears all bits of element `index` that are not set in `value`.
        fetch_and = and_u32;
        /// Stores `value` to element `index`.
        swap = exchange_u32;
    }
}

impl AtomicSlice<'_, u64> {
    operations! { u64:
        /// Adds `value` to element `index`. Wraps on overflow.
        fetch_add = add_u64;
        /// Stores the minimum of element `index` and `value`.
        fetch_min = min_u64;
        /// Stores `value` to element `index`.
        swap = exchange_u64;
    }
}
