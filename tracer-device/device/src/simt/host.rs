//! SIMT operations on the host: each call is handed to the lane that the simulator is running.
//!
//! The simulator implements [`Lane`] and makes a lane current on its thread for as long as it runs that
//! lane ([`enter`]). Kernel code never sees the trait.

use core::panic::Location;
use std::cell::Cell;

use warptrace_abi::data::ValueType;
use warptrace_abi::recording::Recording;

/// Where in the source an operation stands; the simulator's program counter.
pub type Site = &'static Location<'static>;

/// An operation in which a group of lanes takes part. Every variant is a point where the simulator may switch
/// lanes. Lanes of a warp that wait at the same `Site` with the same kind of operation form a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WarpOp {
    /// Answer: the mask of the group (what `activemask` gives at a point of convergence).
    Converge,
    /// As `Converge`, for lanes that have left a loop: the site is that of the loop's trace point, where
    /// others may still come. So the simulator lets those go first.
    Rejoin,
    /// As `Converge`, for a trace point that `#[warptrace::kernels]` set. Such code stops at a
    /// [`Join`](Self::Join) at the end of each loop body, so the order of points says all about its
    /// structure.
    Located {
        /// The location's id, which tells two trace points apart that stand at one position.
        location: u16,
    },
    /// As `Converge`, at the end of a loop's body. Comes before a `Located` at the same position.
    Join,
    /// `__syncwarp(mask)`: waits until every lane of `mask` that has not left the kernel is there. Answer:
    /// mask.
    SyncWarp {
        /// Lanes that take part.
        mask: u32,
    },
    /// `__syncthreads()`. Answer: 0.
    SyncThreads,
    /// `__ballot_sync(mask, predicate)`. Answer: the lanes of `mask` whose predicate holds.
    Ballot {
        /// Lanes that take part.
        mask: u32,
        /// This lane's vote.
        predicate: bool,
    },
    /// `__shfl_sync(mask, value, source)`. Answer: the value of lane `source` (taken mod 32).
    Shuffle {
        /// Lanes that take part.
        mask: u32,
        /// This lane's value.
        value: u32,
        /// The lane whose value is asked for. A source outside `mask` is an error.
        source: u32,
    },
    /// `__match_any_sync(mask, value)`. Answer: the lanes of `mask` that brought the same value.
    MatchAny {
        /// Lanes that take part.
        mask: u32,
        /// This lane's value.
        value: u32,
    },
    /// A lane that spins on memory lets other warps run. Answer: 0.
    Yield,
}

/// The lane that is running, as the simulator shows it to a kernel.
///
/// # Safety
/// Kernels use what it returns without a check of their own: no two lanes of a launch have the same indices;
/// a pointer of [`shared`](Self::shared) or [`dynamic_shared`](Self::dynamic_shared) is valid for as many
/// bytes, initialised and aligned to 16, until the block ends, and no other thread of the host uses it.
pub unsafe trait Lane {
    /// Thread index in its block.
    fn thread_index(&self) -> [u32; 3];
    /// Block index in the grid.
    fn block_index(&self) -> [u32; 3];
    /// Threads of a block.
    fn block_size(&self) -> [u32; 3];
    /// Blocks of the grid.
    fn grid_size(&self) -> [u32; 3];
    /// Takes part in an operation; may switch to other lanes before it returns.
    fn warp_op(&self, op: WarpOp, site: Site) -> u32;
    /// Block shared memory for the static named by `key` (its address): the same pointer for every lane of
    /// the block, 16-byte aligned, valid until the block ends. Each block finds it filled with 0xa5, because
    /// a GPU does not initialise it either.
    fn shared(&self, key: usize, bytes: usize) -> *mut u8;
    /// The block's dynamic shared memory: start and length in bytes. Filled with 0xa5 when the block starts.
    fn dynamic_shared(&self) -> (*mut u8, usize);
    /// Notes that the lane calls a function at `site`. The function's operations come where it is
    /// called, wherever it stands in the source.
    fn calls(&self, site: Site);
    /// Notes that the lane enters (`true`) or leaves a function.
    fn call(&self, enters: bool);
    /// What the launch records.
    fn recording(&self) -> Recording;
    /// Records that the lanes of `mask` came to `location` `count` times in a row, on all tracks. One lane of
    /// them calls it for all, and no other lane of the warp runs before it returns. Records nothing if the
    /// launch is not traced, or if `location`, `mask` or `count` is 0.
    fn record(&self, location: u16, mask: u32, count: u32);
    /// Records what this lane holds of the value `id` in its module's table: its type, and the bits, in the
    /// lower half if the type has 32. Each lane of `mask` calls it, in ascending order, and no lane of the warp
    /// that is none of them runs in between. Records nothing if the launch records no values, or does not know
    /// this one.
    fn value(&self, id: u16, of: ValueType, mask: u32, bits: u64);
    /// Ends the launch with an error that names block, warp and lane.
    fn fail(&self, message: &str, site: Site) -> !;
}

thread_local! {
    static CURRENT: Cell<Option<*const dyn Lane>> = const { Cell::new(None) };
}

/// Makes `lane` the current lane of this thread while `run` executes, then restores the one before.
///
/// With coroutines: call it around each *resume* of a lane's coroutine, not inside the coroutine, so that the
/// thread's current lane is always the one that is running.
pub fn enter<R>(lane: &dyn Lane, run: impl FnOnce() -> R) -> R {
    struct Restore(Option<*const dyn Lane>);
    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.with(|current| current.set(self.0));
        }
    }
    // SAFETY: only the lifetime is erased; `Restore` takes the pointer out again before `lane` goes away.
    let erased: *const dyn Lane =
        unsafe { core::mem::transmute::<*const (dyn Lane + '_), *const dyn Lane>(lane) };
    let _restore = Restore(CURRENT.with(|current| current.replace(Some(erased))));
    run()
}

/// Whether a lane runs on this thread: false where the host calls a function of a kernel by itself.
pub fn in_launch() -> bool {
    CURRENT.with(Cell::get).is_some()
}

/// Runs `use_lane` with the current lane.
///
/// # Panics
/// Outside the simulator: kernel code was called as a plain function.
pub fn with_lane<R>(use_lane: impl FnOnce(&dyn Lane) -> R) -> R {
    let lane = CURRENT
        .with(Cell::get)
        .expect("kernel code was called outside a launch: start it through a device or the simulator");
    // SAFETY: `enter` keeps the lane alive while it is current.
    use_lane(unsafe { &*lane })
}
