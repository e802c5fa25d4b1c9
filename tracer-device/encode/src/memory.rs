//! [`Memory`] in the address spaces of the device.

use warptrace_abi::log::ENTRY_BYTES;

#[cfg(target_arch = "nvptx64")]
pub(crate) use device::{GlobalMemory, SharedMemory};
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) use host::{HostMemory as GlobalMemory, HostMemory as SharedMemory};

#[inline(always)]
pub(crate) fn at_entry(logs: u64, index: u32) -> GlobalMemory {
    GlobalMemory::new(logs + u64::from(index) * u64::from(ENTRY_BYTES))
}

/// Declares an array in block shared memory (PTX name, size in bytes) and a function that returns its memory
/// from an offset on. The device uses the given value of a size's parameter, the simulator the caller's.
macro_rules! block_memory {
    ($(#[$doc:meta])* fn $name:ident($at:ident $(, $parameter:ident: $kind:ty = $value:expr)?) = $array:literal, $bytes:expr;) => {
        $(#[$doc])*
        #[inline(always)]
        fn $name($at: u32 $(, $parameter: $kind)?) -> $crate::memory::SharedMemory {
            #[cfg(target_arch = "nvptx64")]
            {
                $(let _ = $parameter;)?
                let base: u32;
                // SAFETY: reads the address of an array that the module declares.
                unsafe {
                    core::arch::asm!(concat!("mov.u32 {}, ", $array, ";"), out(reg32) base,
                        options(pure, nomem, nostack, preserves_flags));
                }
                $crate::memory::SharedMemory::new(base + $at)
            }
            #[cfg(not(target_arch = "nvptx64"))]
            {
                static KEY: u8 = 0;
                let bytes = ($bytes) as usize;
                let key = &raw const KEY as usize;
                let base = warptrace_device::simt::host::with_lane(|lane| lane.shared(key, bytes));
                $crate::memory::SharedMemory::new(base.expose_provenance() as u64 + u64::from($at))
            }
        }

        #[cfg(target_arch = "nvptx64")]
        core::arch::global_asm!(
            concat!(".shared .align 16 .b8 ", $array, "[{}];"),
            const { $(let $parameter: $kind = $value;)? $bytes }
        );
    };
}
pub(crate) use block_memory;

#[cfg(target_arch = "nvptx64")]
mod device {
    use core::arch::asm;

    use warptrace_format::Memory;

    #[derive(Clone, Copy)]
    pub(crate) struct SharedMemory {
        pub(crate) address: u32,
    }

    #[derive(Clone, Copy)]
    pub(crate) struct GlobalMemory {
        address: u64,
    }

    impl SharedMemory {
        #[inline(always)]
        pub(crate) fn new(address: u32) -> Self {
            Self { address }
        }
    }

    impl GlobalMemory {
        #[inline(always)]
        pub(crate) fn new(address: u64) -> Self {
            Self { address }
        }

        #[inline(always)]
        pub(crate) fn address(self) -> u64 {
            self.address
        }

        /// Reads four words at once, bypassing stale caches: other threads write them while this kernel runs.
        #[inline(always)]
        pub(crate) fn get128_now(self, at: u32) -> [u32; 4] {
            let (a, b, c, d): (u32, u32, u32, u32);
            // SAFETY: the region holds `at..at + 16`.
            unsafe {
                asm!("ld.volatile.global.v4.u32 {{{}, {}, {}, {}}}, [{}];", out(reg32) a, out(reg32) b,
                    out(reg32) c, out(reg32) d, in(reg64) self.address.wrapping_add(u64::from(at)),
                    options(nostack, preserves_flags));
            }
            [a, b, c, d]
        }
    }

    // Conditional writes use predication instead of branches, so lanes cannot diverge here.
    macro_rules! memory {
        ($name:ident, $space:literal, $register:ident, $offset:ty) => {
            impl $name {
                #[inline(always)]
                #[allow(dead_code, reason = "only shared memory needs it")]
                pub(crate) fn set64_if(self, condition: bool, at: u32, value: [u32; 2]) {
                    // SAFETY: the region holds `at..at + 8`.
                    unsafe {
                        asm!(concat!("{{ .reg .pred p; setp.ne.u32 p, {}, 0; @p st.", $space,
                                ".v2.u32 [{}], {{{}, {}}}; }}"),
                            in(reg32) condition as u32, in($register) self.address.wrapping_add(at as $offset),
                            in(reg32) value[0], in(reg32) value[1], options(nostack, preserves_flags));
                    }
                }
            }

            // The callers of the constructors guarantee that every offset in use lies in the region.
            impl Memory for $name {
                #[inline(always)]
                fn get8(&self, at: u32) -> u8 {
                    let value: u32;
                    // SAFETY: the region holds `at`.
                    unsafe {
                        asm!(concat!("ld.", $space, ".u8 {}, [{}];"), out(reg32) value,
                            in($register) self.address.wrapping_add(at as $offset),
                            options(nostack, preserves_flags));
                    }
                    value as u8
                }
                #[inline(always)]
                fn set8(&mut self, at: u32, value: u8) {
                    // SAFETY: the region holds `at`.
                    unsafe {
                        asm!(concat!("st.", $space, ".u8 [{}], {};"),
                            in($register) self.address.wrapping_add(at as $offset),
                            in(reg32) value as u32, options(nostack, preserves_flags));
                    }
                }
                #[inline(always)]
                fn get32(&self, at: u32) -> u32 {
                    let value: u32;
                    // SAFETY: the region holds `at`.
                    unsafe {
                        asm!(concat!("ld.", $space, ".u32 {}, [{}];"), out(reg32) value,
                            in($register) self.address.wrapping_add(at as $offset),
                            options(nostack, preserves_flags));
                    }
                    value
                }
                #[inline(always)]
                fn set32(&mut self, at: u32, value: u32) {
                    // SAFETY: the region holds `at`.
                    unsafe {
                        asm!(concat!("st.", $space, ".u32 [{}], {};"),
                            in($register) self.address.wrapping_add(at as $offset),
                            in(reg32) value, options(nostack, preserves_flags));
                    }
                }
                #[inline(always)]
                fn set8_if(&mut self, condition: bool, at: u32, value: u8) {
                    // SAFETY: the region holds `at`.
                    unsafe {
                        asm!(concat!("{{ .reg .pred p; setp.ne.u32 p, {}, 0; @p st.", $space, ".u8 [{}], {}; }}"),
                            in(reg32) condition as u32, in($register) self.address.wrapping_add(at as $offset),
                            in(reg32) value as u32, options(nostack, preserves_flags));
                    }
                }
                #[inline(always)]
                fn set32_if(&mut self, condition: bool, at: u32, value: u32) {
                    // SAFETY: the region holds `at`.
                    unsafe {
                        asm!(concat!("{{ .reg .pred p; setp.ne.u32 p, {}, 0; @p st.", $space, ".u32 [{}], {}; }}"),
                            in(reg32) condition as u32, in($register) self.address.wrapping_add(at as $offset),
                            in(reg32) value, options(nostack, preserves_flags));
                    }
                }
                #[inline(always)]
                fn get64(&self, at: u32) -> [u32; 2] {
                    let (a, b): (u32, u32);
                    // SAFETY: the region holds `at..at + 8`.
                    unsafe {
                        asm!(concat!("ld.", $space, ".v2.u32 {{{}, {}}}, [{}];"), out(reg32) a, out(reg32) b,
                            in($register) self.address.wrapping_add(at as $offset),
                            options(nostack, preserves_flags));
                    }
                    [a, b]
                }
                #[inline(always)]
                fn set64(&mut self, at: u32, value: [u32; 2]) {
                    // SAFETY: the region holds `at..at + 8`.
                    unsafe {
                        asm!(concat!("st.", $space, ".v2.u32 [{}], {{{}, {}}};"),
                            in($register) self.address.wrapping_add(at as $offset),
                            in(reg32) value[0], in(reg32) value[1], options(nostack, preserves_flags));
                    }
                }
                #[inline(always)]
                fn get128(&self, at: u32) -> [u32; 4] {
                    let (a, b, c, d): (u32, u32, u32, u32);
                    // SAFETY: the region holds `at..at + 16`.
                    unsafe {
                        asm!(concat!("ld.", $space, ".v4.u32 {{{}, {}, {}, {}}}, [{}];"), out(reg32) a,
                            out(reg32) b, out(reg32) c, out(reg32) d,
                            in($register) self.address.wrapping_add(at as $offset),
                            options(nostack, preserves_flags));
                    }
                    [a, b, c, d]
                }
                #[inline(always)]
                fn set128(&mut self, at: u32, value: [u32; 4]) {
                    // SAFETY: the region holds `at..at + 16`.
                    unsafe {
                        asm!(concat!("st.", $space, ".v4.u32 [{}], {{{}, {}, {}, {}}};"),
                            in($register) self.address.wrapping_add(at as $offset),
                            in(reg32) value[0], in(reg32) value[1], in(reg32) value[2], in(reg32) value[3],
                            options(nostack, preserves_flags));
                    }
                }
            }
        };
    }
    memory!(SharedMemory, "shared", reg32, u32);
    memory!(GlobalMemory, "global", reg64, u64);
}

#[cfg(not(target_arch = "nvptx64"))]
mod host {
    use warptrace_format::Memory;

    /// Host memory from an address onward, for kernels on simulated lanes. The simulator runs the lanes of a
    /// block in turn on one thread and switches only at warp operations, so plain accesses are sufficient.
    #[derive(Clone, Copy)]
    pub(crate) struct HostMemory(u64);

    impl HostMemory {
        pub(crate) fn new(address: u64) -> Self {
            Self(address)
        }

        pub(crate) fn address(self) -> u64 {
            self.0
        }

        pub(crate) fn get128_now(self, at: u32) -> [u32; 4] {
            self.get128(at)
        }

        pub(crate) fn set64_if(mut self, condition: bool, at: u32, value: [u32; 2]) {
            if condition {
                self.set64(at, value);
            }
        }

        fn at<T>(&self, at: u32) -> *mut T {
            core::ptr::with_exposed_provenance_mut((self.0 + u64::from(at)) as usize)
        }
    }

    impl Memory for HostMemory {
        #[inline]
        fn get8(&self, at: u32) -> u8 {
            // SAFETY: the creator of the region guarantees that it contains `at`.
            unsafe { self.at::<u8>(at).read() }
        }
        #[inline]
        fn set8(&mut self, at: u32, value: u8) {
            // SAFETY: the creator of the region guarantees that it contains `at`.
            unsafe { self.at::<u8>(at).write(value) }
        }
        #[inline]
        fn get32(&self, at: u32) -> u32 {
            // SAFETY: the creator of the region guarantees that it contains `at..at + 4`. The region is
            // 8-byte aligned and `at` is a multiple of 4.
            unsafe { self.at::<u32>(at).read() }
        }
        #[inline]
        fn set32(&mut self, at: u32, value: u32) {
            // SAFETY: see `get32`.
            unsafe { self.at::<u32>(at).write(value) }
        }
    }
}
