//! [`Memory`] in the address spaces of the device. (The accesses that make an event are in `access`.)

#[cfg(all(target_arch = "nvptx64", not(feature = "state-shared")))]
pub(crate) use device::GlobalMemory as StateMemory;
#[cfg(all(target_arch = "nvptx64", feature = "state-shared"))]
pub(crate) use device::SharedMemory as StateMemory;
#[cfg(target_arch = "nvptx64")]
pub(crate) use device::{GlobalMemory, SharedMemory, unknown_zero};
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) use host::{HostMemory as GlobalMemory, HostMemory as SharedMemory, HostMemory as StateMemory};

/// Address of a warp's state.
#[cfg(all(target_arch = "nvptx64", feature = "state-shared"))]
pub(crate) type StateAddress = u32;
/// Address of a warp's state.
#[cfg(all(target_arch = "nvptx64", not(feature = "state-shared")))]
pub(crate) type StateAddress = u64;

#[cfg(target_arch = "nvptx64")]
mod device {
    use core::arch::asm;

    use warptrace_format::Memory;

    /// Block shared memory from an address of the `.shared` window. All lanes read; only the leader's writes are
    /// carried out.
    #[derive(Clone, Copy)]
    pub(crate) struct SharedMemory {
        pub(crate) address: u32,
        pub(crate) leader: bool,
    }

    /// Global memory from an address. All lanes read; only the leader's writes are carried out.
    #[derive(Clone, Copy)]
    pub(crate) struct GlobalMemory {
        pub(crate) address: u64,
        pub(crate) leader: bool,
    }

    impl SharedMemory {
        #[inline(always)]
        pub(crate) fn new(address: u32, leader: bool) -> Self {
            Self { address, leader }
        }
    }

    impl SharedMemory {
        /// Writes two words if `condition` holds.
        #[cfg(feature = "codec-predict")]
        #[inline(always)]
        pub(crate) fn set64_if(self, condition: bool, at: u32, value: [u32; 2]) {
            Self { leader: self.leader & condition, ..self }.set64(at, value);
        }
    }

    impl GlobalMemory {
        #[inline(always)]
        pub(crate) fn new(address: u64, leader: bool) -> Self {
            Self { address, leader }
        }

        #[inline(always)]
        pub(crate) fn address(self) -> u64 {
            self.address
        }

        /// Writes to the first 16 bytes if `condition` holds.
        #[inline(always)]
        pub(crate) fn set128_if(self, condition: bool, value: [u32; 4]) {
            Self { leader: self.leader & condition, ..self }.set128(0, value);
        }
    }

    // Writes are predicated, not branched around: a branch that only one lane takes could let the warp fall
    // apart wherever the assembler places a YIELD (see the crate's documentation).
    macro_rules! memory {
        ($name:ident, $space:literal, $register:ident, $offset:ty) => {
            // The constructors' callers promise that every offset the codecs use lies in the region.
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
                        asm!(concat!("{{ .reg .pred p; setp.ne.u32 p, {}, 0; @p st.", $space, ".u8 [{}], {}; }}"),
                            in(reg32) self.leader as u32, in($register) self.address.wrapping_add(at as $offset),
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
                        asm!(concat!("{{ .reg .pred p; setp.ne.u32 p, {}, 0; @p st.", $space, ".u32 [{}], {}; }}"),
                            in(reg32) self.leader as u32, in($register) self.address.wrapping_add(at as $offset),
                            in(reg32) value, options(nostack, preserves_flags));
                    }
                }
                #[inline(always)]
                fn set8_if(&mut self, condition: bool, at: u32, value: u8) {
                    Self { leader: self.leader & condition, ..*self }.set8(at, value);
                }
                #[inline(always)]
                fn set32_if(&mut self, condition: bool, at: u32, value: u32) {
                    Self { leader: self.leader & condition, ..*self }.set32(at, value);
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
                        asm!(concat!("{{ .reg .pred p; setp.ne.u32 p, {}, 0; @p st.", $space,
                                ".v2.u32 [{}], {{{}, {}}}; }}"),
                            in(reg32) self.leader as u32, in($register) self.address.wrapping_add(at as $offset),
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
                        asm!(concat!("{{ .reg .pred p; setp.ne.u32 p, {}, 0; @p st.", $space,
                                ".v4.u32 [{}], {{{}, {}, {}, {}}}; }}"),
                            in(reg32) self.leader as u32, in($register) self.address.wrapping_add(at as $offset),
                            in(reg32) value[0], in(reg32) value[1], in(reg32) value[2], in(reg32) value[3],
                            options(nostack, preserves_flags));
                    }
                }
            }
        };
    }
    memory!(SharedMemory, "shared", reg32, u32);
    memory!(GlobalMemory, "global", reg64, u64);

    /// Zero, but ptxas does not know it. (Of special registers it knows how many bits they have.)
    #[inline(always)]
    pub(crate) fn unknown_zero() -> u32 {
        let zero: u32;
        // SAFETY: special registers, and arithmetic.
        unsafe {
            asm!("{{", ".reg .b32 a, b;", "mov.u32 a, %lanemask_lt;", "mov.u32 b, %lanemask_ge;", "not.b32 b, b;", "xor.b32 {}, a, b;", "}}",
                out(reg32) zero, options(pure, nomem, nostack, preserves_flags));
        }
        zero
    }

    impl GlobalMemory {
        /// The same memory, for reads that must not come before `value` is known.
        ///
        /// The address depends on it: the value times a number that is 0, which ptxas does not know.
        #[inline(always)]
        pub(crate) fn read_after(self, value: u32) -> Self {
            let address: u64;
            // SAFETY: arithmetic.
            unsafe {
                asm!("mad.wide.u32 {}, {}, {}, {};", out(reg64) address, in(reg32) value,
                    in(reg32) unknown_zero(), in(reg64) self.address, options(pure, nomem, nostack, preserves_flags));
            }
            Self { address, ..self }
        }

        /// Adds to the word at `at`; answers the word before to the leader, 0 to the others.
        ///
        /// The others add 0: without a branch, which lanes could leave before the leader (see `area`).
        #[inline(always)]
        pub(crate) fn fetch_add(&mut self, at: u32, value: u32) -> u32 {
            let before: u32;
            let (value, leads) = if self.leader { (value, u32::MAX) } else { (0, 0) };
            // SAFETY: the region holds the word at `at`.
            unsafe {
                asm!("{{ .reg .b32 all; atom.global.add.u32 all, [{1}], {2}; and.b32 {0}, all, {3}; }}",
                    out(reg32) before, in(reg64) self.address + at as u64, in(reg32) value, in(reg32) leads,
                    options(nostack, preserves_flags));
            }
            before
        }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod host {
    use warptrace_format::Memory;

    /// Memory of the simulator behind an address. The simulator runs the lanes of a block one after another on
    /// one thread and switches nowhere inside the tracer, so plain accesses are enough.
    #[derive(Clone, Copy)]
    pub(crate) struct HostMemory(u64);

    impl HostMemory {
        /// Here the leader alone records, so there is nobody whose writes would have to be held back.
        pub(crate) fn new(address: u64, _: bool) -> Self {
            Self(address)
        }

        pub(crate) fn address(self) -> u64 {
            self.0
        }

        pub(crate) fn set128_if(mut self, condition: bool, value: [u32; 4]) {
            if condition {
                self.set128(0, value);
            }
        }

        pub(crate) fn set64_if(mut self, condition: bool, at: u32, value: [u32; 2]) {
            if condition {
                self.set64(at, value);
            }
        }

        pub(crate) fn fetch_add(&mut self, at: u32, value: u32) -> u32 {
            // SAFETY: the creator of the region promises that it holds `at`.
            unsafe { crate::atomic::add_u32(self.at(at), value) }
        }

        fn at<T>(&self, at: u32) -> *mut T {
            core::ptr::with_exposed_provenance_mut((self.0 + u64::from(at)) as usize)
        }
    }

    impl Memory for HostMemory {
        #[inline]
        fn get8(&self, at: u32) -> u8 {
            // SAFETY: the creator of the region promises that it holds `at`.
            unsafe { self.at::<u8>(at).read() }
        }
        #[inline]
        fn set8(&mut self, at: u32, value: u8) {
            // SAFETY: as above.
            unsafe { self.at::<u8>(at).write(value) }
        }
        #[inline]
        fn get32(&self, at: u32) -> u32 {
            // SAFETY: as above; the region is 16-byte aligned and `at` a multiple of 4.
            unsafe { self.at::<u32>(at).read() }
        }
        #[inline]
        fn set32(&mut self, at: u32, value: u32) {
            // SAFETY: as above.
            unsafe { self.at::<u32>(at).write(value) }
        }
    }
}
