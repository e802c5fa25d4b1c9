//! Device memory, allocated on the host.

use std::alloc::{Layout, alloc, dealloc};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Same as the driver's.
const ALIGN: usize = 512;
/// Bytes around an allocation that kernels can access without a fault, as on devices with large pages.
const AROUND: usize = 512;

/// Size of each allocation in bytes, by address.
static ALLOCATIONS: Mutex<BTreeMap<u64, usize>> = Mutex::new(BTreeMap::new());

static PINNED: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

/// Size of each page-locked range of the host, by address. No kernel of a test uses it.
static REGISTERED: Mutex<BTreeMap<u64, usize>> = Mutex::new(BTreeMap::new());

/// Registers a range. Fails if it overlaps a registered one.
pub fn register(address: u64, bytes: usize) -> bool {
    let mut all = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    let overlaps = all.range(..address + bytes as u64).any(|(at, bytes)| at + *bytes as u64 > address);
    if !overlaps {
        all.insert(address, bytes);
    }
    !overlaps
}

pub fn is_registered(address: u64, bytes: usize) -> bool {
    let all = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    let found = all.range(..=address).next_back();
    found.is_some_and(|(at, length)| address + bytes as u64 <= at + *length as u64)
}

pub fn unregister(address: u64) -> bool {
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner).remove(&address).is_some()
}

fn allocations() -> MutexGuard<'static, BTreeMap<u64, usize>> {
    ALLOCATIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Allocates memory and fills it with nonzero bytes. Returns 0 if allocation fails.
pub fn allocate(bytes: usize) -> u64 {
    let Ok(layout) = layout(bytes.max(1)) else { return 0 };
    // SAFETY: the layout has at least one byte.
    let memory = unsafe { alloc(layout) };
    if memory.is_null() {
        return 0;
    }
    // SAFETY: the memory has the size of the layout.
    unsafe { memory.write_bytes(0xa5, layout.size()) };
    let address = (memory as u64) + AROUND as u64;
    allocations().insert(address, bytes.max(1));
    address
}

/// Allocates pinned host memory, which no kernel of a test uses.
pub fn allocate_pinned(bytes: usize) -> u64 {
    let address = allocate(bytes);
    PINNED.lock().unwrap_or_else(PoisonError::into_inner).insert(address);
    address
}

pub fn free(address: u64) -> bool {
    PINNED.lock().unwrap_or_else(PoisonError::into_inner).remove(&address);
    let Some(bytes) = allocations().remove(&address) else { return false };
    let Ok(layout) = layout(bytes) else { return false };
    // SAFETY: allocated with this layout, and removed from the list.
    unsafe { dealloc((address as *mut u8).sub(AROUND), layout) };
    true
}

fn layout(bytes: usize) -> Result<Layout, std::alloc::LayoutError> {
    Layout::from_size_align(bytes.saturating_add(2 * AROUND), ALIGN)
}

pub fn all() -> Vec<(u64, usize)> {
    let pinned = PINNED.lock().unwrap_or_else(PoisonError::into_inner);
    let all = allocations();
    all.iter()
        .filter(|(address, _)| !pinned.contains(address))
        .map(|(&address, &bytes)| (address - AROUND as u64, bytes + 2 * AROUND))
        .collect()
}
