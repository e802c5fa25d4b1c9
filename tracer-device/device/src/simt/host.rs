//! SIMT operations on the host. Each call is forwarded to the lane that the simulator runs. The simulator
//! implements [`Lane`] and calls [`enter`] to run a lane. Kernel code does not use the trait.

use core::panic::Location;
use std::cell::Cell;

use warptrace_abi::data::ValueType;
use warptrace_abi::recording::Recording;

/// The source position of an operation. The simulator uses it as the program counter.
pub type Site = &'static Location<'static>;

/// An operation of a group of lanes. Each is a point at which the simulator may switch lanes. Lanes of a warp
/// that wait at the same `Site` with the same kind of operation form a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WarpOp {
    /// Returns the mask of the group, like `activemask` at a point of convergence.
    Converge,
    /// Like `Converge`, for lanes that have left a loop. The site is the loop's trace point. Other lanes may
    /// still arrive there, so the simulator runs those first.
    Rejoin,
    /// Like `Converge`, for a trace point from `#[warptrace::kernels]`. Such code executes a
    /// [`Join`](Self::Join) at the end of each loop body, so the order of points gives its structure.
    Located {
        /// The location's id, which distinguishes trace points at the same position.
        location: u16,
    },
    /// Like `Converge`, at the end of a loop body. Precedes a `Located` at the same position.
    Join,
    /// `__syncwarp(mask)`. Waits for every lane of `mask` that has not left the kernel. Returns `mask`.
    SyncWarp {
        /// Participating lanes.
        mask: u32,
    },
    /// `__syncthreads()`. Returns 0.
    SyncThreads,
    /// `__ballot_sync(mask, predicate)`. Returns the lanes of `mask` whose predicate holds.
    Ballot {
        /// Participating lanes.
        mask: u32,
        /// This lane's vote.
        predicate: bool,
    },
    /// `__shfl_sync(mask, value, source)`. Returns the value of lane `source` mod 32.
    Shuffle {
        /// Participating lanes.
        mask: u32,
        /// This lane's value.
        value: u32,
        /// The lane to read from. A source outside `mask` is an error.
        source: u32,
    },
    /// `__match_any_sync(mask, value)`. Returns the lanes of `mask` with the same value.
    MatchAny {
        /// Participating lanes.
        mask: u32,
        /// This lane's value.
        value: u32,
    },
    /// A lane that spins on memory lets other warps run. Returns 0.
    Yield,
}

/// The running lane, as seen by a kernel.
///
/// # Safety
/// Kernels use the results unchecked: no two lanes of a launch have the same indices. A pointer from
/// [`shared`](Self::shared) or [`dynamic_shared`](Self::dynamic_shared) is valid for the given number of
/// bytes, initialized and aligned to 16, until the block ends, and no other host thread uses it.
pub unsafe trait Lane {
    /// Returns the thread's index in its block.
    fn thread_index(&self) -> [u32; 3];
    /// Returns the block's index in the grid.
    fn block_index(&self) -> [u32; 3];
    /// Returns the threads of a block.
    fn block_size(&self) -> [u32; 3];
    /// Returns the blocks of the grid.
    fn grid_size(&self) -> [u32; 3];
    /// Takes part in an operation. May switch to other lanes before it returns.
    fn warp_op(&self, op: WarpOp, site: Site) -> u32;
    /// Returns the block's shared memory for the static at address `key`: the same pointer for every lane. It
    /// is filled with 0xa5 when the block starts, because a GPU does not initialize it either.
    fn shared(&self, key: usize, bytes: usize) -> *mut u8;
    /// Returns the start and length in bytes of the block's dynamic shared memory, filled like `shared`.
    fn dynamic_shared(&self) -> (*mut u8, usize);
    /// Notes a call at `site`. The callee's operations are ordered there, not at their own source position.
    fn calls(&self, site: Site);
    /// Notes that the lane enters (`true`) or leaves a function.
    fn call(&self, enters: bool);
    /// Returns the recording settings of the launch.
    fn recording(&self) -> Recording;
    /// Records `count` consecutive events of the lanes of `mask` at `location`, on all tracks. One of these
    /// lanes calls it for all, and no other lane of the warp runs before it returns. Records nothing if the
    /// launch is not traced, or if `location`, `mask` or `count` is 0.
    fn record(&self, location: u16, mask: u32, count: u32);
    /// Records this lane's value `id` of its module's table: the type and the bits, in the lower half for
    /// 32-bit types. Each lane of `mask` calls it, in ascending order, and no other lane of the warp runs in
    /// between. Records nothing if the launch records no values, or if `id` is unknown.
    fn value(&self, id: u16, of: ValueType, mask: u32, bits: u64);
    /// Stops the launch with an error that names block, warp and lane.
    fn fail(&self, message: &str, site: Site) -> !;
}

thread_local! {
    static CURRENT: Cell<Option<*const dyn Lane>> = const { Cell::new(None) };
}

/// Makes `lane` the current lane of this thread while `run` executes, then restores the previous one. With
/// coroutines, call it around each *resume*, not inside the coroutine, so that the running lane is current.
pub fn enter<R>(lane: &dyn Lane, run: impl FnOnce() -> R) -> R {
    struct Restore(Option<*const dyn Lane>);
    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.with(|current| current.set(self.0));
        }
    }
    // SAFETY: erases only the lifetime. `Restore` removes the pointer before `lane` is dropped.
    let erased: *const dyn Lane =
        unsafe { core::mem::transmute::<*const (dyn Lane + '_), *const dyn Lane>(lane) };
    let _restore = Restore(CURRENT.with(|current| current.replace(Some(erased))));
    run()
}

/// Returns true if a lane runs on this thread. False if the host calls a kernel's function directly.
pub fn in_launch() -> bool {
    CURRENT.with(Cell::get).is_some()
}

/// Calls `use_lane` with the current lane. Panics outside a launch, when kernel code is called directly.
pub fn with_lane<R>(use_lane: impl FnOnce(&dyn Lane) -> R) -> R {
    let lane = CURRENT
        .with(Cell::get)
        .expect("kernel code was called outside a launch: start it through a device or the simulator");
    // SAFETY: `enter` keeps the lane alive while it is current.
    use_lane(unsafe { &*lane })
}
