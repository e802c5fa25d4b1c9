//! Host memory that kernels can access. It stays readable after a kernel has failed, unlike device memory.

use cudarc::driver::{result, sys};

use super::driver::{self, Called};
use crate::{AddressMap, DeviceError};

/// Host allocations. Kernels and host use the same addresses.
#[derive(Debug, Default)]
pub(super) struct Pinned {
    allocations: AddressMap<()>,
}

impl Pinned {
    /// Allocates bytes and sets them to zero; returns their address.
    pub(super) fn allocate(&mut self, bytes: u64) -> Result<u64, DeviceError> {
        let out_of_memory = |reason: String| DeviceError::OutOfMemory { bytes, reason };
        let length = usize::try_from(bytes.max(1)).map_err(|error| out_of_memory(error.to_string()))?;
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
        // SAFETY: a plain allocation, freed by `free` or `drop`.
        let memory = unsafe { result::malloc_host(length, flags) }.map_err(|error| {
            let (name, description) = driver::words(error);
            out_of_memory(format!("cuMemHostAlloc: {name} ({description})"))
        })?;
        // SAFETY: the allocation has this length, and nothing else uses it.
        unsafe { memory.cast::<u8>().write_bytes(0, length) };
        let address = memory.expose_provenance() as u64;
        self.allocations.insert(address, bytes.max(1), ());
        Ok(address)
    }

    /// Frees an allocation; `None` if it is unknown.
    pub(super) fn free(&mut self, address: u64) -> Option<Result<(), DeviceError>> {
        self.allocations.remove(address)?;
        let memory = std::ptr::with_exposed_provenance_mut(address as usize);
        // SAFETY: allocated here and no longer listed.
        Some(unsafe { result::free_host(memory) }.called("cuMemFreeHost"))
    }

    pub(super) fn holds(&self, address: u64, bytes: u64) -> bool {
        self.allocations.around(address, bytes).is_some()
    }

    pub(super) fn pointer(&self, address: u64, bytes: u64) -> Option<*mut u8> {
        self.holds(address, bytes).then(|| std::ptr::with_exposed_provenance_mut(address as usize))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        for (address, ..) in self.allocations.iter() {
            let memory = std::ptr::with_exposed_provenance_mut(address as usize);
            // Errors are ignored. SAFETY: allocated here, and freed only once.
            let _ = unsafe { result::free_host(memory) };
        }
    }
}
