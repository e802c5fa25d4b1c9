//! Mutual exclusion between the diverged groups of one warp, with plain loads and stores.
//!
//! Lamport's second algorithm of "A Fast Mutual Exclusion Algorithm" (ACM Transactions on Computer Systems 5(1), 1987),
//! with the lanes as processes. In the absence of contention it costs five stores and two loads.
//!
//! ```text
//! offset  size  variable
//!      0     4  x: 1 + the lane that came last
//!      4     4  y: 1 + the lane that is inside, or 0
//!      8     8  unused
//!     16    32  b: one byte a lane, 1 while it tries or is inside
//! ```
//!
//! # Why not an atomic
//! ptxas puts a YIELD into every loop with an atomic, a volatile or a strong access (it might be waiting for another
//! thread), and on the hardware a YIELD ends the wait of lanes that stand at a convergence barrier: lanes that had left
//! the loop stop waiting for those inside, and the program no longer runs as it does untraced. Measured on an H200 with
//! fractal: one atomic at the trace point split the exits of the loop apart (0.7% more events); the loop of a spin lock
//! split every warp into single lanes (28 times the events).
//!
//! # Why plain accesses are enough
//! All groups belong to one warp, whose instructions are issued one at a time, and whose accesses to shared memory are
//! carried out in the order of issue: between its own lanes a warp's shared memory is sequentially consistent. (So are tables in
//! global memory, which only this warp uses, through one multiprocessor's first-level cache. A fence would be a strong access.)
//! What is left is the compiler. The accesses are inline assembly, which LLVM keeps in order; and the loads go through an address that
//! ptxas cannot tell apart from the address of the stores (see `warp`), so that it keeps them in order too. Where
//! two groups met, volatile accesses are used: there a YIELD is what is wanted.

use crate::space::SharedMemory;

/// Bytes of the variables.
pub(crate) const LOCK_BYTES: u32 = 48;

/// How an attempt to enter ended.
#[cfg(target_arch = "nvptx64")]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry(pub(crate) u32);

#[cfg(target_arch = "nvptx64")]
impl Entry {
    /// The group is inside.
    pub(crate) const INSIDE: Self = Self(0);
    /// Another group is inside.
    pub(crate) const TAKEN: Self = Self(1);
    /// Two groups came between each other's few instructions, and this one has written y.
    pub(crate) const UNDECIDED: Self = Self(2);
}

/// The lock of one warp, as a group takes it. Every lane of the group makes the same calls; what the leader writes
/// counts.
#[cfg(target_arch = "nvptx64")]
#[derive(Clone, Copy)]
pub(crate) struct Lock {
    /// Where the variables are.
    address: u32,
    /// The same address, in a form that ptxas cannot tell to be the same.
    opaque: u32,
    leader: bool,
    /// The group's leader.
    leader_lane: u32,
}

/// On the simulator there is nothing to keep apart: it switches nowhere inside the tracer.
#[cfg(not(target_arch = "nvptx64"))]
#[derive(Clone, Copy)]
pub(crate) struct Lock;

#[cfg(not(target_arch = "nvptx64"))]
impl Lock {
    pub(crate) fn new(_: SharedMemory, _: SharedMemory, _: u32, _: u32) -> Self {
        Self
    }
    pub(crate) fn leave(self) {}
}

#[cfg(target_arch = "nvptx64")]
impl Lock {
    /// The lock at offset `at` of a warp's state, for the group with this mask. `displaced` is `state` in a form that
    /// ptxas cannot tell to be the same.
    #[inline(always)]
    pub(crate) fn new(state: SharedMemory, displaced: SharedMemory, at: u32, mask: u32) -> Self {
        Self {
            address: state.address + at,
            opaque: displaced.address + at,
            leader: state.leader,
            leader_lane: crate::simt::lowest(mask),
        }
    }

    /// Enters the section, unless another group is or may be inside; [`insist`](Self::insist) is due then.
    ///
    /// A group that does not get in takes its b back at once, before it can be switched: who waits for all b to be 0 would find one
    /// of many such groups in between for a long time. (So it happened on an H200.)
    #[inline(always)]
    pub(crate) fn enter(self) -> Entry {
        let (y, x): (u32, u32);
        // SAFETY: the variables from `address` on belong to this lock.
        unsafe {
            core::arch::asm!(
                "{{",
                ".reg .pred p, q;",
                "setp.ne.u32 p, {leader}, 0;",
                "@p st.shared.u8 [{b}+16], 1;",
                "@p st.shared.u32 [{plain}], {me};",
                "ld.shared.u32 {y}, [{opaque}+4];",
                "setp.eq.and.u32 q, {y}, 0, p;",
                "@q st.shared.u32 [{plain}+4], {me};",
                "ld.shared.u32 {x}, [{opaque}];",
                "setp.ne.u32 q, {y}, 0;",
                "setp.ne.or.u32 q, {x}, {me}, q;",
                "and.pred q, q, p;",
                "@q st.shared.u8 [{b}+16], 0;",
                "}}",
                leader = in(reg32) self.leader as u32,
                b = in(reg32) self.address + self.leader_lane,
                plain = in(reg32) self.address,
                opaque = in(reg32) self.opaque,
                me = in(reg32) self.leader_lane + 1,
                y = out(reg32) y,
                x = out(reg32) x,
                options(nostack, preserves_flags)
            );
        }
        if y != 0 {
            Entry::TAKEN
        } else if x == self.leader_lane + 1 {
            Entry::INSIDE
        } else {
            Entry::UNDECIDED
        }
    }

    /// Another attempt after [`enter`](Self::enter) or this has failed; answers whether the group is inside. Takes from `naps` those that it takes.
    #[inline(always)]
    pub(crate) fn insist(self, naps: &mut u32) -> bool {
        // Two groups came between each other's few instructions, and this one has written y last.
        if self.look(4) == self.leader_lane + 1 {
            return self.decide(naps);
        }
        match self.enter() {
            Entry::INSIDE => true,
            Entry::UNDECIDED => self.decide(naps),
            _ => false,
        }
    }

    /// Waits until nobody tries any more; then y says who is inside. (Rare: groups are seldom switched between the few instructions.)
    #[inline(always)]
    fn decide(self, naps: &mut u32) -> bool {
        // A group that gave up while y names it would leave the lock taken: events would then be counted as lost, none
        // recorded twice.
        let mut word = 0;
        while word < 8 {
            if self.look(16 + 4 * word) == 0 {
                word += 1;
                continue;
            }
            if *naps == 0 {
                return false;
            }
            *naps -= 1;
            crate::simt::pause(crate::event::NAP_NANOSECONDS);
        }
        // b stays 0, as the algorithm has it: y alone keeps the others out.
        self.look(4) == self.leader_lane + 1
    }

    /// Reads a word of the lock, each time anew.
    #[inline(always)]
    fn look(self, at: u32) -> u32 {
        let value: u32;
        // SAFETY: a variable of the lock.
        unsafe {
            core::arch::asm!("ld.volatile.shared.u32 {}, [{}];", out(reg32) value, in(reg32) self.address + at,
                options(nostack, preserves_flags));
        }
        value
    }

    /// Leaves the section.
    #[inline(always)]
    pub(crate) fn leave(self) {
        // SAFETY: the variables of this lock.
        unsafe {
            core::arch::asm!(
                "{{",
                ".reg .pred p;",
                "setp.ne.u32 p, {leader}, 0;",
                "@p st.shared.u32 [{plain}+4], 0;",
                "@p st.shared.u8 [{b}+16], 0;",
                "}}",
                leader = in(reg32) self.leader as u32,
                b = in(reg32) self.address + self.leader_lane,
                plain = in(reg32) self.address,
                options(nostack, preserves_flags)
            );
        }
    }
}
