//! Atomics on global memory, with relaxed order and device scope, like CUDA's `atomicAdd`. On nvptx, `core`'s
//! atomics have system scope, which is stronger and slower than kernels need.

#[cfg(not(target_arch = "nvptx64"))]
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

macro_rules! read_modify_write {
    ($($(#[$doc:meta])* $name:ident($int:ty, $atomic:ident) = $ptx:literal, $register:ident, $host:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// Returns the previous value.
        ///
        /// # Safety
        /// `address` is valid for the launch and aligned. Only atomics access a value that others may write.
        #[inline(always)]
        pub unsafe fn $name(address: *mut $int, value: $int) -> $int {
            #[cfg(target_arch = "nvptx64")]
            {
                let before: $int;
                // SAFETY: guaranteed by the caller.
                unsafe {
                    core::arch::asm!(concat!("atom.global.", $ptx, " {}, [{}], {};"), out($register) before,
                        in(reg64) address, in($register) value, options(nostack, preserves_flags));
                }
                before
            }
            #[cfg(not(target_arch = "nvptx64"))]
            // SAFETY: guaranteed by the caller.
            unsafe { $atomic::from_ptr(address) }.$host(value, Relaxed)
        }
    )*};
}

read_modify_write! {
    /// Adds `value`.
    add_u32(u32, AtomicU32) = "add.u32", reg32, fetch_add;
    /// Stores the minimum.
    min_u32(u32, AtomicU32) = "min.u32", reg32, fetch_min;
    /// Stores the maximum.
    max_u32(u32, AtomicU32) = "max.u32", reg32, fetch_max;
    /// Sets the bits of `value`.
    or_u32(u32, AtomicU32) = "or.b32", reg32, fetch_or;
    /// Clears all bits that are not set in `value`.
    and_u32(u32, AtomicU32) = "and.b32", reg32, fetch_and;
    /// Stores `value`.
    exchange_u32(u32, AtomicU32) = "exch.b32", reg32, swap;
    /// Adds `value`.
    add_u64(u64, AtomicU64) = "add.u64", reg64, fetch_add;
    /// Stores the minimum.
    min_u64(u64, AtomicU64) = "min.u64", reg64, fetch_min;
    /// Stores `value`.
    exchange_u64(u64, AtomicU64) = "exch.b64", reg64, swap;
}

macro_rules! compare_exchange_and_access {
    ($($int:ty, $atomic:ident, $register:ident, $bits:literal: $cas:ident, $load:ident, $store:ident;)*) => {$(
        /// Stores `new` if the value equals `expected`. Returns the previous value.
        ///
        /// # Safety
        /// As for the other atomics of this module.
        #[inline(always)]
        pub unsafe fn $cas(address: *mut $int, expected: $int, new: $int) -> $int {
            #[cfg(target_arch = "nvptx64")]
            {
                let before: $int;
                // SAFETY: guaranteed by the caller.
                unsafe {
                    core::arch::asm!(concat!("atom.global.cas.b", $bits, " {}, [{}], {}, {};"),
                        out($register) before, in(reg64) address, in($register) expected, in($register) new,
                        options(nostack, preserves_flags));
                }
                before
            }
            #[cfg(not(target_arch = "nvptx64"))]
            // SAFETY: guaranteed by the caller.
            match unsafe { $atomic::from_ptr(address) }.compare_exchange(expected, new, Relaxed, Relaxed) {
                Ok(before) | Err(before) => before,
            }
        }

        /// Loads a value that other threads may write concurrently, like a `volatile` load in CUDA.
        ///
        /// # Safety
        /// As for the other atomics of this module.
        #[inline(always)]
        pub unsafe fn $load(address: *const $int) -> $int {
            #[cfg(target_arch = "nvptx64")]
            {
                let value: $int;
                // SAFETY: guaranteed by the caller.
                unsafe {
                    core::arch::asm!(concat!("ld.relaxed.gpu.global.u", $bits, " {}, [{}];"),
                        out($register) value, in(reg64) address, options(nostack, preserves_flags));
                }
                value
            }
            #[cfg(not(target_arch = "nvptx64"))]
            // SAFETY: guaranteed by the caller.
            unsafe { $atomic::from_ptr(address.cast_mut()) }.load(Relaxed)
        }

        /// Stores a value that other threads may read concurrently.
        ///
        /// # Safety
        /// As for the other atomics of this module.
        #[inline(always)]
        pub unsafe fn $store(address: *mut $int, value: $int) {
            #[cfg(target_arch = "nvptx64")]
            // SAFETY: guaranteed by the caller.
            unsafe {
                core::arch::asm!(concat!("st.relaxed.gpu.global.u", $bits, " [{}], {};"),
                    in(reg64) address, in($register) value, options(nostack, preserves_flags));
            }
            #[cfg(not(target_arch = "nvptx64"))]
            // SAFETY: guaranteed by the caller.
            unsafe { $atomic::from_ptr(address) }.store(value, Relaxed);
        }
    )*};
}

compare_exchange_and_access! {
    u32, AtomicU32, reg32, "32": compare_exchange_u32, load_u32, store_u32;
    u64, AtomicU64, reg64, "64": compare_exchange_u64, load_u64, store_u64;
}

/// Orders this thread's memory accesses for the whole device, like `__threadfence()`.
#[inline(always)]
pub fn fence_device() {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: a fence accesses no memory.
    unsafe {
        core::arch::asm!("fence.acq_rel.gpu;", options(nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "nvptx64"))]
    core::sync::atomic::fence(core::sync::atomic::Ordering::AcqRel);
}
