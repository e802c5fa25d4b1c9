//! Mutual exclusion between the diverged groups of one warp that take memory for their logs, with plain loads and stores.
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
//! # Why plain accesses are enough in shared memory
//! All groups belong to one warp, whose instructions are issued one at a time, and whose accesses to shared memory are
//! carried out in the order of issue: between its own lanes a warp's shared memory is sequentially consistent.
//! What is left is the compiler. The accesses are inline assembly, which LLVM keeps in order; and the loads go through an address that
//! ptxas cannot tell apart from the address of the stores, so that it keeps them in order too. Where
//! a group waits for another one ([`Lock::insist`]), volatile accesses are used: there a YIELD is what is wanted.
//!
//! # In global memory
//! There nothing is promised of plain accesses of different lanes. So the lock's are volatile, with fences where the algorithm needs an order. The price is a
//! YIELD at the entry of the function that gives a log its next segment (see `apart`), every seventh run of a lane: lanes of the kernel that wait for others
//! may be let go there. The trace points themselves have none. What is kept inside the section, the area, needs nothing further: there the fences order
//! plain accesses.

#[cfg(target_arch = "nvptx64")]
use crate::simt;
#[cfg(target_arch = "nvptx64")]
use crate::space::StateAddress;
use crate::space::StateMemory;
#[cfg(target_arch = "nvptx64")]
use crate::state::LOCK;

/// Bytes of the variables.
pub(crate) const LOCK_BYTES: u32 = 48;

/// Attempts to get the lock before an event is given up.
#[cfg(target_arch = "nvptx64")]
const NAPS: u32 = 1 << 20;
/// How long a group sleeps between two attempts.
#[cfg(target_arch = "nvptx64")]
const NAP_NANOSECONDS: u32 = 200;

/// The lock of one warp, as one lane of a group (here its keeper) takes it for all of it.
#[cfg(target_arch = "nvptx64")]
#[derive(Clone, Copy)]
pub(crate) struct Lock {
    /// Where the variables are.
    address: StateAddress,
    /// The same address, in a form that ptxas cannot tell to be the same.
    opaque: StateAddress,
    keeper: u32,
}

/// On the simulator there is nothing to keep apart: it switches nowhere inside the tracer.
#[cfg(not(target_arch = "nvptx64"))]
#[derive(Clone, Copy)]
pub(crate) struct Lock;

#[cfg(not(target_arch = "nvptx64"))]
impl Lock {
    pub(crate) fn new(_: StateMemory, _: StateMemory, _: u32) -> Self {
        Self
    }
    pub(crate) fn enter(self) -> bool {
        true
    }
    pub(crate) fn insist(self) -> bool {
        true
    }
    pub(crate) fn leave_if(self, _: bool) {}
}

#[cfg(target_arch = "nvptx64")]
impl Lock {
    /// The lock in a warp's state, for the group with this keeper. `opaque` is `state` in a form that ptxas cannot tell to be the same.
    #[inline(always)]
    pub(crate) fn new(state: StateMemory, opaque: StateMemory, keeper: u32) -> Self {
        let lock = StateAddress::from(LOCK);
        Self { address: state.address + lock, opaque: opaque.address + lock, keeper }
    }

    /// Enters the section, unless another group is or may be inside; [`insist`](Self::insist) is due then.
    #[inline(always)]
    pub(crate) fn enter(self) -> bool {
        self.attempt()
    }

    /// Enters the section, however long it takes; unless it takes so long that something is wrong, for a tracer must not be able to stop the program
    /// that it looks at. Answers whether the group is inside.
    ///
    /// Waits, which lets lanes of the kernel go that wait for others: see above.
    #[inline(always)]
    pub(crate) fn insist(self) -> bool {
        let mut naps = NAPS;
        let mut inside = false;
        while !inside & (naps != 0) {
            // If another group came between the few instructions of an attempt, and this one has written y last: it is inside as soon as nobody
            // tries any more. b stays 0, as the algorithm has it: y alone keeps the others out. (Rare: groups are seldom switched there.)
            let mut trying = 0;
            let mut word = 0;
            while word < 8 {
                trying |= self.look(16 + 4 * word);
                word += 1;
            }
            if self.look(4) == self.keeper + 1 {
                inside = trying == 0;
                order();
            } else {
                inside = self.attempt();
            }
            naps -= 1;
            if !inside {
                simt::pause(NAP_NANOSECONDS);
            }
        }
        // A group that gives up while y names it leaves the lock taken: events are then counted as lost, none recorded twice.
        inside
    }
}

/// What depends on the space: its name, what its accesses are called, what keeps them in order, and what holds an address.
#[cfg(target_arch = "nvptx64")]
macro_rules! accesses {
    ($access:literal, $order:literal, $register:ident) => {
        impl Lock {
            /// An attempt to enter, without a branch; answers whether the group is inside.
            ///
            /// A group that does not get in takes its b back at once, before it can be switched: who waits for all b to be 0 would find one
            /// of many such groups in between for a long time. (So it happened on an H200.)
            #[inline(always)]
            fn attempt(self) -> bool {
                let (y, x): (u32, u32);
                // SAFETY: the variables from `address` on belong to this lock.
                unsafe {
                    core::arch::asm!(
                        "{{",
                        ".reg .pred q;",
                        concat!("st", $access, ".u8 [{b}+16], 1;"),
                        concat!("st", $access, ".u32 [{plain}], {me};"),
                        $order,
                        concat!("ld", $access, ".u32 {y}, [{opaque}+4];"),
                        "setp.eq.u32 q, {y}, 0;",
                        concat!("@q st", $access, ".u32 [{plain}+4], {me};"),
                        $order,
                        concat!("ld", $access, ".u32 {x}, [{opaque}];"),
                        "setp.ne.u32 q, {y}, 0;",
                        "setp.ne.or.u32 q, {x}, {me}, q;",
                        concat!("@q st", $access, ".u8 [{b}+16], 0;"),
                        "}}",
                        b = in($register) self.address + StateAddress::from(self.keeper),
                        plain = in($register) self.address,
                        opaque = in($register) self.opaque,
                        me = in(reg32) self.keeper + 1,
                        y = out(reg32) y,
                        x = out(reg32) x,
                        options(nostack, preserves_flags)
                    );
                }
                (y == 0) & (x == self.keeper + 1)
            }

            /// Reads a word of the lock, each time anew.
            #[inline(always)]
            fn look(self, at: u32) -> u32 {
                StateMemory::new(self.address, true).look32(at)
            }

            /// Leaves the section, if the group is `inside`.
            #[inline(always)]
            pub(crate) fn leave_if(self, inside: bool) {
                // SAFETY: the variables of this lock.
                unsafe {
                    core::arch::asm!(
                        "{{",
                        ".reg .pred p;",
                        "setp.ne.u32 p, {inside}, 0;",
                        $order,
                        concat!("@p st", $access, ".u32 [{plain}+4], 0;"),
                        concat!("@p st", $access, ".u8 [{b}+16], 0;"),
                        "}}",
                        inside = in(reg32) inside as u32,
                        b = in($register) self.address + StateAddress::from(self.keeper),
                        plain = in($register) self.address,
                        options(nostack, preserves_flags)
                    );
                }
            }
        }

        /// What comes after this in the program comes after what comes before, for the other lanes too.
        #[inline(always)]
        fn order() {
            // SAFETY: a fence touches no memory.
            unsafe { core::arch::asm!($order, options(nostack, preserves_flags)) };
        }
    };
}
#[cfg(all(target_arch = "nvptx64", feature = "state-shared"))]
accesses!(".shared", "", reg32);
#[cfg(all(target_arch = "nvptx64", not(feature = "state-shared")))]
accesses!(".volatile.global", "fence.sc.cta;", reg64);
