//! Arrays in global memory.

use core::marker::PhantomData;

use crate::Pod;

/// An array of `T` in global memory, as a kernel's argument. A `#[repr(C)]` pair of device address and
/// element count, 8 bytes each. Accesses are not checked on the GPU. On the simulator, an index past the end
/// stops the launch with an error that names lane and line.
#[repr(C)]
pub struct Global<T> {
    address: u64,
    len: u64,
    element: PhantomData<*mut T>,
}

impl<T> Clone for Global<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Global<T> {}

impl<T> core::fmt::Debug for Global<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Global({:#x}, {} elements)", self.address, self.len)
    }
}

// SAFETY: an address and a count. Element accesses are unsafe, and their callers exclude races.
unsafe impl<T: Send> Send for Global<T> {}
// SAFETY: see `Send`.
unsafe impl<T: Send> Sync for Global<T> {}

impl<T: Pod> Global<T> {
    /// Creates an array of `len` elements at the device address `address`. The callers of the access
    /// functions guarantee that the memory exists.
    #[inline(always)]
    pub const fn new(address: u64, len: u64) -> Self {
        Self { address, len, element: PhantomData }
    }

    /// Creates an array without elements.
    #[inline(always)]
    pub const fn empty() -> Self {
        Self::new(0, 0)
    }

    /// Returns the number of elements.
    #[inline(always)]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Returns true if the array has no elements.
    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the address of element `index`, for the functions of [`atomic`](crate::atomic).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn at(&self, index: u64) -> *mut T {
        #[cfg(not(target_arch = "nvptx64"))]
        if index >= self.len {
            let site = core::panic::Location::caller();
            let message = format!("index {index} is outside an array of {} elements", self.len);
            crate::simt::host::with_lane(|lane| lane.fail(&message, site));
        }
        core::ptr::with_exposed_provenance_mut((self.address + index * size_of::<T>() as u64) as usize)
    }

    /// Reads element `index`.
    ///
    /// # Safety
    /// The array is valid for the launch, `index` is in bounds, and nothing writes the element meanwhile.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn get(&self, index: u64) -> T {
        // SAFETY: guaranteed by the caller.
        unsafe { access::read(self.at(index)) }
    }

    /// Writes element `index`.
    ///
    /// # Safety
    /// The array is valid for the launch, `index` is in bounds, and nothing else accesses the element.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn set(&self, index: u64, value: T) {
        // SAFETY: guaranteed by the caller.
        unsafe { access::write(self.at(index), value) }
    }
}

/// Plain accesses on the host. On the GPU, accesses with the global address space: from a plain pointer, LLVM
/// would generate generic accesses, which are slower.
mod access {
    #[cfg(not(target_arch = "nvptx64"))]
    pub(super) unsafe fn read<T: Copy>(from: *const T) -> T {
        // SAFETY: guaranteed by the caller.
        unsafe { from.read() }
    }

    #[cfg(not(target_arch = "nvptx64"))]
    pub(super) unsafe fn write<T: Copy>(to: *mut T, value: T) {
        // SAFETY: guaranteed by the caller.
        unsafe { to.write(value) }
    }

    #[cfg(target_arch = "nvptx64")]
    use core::arch::asm;
    #[cfg(target_arch = "nvptx64")]
    use core::mem::transmute_copy;

    #[cfg(target_arch = "nvptx64")]
    #[inline(always)]
    pub(super) unsafe fn read<T: Copy>(from: *const T) -> T {
        // SAFETY: guaranteed by the caller. Each arm copies exactly the bytes of `T`.
        unsafe {
            match (size_of::<T>(), align_of::<T>()) {
                (1, _) => {
                    let value: u32;
                    asm!("ld.global.u8 {}, [{}];", out(reg32) value, in(reg64) from,
                        options(pure, readonly, nostack, preserves_flags));
                    transmute_copy(&(value as u8))
                }
                (4, 4) => {
                    let value: u32;
                    asm!("ld.global.u32 {}, [{}];", out(reg32) value, in(reg64) from,
                        options(pure, readonly, nostack, preserves_flags));
                    transmute_copy(&value)
                }
                (8, 8) => {
                    let value: u64;
                    asm!("ld.global.u64 {}, [{}];", out(reg64) value, in(reg64) from,
                        options(pure, readonly, nostack, preserves_flags));
                    transmute_copy(&value)
                }
                (16, 16) => {
                    let (a, b, c, d): (u32, u32, u32, u32);
                    asm!("ld.global.v4.u32 {{{}, {}, {}, {}}}, [{}];", out(reg32) a, out(reg32) b,
                        out(reg32) c, out(reg32) d, in(reg64) from,
                        options(pure, readonly, nostack, preserves_flags));
                    transmute_copy(&[a, b, c, d])
                }
                _ => from.read(),
            }
        }
    }

    #[cfg(target_arch = "nvptx64")]
    #[inline(always)]
    pub(super) unsafe fn write<T: Copy>(to: *mut T, value: T) {
        // SAFETY: guaranteed by the caller. Each arm copies exactly the bytes of `T`.
        unsafe {
            match (size_of::<T>(), align_of::<T>()) {
                (1, _) => {
                    let value: u8 = transmute_copy(&value);
                    asm!("st.global.u8 [{}], {};", in(reg64) to, in(reg32) value as u32,
                        options(nostack, preserves_flags));
                }
                (4, 4) => {
                    let value: u32 = transmute_copy(&value);
                    asm!("st.global.u32 [{}], {};", in(reg64) to, in(reg32) value,
                        options(nostack, preserves_flags));
                }
                (8, 8) => {
                    let value: u64 = transmute_copy(&value);
                    asm!("st.global.u64 [{}], {};", in(reg64) to, in(reg64) value,
                        options(nostack, preserves_flags));
                }
                (16, 16) => {
                    let value: [u32; 4] = transmute_copy(&value);
                    asm!("st.global.v4.u32 [{}], {{{}, {}, {}, {}}};", in(reg64) to, in(reg32) value[0],
                        in(reg32) value[1], in(reg32) value[2], in(reg32) value[3],
                        options(nostack, preserves_flags));
                }
                _ => to.write(value),
            }
        }
    }
}
