//! Tests of memory as kernels use it, with host threads in place of lanes. `cargo xtask miri` runs them under
//! Miri, which detects out-of-bounds accesses, races and invalid values.

use core::cell::RefCell;
use std::thread;

use warptrace_abi::data::ValueType;
use warptrace_abi::recording::Recording;
use warptrace_device::simt::host::{Lane, Site, WarpOp, enter};
use warptrace_device::thread::{block_leader, count, index};
use warptrace_device::{AtomicSlice, BlockIndex, DisjointSlice, Global, Pod, shared_arrays};

const BLOCKS: u32 = 3;
const THREADS: u32 = 4;

struct Alone {
    block: u32,
    thread: u32,
    /// Shared memory of a block. Only this thread of the block uses it.
    shared: RefCell<Vec<u128>>,
}

// SAFETY: each thread has distinct indices. Shared memory is initialized, aligned to 16, and used by nothing
// else.
unsafe impl Lane for Alone {
    fn thread_index(&self) -> [u32; 3] {
        [self.thread, 0, 0]
    }

    fn block_index(&self) -> [u32; 3] {
        [self.block, 0, 0]
    }

    fn block_size(&self) -> [u32; 3] {
        [THREADS, 1, 1]
    }

    fn grid_size(&self) -> [u32; 3] {
        [BLOCKS, 1, 1]
    }

    fn warp_op(&self, op: WarpOp, _: Site) -> u32 {
        panic!("{op:?} of a lane that is alone")
    }

    fn calls(&self, _: Site) {}

    fn shared(&self, _: usize, bytes: usize) -> *mut u8 {
        let mut shared = self.shared.borrow_mut();
        if shared.is_empty() {
            shared.resize(bytes.div_ceil(16), 0);
        }
        shared.as_mut_ptr().cast()
    }

    fn dynamic_shared(&self) -> (*mut u8, usize) {
        (core::ptr::null_mut(), 0)
    }

    fn call(&self, _: bool) {}

    fn recording(&self) -> Recording {
        panic!("nothing is recorded")
    }

    fn record(&self, _: u16, _: u32, _: u32) {}

    fn value(&self, _: u16, _: ValueType, _: u32, _: u64) {}

    fn fail(&self, message: &str, _: Site) -> ! {
        panic!("{message}")
    }
}

fn launch(kernel: impl Fn() + Sync) {
    thread::scope(|scope| {
        for block in 0..BLOCKS {
            for thread in 0..THREADS {
                let kernel = &kernel;
                scope.spawn(move || enter(&Alone { block, thread, shared: RefCell::default() }, kernel));
            }
        }
    });
}

fn global<T: Pod>(values: &mut [T]) -> Global<T> {
    Global::new(values.as_mut_ptr().expose_provenance() as u64, values.len() as u64)
}

#[test]
fn each_thread_writes_its_own_element() {
    let (mut values, mut blocks) = ([0u32; 10], [0u64; 3]);
    let (one_each, one_a_block) = (global(&mut values), global(&mut blocks));
    launch(|| {
        // SAFETY: the arrays outlive the launch, and only these slices access them.
        let (values, blocks): (DisjointSlice<'_, u32>, DisjointSlice<'_, u64, BlockIndex>) =
            unsafe { (DisjointSlice::new(&one_each), DisjointSlice::new(&one_a_block)) };
        assert_eq!(count(), 12);
        if let Some((index, value)) = values.own(index()) {
            *value = index as u32 + 1;
        }
        if let Some(leader) = block_leader() {
            let (index, value) = blocks.own(leader).expect("there is one for each block");
            *value = 10 * index as u64;
        }
    });
    assert_eq!(values, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    assert_eq!(blocks, [0, 10, 20]);
}

#[test]
fn threads_meet_in_atomics() {
    let (mut words, mut longs) = ([0u32, u32::MAX, 0, 7, 5], [1u64, 1 << 40, 0]);
    let (words_at, longs_at) = (global(&mut words), global(&mut longs));
    launch(|| {
        // SAFETY: the arrays outlive the launch, and only these slices access them.
        let (words, longs): (AtomicSlice<'_, u32>, AtomicSlice<'_, u64>) =
            unsafe { (AtomicSlice::new(&words_at), AtomicSlice::new(&longs_at)) };
        let own = index().get() as u32;
        words.fetch_add(0, 1);
        words.fetch_min(1, own + 3);
        words.fetch_max(2, own);
        words.fetch_and(3, !1);
        words.fetch_or(3, 8);
        while let Err(found) = longs.compare_exchange(0, longs.load(0), 2 * longs.load(0)) {
            assert!(found.is_power_of_two());
        }
        longs.fetch_min(1, u64::from(own) + (1 << 33));
        longs.fetch_add(2, 1 << 32);
        if own == 0 {
            assert_eq!((words.swap(4, 6), words.load(4)), (5, 6));
        }
    });
    assert_eq!(words, [12, 3, 11, 14, 6]);
    assert_eq!(longs[1..], [1 << 33, 12 << 32]);
}

#[test]
#[should_panic(expected = "index out of bounds: the length is 2 but the index is 2")]
fn an_atomic_past_the_end_is_a_panic() {
    let mut words = [0u32; 2];
    let array = global(&mut words);
    // SAFETY: the array outlives it.
    let slice: AtomicSlice<'_, u32> = unsafe { AtomicSlice::new(&array) };
    slice.fetch_add(2, 1);
}

shared_arrays! {
    fn numbers() -> [u32; 6];
}

#[test]
fn shared_memory_holds_what_was_written() {
    launch(|| {
        let (words, vectors) = (numbers(), numbers().cast::<u128>());
        for number in 0..6 {
            // SAFETY: the index is below the length; no other thread has this block's memory.
            unsafe { words.set(number, number + 1) };
        }
        // SAFETY: the indices are below the length; no other thread has this block's memory.
        unsafe {
            assert_eq!(words.fetch_add(5, 10), 6);
            assert_eq!(words.get(5), 16);
            assert_eq!(vectors.get(0), 1 | 2 << 32 | 3 << 64 | 4 << 96);
        }
    });
}

#[test]
fn plain_accesses_reach_the_array() {
    let mut values = [1.5f64, 2.5, 3.5];
    let array = global(&mut values);
    // SAFETY: inside the array, which nothing else uses.
    unsafe {
        array.set(1, array.get(0) + array.get(2));
        assert_eq!(warptrace_device::trace::slice(&array), [1.5, 5.0, 3.5]);
        assert!(warptrace_device::trace::slice(&Global::<f64>::empty()).is_empty());
    }
}
