//! The implementation of `Lane`, the interface that a running lane uses.
//!
//! Lanes and their scheduler share memory only through `Cell`s. A lane runs inside the scheduler's call to
//! resume it, so neither may hold an exclusive reference to shared state.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use corosensei::{Coroutine, Yielder};
use warptrace_abi::data::ValueType;
use warptrace_abi::recording::Recording;
use warptrace_device::simt::WARP_LANES;
use warptrace_device::simt::host::{Lane, Site, WarpOp};

use crate::error::op_mask;
use crate::launch::Launch;
use crate::panics::{FailPayload, Failure, describe};
use crate::recorder::WarpRecorder;
use crate::shared::{SharedError, SharedMemory};
use crate::site::{Calls, NO_POINT, SiteTable};
use crate::stack::LaneStack;
use crate::warp::is_point;

pub(crate) const LANES: usize = WARP_LANES as usize;
/// Stack that must be free at an operation, because a panic and its unwinding need it.
const STACK_RESERVE: usize = 12 << 10;

/// A lane's coroutine. Values pass through [`WarpCells`], so that a switch moves only registers.
pub(crate) type LaneCoroutine = Coroutine<(), (), (), LaneStack>;

/// State of a warp's lanes, shared with the scheduler: arrays by lane, so that loops touch few cache lines.
pub(crate) struct WarpCells {
    /// Site where each lane waits; `None` before its first operation.
    pub(crate) site: [Cell<Option<Site>>; LANES],
    pub(crate) op: [Cell<WarpOp>; LANES],
    /// Functions that each lane is in, as reported by `Lane::call`.
    pub(crate) calls: [Cell<Calls>; LANES],
    pub(crate) answer: [Cell<u32>; LANES],
    /// Failure of the lane that returned last.
    pub(crate) failure: Cell<Option<Failure>>,
    pub(crate) recorder: RefCell<WarpRecorder>,
    yielder: [Cell<*const Yielder<(), ()>>; LANES],
    stack_floor: [Cell<usize>; LANES],
    thread: [Cell<[u32; 3]>; LANES],
    block: Cell<*const BlockCells>,
}

#[derive(Default)]
pub(crate) struct BlockCells {
    pub(crate) index: Cell<[u32; 3]>,
    pub(crate) shared: RefCell<SharedMemory>,
}

/// The launch as its lanes see it, and the running lane. One per thread of the simulator.
pub(crate) struct Context<'a> {
    launch: &'a Launch<'a>,
    shared_limit: usize,
    pub(crate) sites: SiteTable,
    pub(crate) unwinding: Cell<bool>,
    /// While a group of one lane runs: the lowest point at which another lane of its warp waits; otherwise 0.
    /// A lane whose point is lower may complete its own convergence operation (see `warp_op`).
    pub(crate) alone_below: Cell<u64>,
    /// Operations that the lane may complete itself before it must return to the scheduler.
    pub(crate) alone_budget: Cell<u32>,
    warp: Cell<*const WarpCells>,
    lane: Cell<u32>,
}

impl WarpCells {
    pub(crate) fn new() -> Self {
        Self {
            site: [const { Cell::new(None) }; LANES],
            op: [const { Cell::new(WarpOp::Converge) }; LANES],
            calls: [const { Cell::new(Calls { depth: 0, line: 0 }) }; LANES],
            answer: [const { Cell::new(0) }; LANES],
            failure: Cell::new(None),
            recorder: RefCell::new(WarpRecorder::off()),
            yielder: [const { Cell::new(std::ptr::null()) }; LANES],
            stack_floor: [const { Cell::new(0) }; LANES],
            thread: [const { Cell::new([0; 3]) }; LANES],
            block: Cell::new(std::ptr::null()),
        }
    }

    pub(crate) fn start(&self, block: &BlockCells, warp: u32, block_size: [u32; 3], recorder: WarpRecorder) {
        self.block.set(block);
        self.failure.set(None);
        self.recorder.replace(recorder);
        for lane in 0..WARP_LANES {
            let linear = warp * WARP_LANES + lane;
            let [x, y, _] = block_size;
            self.thread[lane as usize].set([linear % x, linear / x % y, linear / x / y]);
            self.site[lane as usize].set(None);
            self.calls[lane as usize].set(Calls::default());
        }
    }

    #[inline]
    pub(crate) fn point(&self, lane: usize, sites: &SiteTable) -> u64 {
        let (op, calls) = (self.op[lane].get(), self.calls[lane].get());
        self.site[lane].get().map_or(NO_POINT, |site| sites.point(site, op, calls))
    }
}

impl<'a> Context<'a> {
    pub(crate) fn new(launch: &'a Launch<'a>, shared_limit: usize) -> Self {
        Self {
            launch,
            shared_limit,
            sites: SiteTable::new(),
            unwinding: Cell::new(false),
            alone_below: Cell::new(0),
            alone_budget: Cell::new(0),
            warp: Cell::new(std::ptr::null()),
            lane: Cell::new(0),
        }
    }

    #[inline]
    pub(crate) fn select_warp(&self, warp: &WarpCells) {
        self.warp.set(warp);
    }

    #[inline]
    pub(crate) fn select_lane(&self, lane: usize) {
        self.lane.set(lane as u32);
    }

    /// # Safety
    /// The stack is unused and starts at `floor`. `warp`, `self` and `kernel` outlive the coroutine.
    pub(crate) unsafe fn coroutine(
        &self,
        warp: &WarpCells,
        lane: usize,
        stack: LaneStack,
        floor: usize,
        kernel: &(dyn Fn() + Sync),
    ) -> LaneCoroutine {
        warp.stack_floor[lane].set(floor);
        let body = move |yielder: &Yielder<(), ()>, ()| {
            warp.yielder[lane].set(yielder);
            if let Err(payload) = catch_unwind(AssertUnwindSafe(kernel)) {
                let failure = describe(payload);
                if !self.unwinding.get() {
                    warp.failure.set(Some(failure));
                }
            }
        };
        // SAFETY: the borrowed values outlive the coroutine (contract of this function).
        unsafe { Coroutine::with_stack_unchecked(stack, body) }
    }

    #[inline]
    fn here(&self) -> (&WarpCells, usize) {
        // SAFETY: a running lane calls this; the scheduler selected its warp. The cells outlive the lane.
        (unsafe { &*self.warp.get() }, self.lane.get() as usize)
    }

    fn block(&self) -> &BlockCells {
        // SAFETY: `WarpCells::start` set the block's cells, which outlive the warp's.
        unsafe { &*self.here().0.block.get() }
    }
}

// SAFETY: `here` is the running lane, whose indices are unique. Shared memory belongs to the block, is
// aligned, and is initialized before it is returned. A block runs on one thread at a time.
unsafe impl Lane for Context<'_> {
    #[inline]
    fn thread_index(&self) -> [u32; 3] {
        let (warp, lane) = self.here();
        warp.thread[lane].get()
    }

    fn block_index(&self) -> [u32; 3] {
        self.block().index.get()
    }

    fn block_size(&self) -> [u32; 3] {
        self.launch.block
    }

    fn grid_size(&self) -> [u32; 3] {
        self.launch.grid
    }

    #[inline]
    fn warp_op(&self, op: WarpOp, site: Site) -> u32 {
        let (warp, lane) = self.here();
        if std::thread::panicking() {
            // A destructor of an unwinding lane. It must not switch: the thread's panic count belongs to it.
            return op_mask(op).unwrap_or(1 << lane);
        }
        warp.site[lane].set(Some(site));
        warp.op[lane].set(op);
        let alone_below = self.alone_below.get();
        if alone_below != 0 && is_point(op) {
            // Only this lane runs, and the scheduler would select it again. This saves two switches.
            let budget = self.alone_budget.get();
            if budget > 0 && warp.point(lane, &self.sites) < alone_below {
                self.alone_budget.set(budget - 1);
                return 1 << lane;
            }
        }
        let marker = 0u8;
        if (&raw const marker).addr() < warp.stack_floor[lane].get() + STACK_RESERVE {
            self.fail("the lane's stack is almost full; raise Simulator::stack_bytes", site);
        }
        // SAFETY: this lane's coroutine set its yielder when it started, and it is the running coroutine.
        unsafe { (*warp.yielder[lane].get()).suspend(()) };
        warp.answer[lane].get()
    }

    fn shared(&self, key: usize, bytes: usize) -> *mut u8 {
        let answer = self.block().shared.borrow_mut().fixed(key, bytes, self.shared_limit);
        let message = match answer {
            Ok(start) => return start,
            Err(SharedError::SizeChanged { before, now }) => {
                format!("a shared static of {before} bytes is asked for again with {now} bytes")
            }
            Err(SharedError::TooMuch { total }) => {
                format!(
                    "the block asks for {total} bytes of shared memory; the limit is {}",
                    self.shared_limit
                )
            }
        };
        let (warp, lane) = self.here();
        self.fail(&message, warp.site[lane].get().unwrap_or(core::panic::Location::caller()))
    }

    fn dynamic_shared(&self) -> (*mut u8, usize) {
        self.block().shared.borrow().dynamic()
    }

    #[inline]
    fn calls(&self, site: Site) {
        let (warp, lane) = self.here();
        let calls = warp.calls[lane].get();
        if calls.depth == 0 {
            warp.calls[lane].set(Calls { line: site.line(), ..calls });
        }
    }

    #[inline]
    fn call(&self, enters: bool) {
        let (warp, lane) = self.here();
        let Calls { depth, line } = warp.calls[lane].get();
        warp.calls[lane].set(match (enters, depth) {
            (true, _) => Calls { depth: depth.saturating_add(1), line },
            (false, 0 | 1) => Calls::default(),
            (false, _) => Calls { depth: depth - 1, line },
        });
    }

    fn recording(&self) -> Recording {
        self.launch.recording
    }

    fn record(&self, location: u16, mask: u32, count: u32) {
        self.here().0.recorder.borrow_mut().record(location, mask, count);
    }

    fn value(&self, id: u16, of: ValueType, mask: u32, bits: u64) {
        if let Some(site) = self.launch.values.and_then(|values| values.site(id, of)) {
            let (warp, lane) = self.here();
            warp.recorder.borrow_mut().value(site, lane, mask, bits);
        }
    }

    #[cold]
    fn fail(&self, message: &str, site: Site) -> ! {
        // Does not invoke the panic hook.
        resume_unwind(Box::new(FailPayload { message: message.to_owned(), site }))
    }
}
