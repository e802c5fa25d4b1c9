//! A column allocates only as much memory as its bytes can hold, whatever number of values it announces.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use warptrace_columns::{ColumnCursor, decode};

struct Counting;

static TAKEN: AtomicUsize = AtomicUsize::new(0);

// SAFETY: forwards to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        TAKEN.fetch_add(layout.size(), Relaxed);
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        TAKEN.fetch_add(layout.size(), Relaxed);
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: guaranteed by the caller.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn taken(bytes: &[u8]) -> usize {
    let before = TAKEN.load(Relaxed);
    let _ = decode::<u64>(&mut ColumnCursor::new(bytes));
    TAKEN.load(Relaxed) - before
}

// Only one test, because the counter includes other threads.
#[test]
fn announcing_costs_no_more_than_the_bytes() {
    let (values, elements) = ([0x80, 0x80, 0x80, 0x08], [0x80, 0x80, 0x80, 0x08]);
    for packing in [0, 1, 2, 4, 5, 6] {
        for length in [0, 1, 1000, 1 << 16] {
            let head = [&[1, packing][..], &values, if packing & 4 != 0 { &elements } else { &[] }].concat();
            let bytes = [&head[..], &vec![0; length]].concat();
            assert_eq!(taken(&bytes), 0, "packing {packing}, {length} bytes");
        }
    }
    // One element that may be a run, 2^24 values.
    assert_eq!(taken(&[&[1, 6][..], &values, &[1], &vec![0; 1 << 16]].concat()), 0);
    // Columns that fit are decoded, here at the maximum of values per byte.
    let bytes = [&[1, 2, 0x80, 0x80, 0x02][..], &[0; 256]].concat();
    assert_eq!(taken(&bytes), 128 * 256 * 8);
    let bytes = [&[1, 6, 0x80, 0x80, 0x02, 0x80, 0x80, 0x02][..], &[0; 256]].concat();
    assert_eq!(taken(&bytes), 2 * 128 * 256 * 8);
}
