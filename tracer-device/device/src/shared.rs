//! Arrays in block shared memory.

use core::marker::PhantomData;

use crate::Pod;

/// Declares arrays in block shared memory, each as a function that returns it.
///
/// Each block has its own copy, with arbitrary initial content. The name is a symbol of the compiled module,
/// so it is unique within a module. A crate that declares arrays enables `asm_experimental_arch` for
/// `nvptx64`. Only kernels that call the function use the memory.
///
/// ```
/// use warptrace_device::{shared_arrays, simt};
///
/// shared_arrays! {
///     /// A word for each thread of a block.
///     fn neighbours() -> [u32; 1024];
/// }
///
/// /// Passes each thread's number to the previous thread.
/// fn pass_on() -> u32 {
///     let thread = simt::linear_thread();
///     // SAFETY: below the length. Each thread writes its own word, and reads after the barrier, which all
///     // threads reach.
///     unsafe {
///         neighbours().set(thread, thread);
///         simt::sync_threads();
///         neighbours().get((thread + 1) % simt::block_threads())
///     }
/// }
/// ```
#[macro_export]
macro_rules! shared_arrays {
    ($($(#[$doc:meta])* $vis:vis fn $name:ident() -> [$type:ty; $len:expr];)+) => {$(
        #[cfg(target_arch = "nvptx64")]
        core::arch::global_asm!(
            concat!(".shared .align 16 .b8 block_shared_", stringify!($name), "[{}];"),
            const $len as usize * size_of::<$type>()
        );

        $(#[$doc])*
        #[inline(always)]
        #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
        $vis fn $name() -> $crate::Shared<$type> {
            #[cfg(target_arch = "nvptx64")]
            {
                let address: u32;
                // SAFETY: reads the address of an array that the module declares.
                unsafe {
                    core::arch::asm!(concat!("mov.u32 {}, block_shared_", stringify!($name), ";"),
                        out(reg32) address, options(pure, nomem, nostack, preserves_flags));
                }
                $crate::Shared::new(address, $len)
            }
            #[cfg(not(target_arch = "nvptx64"))]
            {
                static KEY: u8 = 0;
                $crate::Shared::new(&raw const KEY as usize, $len)
            }
        }
    )+};
}

/// An array of `T` in block shared memory, declared by [`shared_arrays!`](crate::shared_arrays!). Elements
/// have 4 or 16 bytes. Accesses are not checked on the GPU. On the simulator, an index past the end stops the
/// launch with an error that names block, warp, lane and line.
#[derive(Debug)]
pub struct Shared<T> {
    #[cfg(target_arch = "nvptx64")]
    address: u32,
    #[cfg(not(target_arch = "nvptx64"))]
    address: *mut u8,
    len: u32,
    element: PhantomData<*mut T>,
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Shared<T> {}

impl<T: Pod> Shared<T> {
    /// Creates an array of `len` elements at `address` in the shared window.
    #[cfg(target_arch = "nvptx64")]
    #[doc(hidden)]
    #[inline(always)]
    pub fn new(address: u32, len: u32) -> Self {
        const { assert!(size_of::<T>() == 4 || size_of::<T>() == 16, "elements have 4 or 16 bytes") };
        Self { address, len, element: PhantomData }
    }

    /// Returns the block's array of `len` elements with the key `key`.
    #[cfg(not(target_arch = "nvptx64"))]
    #[doc(hidden)]
    #[track_caller]
    pub fn new(key: usize, len: u32) -> Self {
        const { assert!(size_of::<T>() == 4 || size_of::<T>() == 16, "elements have 4 or 16 bytes") };
        let bytes = len as usize * size_of::<T>();
        let address = crate::simt::host::with_lane(|lane| lane.shared(key, bytes));
        Self { address, len, element: PhantomData }
    }

    /// Reinterprets the array with another element type. Excludes bytes of an incomplete last element.
    #[inline(always)]
    pub fn cast<U: Pod>(self) -> Shared<U> {
        const { assert!(size_of::<U>() == 4 || size_of::<U>() == 16, "elements have 4 or 16 bytes") };
        let bytes = self.len as usize * size_of::<T>();
        Shared { address: self.address, len: (bytes / size_of::<U>()) as u32, element: PhantomData }
    }

    #[cfg(target_arch = "nvptx64")]
    #[inline(always)]
    fn at(self, index: u32) -> u32 {
        self.address.wrapping_add(index.wrapping_mul(size_of::<T>() as u32))
    }

    #[cfg(not(target_arch = "nvptx64"))]
    #[track_caller]
    fn at(self, index: u32) -> *mut T {
        if index >= self.len {
            let site = core::panic::Location::caller();
            let message = format!("index {index} is outside a shared array of {} elements", self.len);
            crate::simt::host::with_lane(|lane| lane.fail(&message, site));
        }
        // Aligned: the simulator aligns arrays to 16 bytes, and elements have 4 or 16 bytes.
        self.address.wrapping_add(index as usize * size_of::<T>()).cast()
    }

    /// Reads element `index`.
    ///
    /// # Safety
    /// `index` is in bounds, the element was written with a valid `T`, and nothing writes it meanwhile.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn get(self, index: u32) -> T {
        #[cfg(target_arch = "nvptx64")]
        // SAFETY: guaranteed by the caller. Each arm reads exactly the bytes of `T`.
        unsafe {
            if size_of::<T>() == 16 {
                let (a, b, c, d): (u32, u32, u32, u32);
                core::arch::asm!("ld.shared.v4.u32 {{{}, {}, {}, {}}}, [{}];", out(reg32) a, out(reg32) b,
                    out(reg32) c, out(reg32) d, in(reg32) self.at(index),
                    options(pure, readonly, nostack, preserves_flags));
                core::mem::transmute_copy(&[a, b, c, d])
            } else {
                let value: u32;
                core::arch::asm!("ld.shared.u32 {}, [{}];", out(reg32) value, in(reg32) self.at(index),
                    options(pure, readonly, nostack, preserves_flags));
                core::mem::transmute_copy(&value)
            }
        }
        #[cfg(not(target_arch = "nvptx64"))]
        // SAFETY: guaranteed by the caller, and the index was checked.
        unsafe {
            self.at(index).read()
        }
    }

    /// Writes element `index`.
    ///
    /// # Safety
    /// `index` is below the length, and nothing else accesses the element meanwhile.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn set(self, index: u32, value: T) {
        #[cfg(target_arch = "nvptx64")]
        // SAFETY: guaranteed by the caller. Each arm writes exactly the bytes of `T`.
        unsafe {
            if size_of::<T>() == 16 {
                let value: [u32; 4] = core::mem::transmute_copy(&value);
                core::arch::asm!("st.shared.v4.u32 [{}], {{{}, {}, {}, {}}};", in(reg32) self.at(index),
                    in(reg32) value[0], in(reg32) value[1], in(reg32) value[2], in(reg32) value[3],
                    options(nostack, preserves_flags));
            } else {
                let value: u32 = core::mem::transmute_copy(&value);
                core::arch::asm!("st.shared.u32 [{}], {};", in(reg32) self.at(index), in(reg32) value,
                    options(nostack, preserves_flags));
            }
        }
        #[cfg(not(target_arch = "nvptx64"))]
        // SAFETY: guaranteed by the caller, and the index was checked.
        unsafe {
            self.at(index).write(value);
        }
    }
}

impl Shared<u32> {
    /// Adds to element `index` with a block-scope atomic. Returns the previous value.
    ///
    /// # Safety
    /// `index` is below the length. Only atomics access the element while other threads may write it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn fetch_add(self, index: u32, value: u32) -> u32 {
        #[cfg(target_arch = "nvptx64")]
        {
            let before: u32;
            // SAFETY: guaranteed by the caller.
            unsafe {
                core::arch::asm!("atom.shared.add.u32 {}, [{}], {};", out(reg32) before,
                    in(reg32) self.at(index), in(reg32) value, options(nostack, preserves_flags));
            }
            before
        }
        #[cfg(not(target_arch = "nvptx64"))]
        {
            // The lanes of a simulated block run in turn on one thread.
            let at = self.at(index);
            // SAFETY: guaranteed by the caller, and the index was checked.
            unsafe {
                let before = at.read();
                at.write(before.wrapping_add(value));
                before
            }
        }
    }
}
