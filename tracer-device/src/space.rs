//! [`Memory`] in the address spaces of the device, and the accesses that make an event.

#[cfg(target_arch = "nvptx64")]
pub(crate) use device::{GlobalMemory, SharedMemory};
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) use host::{HostMemory as GlobalMemory, HostMemory as SharedMemory};

#[cfg(target_arch = "nvptx64")]
mod device {
    use core::arch::asm;

    use warptrace_format::Memory;

    #[cfg(feature = "counted")]
    use crate::state::MORES;
    use crate::state::{DRAIN, LINKS, PLACES, RECORDS};
    use crate::unit::{COMPARED, KEEPS};

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

        /// Reads the word at `at`, each time anew.
        #[inline(always)]
        pub(crate) fn look32(self, at: u32) -> u32 {
            let value: u32;
            // SAFETY: the region holds `at`.
            unsafe {
                asm!("ld.volatile.shared.u32 {}, [{}];", out(reg32) value, in(reg32) self.address.wrapping_add(at),
                    options(nostack, preserves_flags));
            }
            value
        }

        /// The same memory, as it is when `mask` is known, and in a form of which the assembler cannot tell that it is the same: reads of it are
        /// not moved to before that, nor past accesses to the plain form.
        ///
        /// The address depends on the mask, times a number that is 0, which the assembler does not know.
        #[inline(always)]
        pub(crate) fn seen_with(self, mask: u32) -> Self {
            let address: u32;
            // SAFETY: arithmetic.
            unsafe {
                asm!("mad.lo.u32 {}, {}, {}, {};", out(reg32) address, in(reg32) mask, in(reg32) unknown_zero(),
                    in(reg32) self.address, options(pure, nomem, nostack, preserves_flags));
            }
            Self { address, leader: self.leader }
        }

        /// If the own records of all lanes of `mask` hold this event, adds to their keys; answers whether they do, and the own record as it was. From all
        /// lanes of `mask`, together, each with the address of its own record.
        ///
        /// In as few instructions as can be: every event comes here. The vote makes the answer one that ptxas knows to be the same for all lanes, so
        /// that a branch on it needs no place where lanes that went different ways would wait for each other. It is the vote of the lanes that are here,
        /// without naming them: for one that names them ptxas would first find out whether they are, by a `REDUX` and a branch. (There is no branch since
        /// they were asked, so they are.) PTX has it until version 6.3.
        #[inline(always)]
        pub(crate) fn repeat(own: u32, mask: u32, location: u32, add: u32) -> (bool, [u32; 2]) {
            let (holds, old_mask, old_key): (u32, u32, u32);
            // SAFETY: the own record, at a multiple of 8; all lanes of `mask` are here.
            unsafe {
                asm!("{{", ".reg .pred p;", ".reg .b32 a, b;",
                    "ld.shared.v2.u32 {{{old_mask}, {old_key}}}, [{own}+{records}];",
                    "xor.b32 b, {old_key}, {location};", "and.b32 b, b, {compared};",
                    "xor.b32 a, {old_mask}, {mask};", "or.b32 a, a, b;", "setp.eq.u32 p, a, 0;",
                    "vote.all.pred p, p;",
                    "add.u32 b, {old_key}, {add};", "@p st.shared.u32 [{own}+{records}+4], b;",
                    "selp.u32 {holds}, 1, 0, p;", "}}",
                    holds = out(reg32) holds, old_mask = out(reg32) old_mask, old_key = out(reg32) old_key,
                    own = in(reg32) own, records = const RECORDS, compared = in(reg32) compared(), mask = in(reg32) mask,
                    location = in(reg32) location, add = in(reg32) add, options(nostack, preserves_flags));
            }
            (holds != 0, [old_mask, old_key])
        }

        /// See [`begin_run`](crate::log::begin_run): the run in the own record, `old`, goes to the lane's log, if it keeps it, and another becomes its own.
        #[inline(always)]
        pub(crate) fn begin_run(self, own: u32, old: [u32; 2], [mask, key, more]: [u32; 3]) -> bool {
            let (low, high, link, began, wanted): (u32, u32, u32, u32, u32);
            // SAFETY: what is the lane's own.
            unsafe {
                asm!("ld.shared.v2.u32 {{{low}, {high}}}, [{own}+{places}];",
                    "ld.shared.v2.u32 {{{link}, {began}}}, [{own}+{links}];", "ld.shared.u32 {wanted}, [{state}+{drain}];",
                    low = out(reg32) low, high = out(reg32) high, link = out(reg32) link, began = out(reg32) began,
                    wanted = out(reg32) wanted, own = in(reg32) own, state = in(reg32) self.address,
                    places = const PLACES, links = const LINKS, drain = const DRAIN, options(nostack, preserves_flags));
            }
            #[cfg(feature = "counted")]
            let third = swap_more(own, more);
            // Of a run whose count is in its key the third word is of no importance.
            #[cfg(not(feature = "counted"))]
            let (third, _) = (link, more);
            let slow: u32;
            // SAFETY: as above; the place is 0, or the address of a free unit in the lane's log.
            unsafe {
                asm!("{{", ".reg .pred p, q;", ".reg .b32 bit, next;", ".reg .b64 place;",
                    "mov.b64 place, {{{low}, {high}}};",
                    "and.b32 bit, {old_key}, {keeps};", "setp.ne.u32 p, bit, 0;", "setp.ne.and.u32 p, {high}, 0, p;",
                    "@p st.global.v4.u32 [place], {{{old_mask}, {old_key}, {third}, {began}}};",
                    "add.u32 next, {low}, 16;",
                    "@p st.shared.u32 [{own}+{places}], next;",
                    "st.shared.v2.u32 [{own}+{records}], {{{mask}, {key}}};",
                    "setp.eq.and.u32 q, next, {link}, p;",
                    "setp.eq.or.u32 q, {wanted}, {mask}, q;",
                    "selp.u32 {slow}, 1, 0, q;", "}}",
                    slow = out(reg32) slow, own = in(reg32) own, old_mask = in(reg32) old[0], old_key = in(reg32) old[1],
                    low = in(reg32) low, high = in(reg32) high, link = in(reg32) link, began = in(reg32) began,
                    third = in(reg32) third, wanted = in(reg32) wanted, records = const RECORDS, places = const PLACES,
                    keeps = const KEEPS, mask = in(reg32) mask, key = in(reg32) key, options(nostack, preserves_flags));
            }
            slow != 0
        }

        /// Writes down when the run began that is the lane's own now.
        #[inline(always)]
        pub(crate) fn set_began(own: u32, time: u32) {
            // SAFETY: what is the lane's own.
            unsafe {
                asm!("st.shared.u32 [{}+{}+4], {};", in(reg32) own, const LINKS, in(reg32) time,
                    options(nostack, preserves_flags));
            }
        }

        /// Address of this lane's own record, less [`RECORDS`]: its other words lie at the same distance from their first.
        #[inline(always)]
        pub(crate) fn own(self) -> u32 {
            self.address + 8 * crate::simt::own_lane()
        }
    }

    /// [`COMPARED`], in a form of which ptxas cannot tell what it is: so it stays in a register, and two comparisons take two instructions.
    #[inline(always)]
    fn compared() -> u32 {
        unknown_zero() | COMPARED
    }

    /// Zero, but ptxas does not know it. (Of special registers it knows how many bits they have.)
    #[inline(always)]
    fn unknown_zero() -> u32 {
        let zero: u32;
        // SAFETY: special registers, and arithmetic.
        unsafe {
            asm!("{{", ".reg .b32 a, b;", "mov.u32 a, %lanemask_lt;", "mov.u32 b, %lanemask_ge;", "not.b32 b, b;", "xor.b32 {}, a, b;", "}}",
                out(reg32) zero, options(pure, nomem, nostack, preserves_flags));
        }
        zero
    }

    /// Where the lane's own run has its count, if it is not in its key: what it was, while it becomes `more`.
    #[cfg(feature = "counted")]
    #[inline(always)]
    fn swap_more(own: u32, more: u32) -> u32 {
        let before: u32;
        // SAFETY: what is the lane's own; its words lie 8 bytes from the next lane's.
        unsafe {
            asm!("ld.shared.u32 {before}, [{own}+{mores}];", "st.shared.u32 [{own}+{mores}], {more};",
                before = out(reg32) before, own = in(reg32) own, more = in(reg32) more, mores = const MORES,
                options(nostack, preserves_flags));
        }
        before
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

        /// The 16 bytes before this.
        #[inline(always)]
        pub(crate) fn before(self) -> [u32; 4] {
            Self { address: self.address - 16, ..self }.get128(0)
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

    impl GlobalMemory {
        /// Adds to the word at `at`; answers the word before to the leader, 0 to the others.
        #[inline(always)]
        pub(crate) fn fetch_add(&mut self, at: u32, value: u32) -> u32 {
            let before: u32;
            // SAFETY: the region holds the word at `at`.
            unsafe {
                asm!("{{ .reg .pred p; setp.ne.u32 p, {1}, 0; mov.u32 {0}, 0; @p atom.global.add.u32 {0}, [{2}], {3}; }}",
                    out(reg32) before, in(reg32) self.leader as u32,
                    in(reg64) self.address + at as u64, in(reg32) value, options(nostack, preserves_flags));
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

        pub(crate) fn seen_with(self, _: u32) -> Self {
            self
        }

        pub(crate) fn look32(self, at: u32) -> u32 {
            self.get32(at)
        }

        pub(crate) fn set128_if(mut self, condition: bool, value: [u32; 4]) {
            if condition {
                self.set128(0, value);
            }
        }

        pub(crate) fn before(self) -> [u32; 4] {
            Self(self.0 - 16).get128(0)
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
