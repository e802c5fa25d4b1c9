//! Memory of the device, which is the host's.

use std::alloc::{Layout, alloc, dealloc};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Alignment of an allocation, as of the driver's.
const ALIGN: usize = 512;
/// Bytes before and behind an allocation that kernels reach all the same: as on a device, whose pages are
/// large.
const AROUND: usize = 512;

/// Length of each allocation, by address.
static ALLOCATIONS: Mutex<BTreeMap<u64, usize>> = Mutex::new(BTreeMap::new());

/// Those of them that are the host's.
static PINNED: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

fn allocations() -> MutexGuard<'static, BTreeMap<u64, usize>> {
    ALLOCATIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Allocates bytes that hold no zeros, as those of a device may; 0 if there are none.
pub fn allocate(bytes: usize) -> u64 {
    let Ok(layout) = layout(bytes.max(1)) else { return 0 };
    // SAFETY: the layout has at least one byte.
    let memory = unsafe { alloc(layout) };
    if memory.is_null() {
        return 0;
    }
    // SAFETY: as long as the layout.
    unsafe { memory.write_bytes(0xa5, layout.size()) };
    let address = (memory as u64) + AROUND as u64;
    allocations().insert(address, bytes.max(1));
    address
}

/// The same of the host, which no kernel of a test uses.
pub fn allocate_pinned(bytes: usize) -> u64 {
    let address = allocate(bytes);
    PINNED.lock().unwrap_or_else(PoisonError::into_inner).insert(address);
    address
}

/// Gives an allocation back; `false` if it is none.
pub fn free(address: u64) -> bool {
    PINNED.lock().unwrap_or_else(PoisonError::into_inner).remove(&address);
    let Some(bytes) = allocations().remove(&address) else { return false };
    let Ok(layout) = layout(bytes) else { return false };
    // SAFETY: allocated with this layout, and no longer listed.
    unsafe { dealloc((address as *mut u8).sub(AROUND), layout) };
    true
}

/// An allocation with what is around it.
fn layout(bytes: usize) -> Result<Layout, std::alloc::LayoutError> {
    Layout::from_size_align(bytes.saturating_add(2 * AROUND), ALIGN)
}

/// All allocations that kernels use, with what is around them.
pub fn all() -> Vec<(u64, usize)> {
    let pinned = PINNED.lock().unwrap_or_else(PoisonError::into_inner);
    let all = allocations();
    all.iter()
        .filter(|(address, _)| !pinned.contains(address))
        .map(|(&address, &bytes)| (address - AROUND as u64, bytes + 2 * AROUND))
        .collect()
}
