//! Keeps room on the GPU for the tracer's kernels next to the program's kernel.
//!
//! A kernel with many blocks fills the GPU, and each of its warps holds log memory until it leaves. If all of
//! them wait for memory, no kernel of the tracer finds room to encode the logs of warps that have left. So a
//! kernel with blocks for at least two waves runs with half as many blocks at once: each block gets shared
//! memory that it does not use. A kernel with fewer blocks, which may wait for each other, is unchanged.

use cudarc::driver::sys;

use super::CudaDevice;
use super::driver::Called;
use crate::{DeviceError, LaunchShape};

/// Returns the dynamic shared memory in bytes with which a kernel that needs `needed` bytes leaves room.
pub(super) fn leave_room(
    device: &CudaDevice,
    function: sys::CUfunction,
    kernel: &str,
    shape: &LaunchShape,
    needed: u64,
) -> Result<u64, DeviceError> {
    use sys::CUdevice_attribute as A;
    let blocks = |bytes: u64| blocks_at_once(function, kernel, shape, bytes);
    let most = blocks(needed)?;
    let target = (most / 2).max(1);
    let waves = u128::from(most) * u128::from(device.multiprocessors);
    if target >= most || shape.block_count() < 2 * waves {
        return Ok(needed);
    }
    let attribute = |name| super::attribute(device.ordinal, name).map(u64::from);
    let each = attribute(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?;
    let of_block = attribute(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
    let mut fixed = 0;
    // SAFETY: the function is loaded; the call writes one integer.
    unsafe {
        let name = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES;
        sys::cuFuncGetAttribute(&raw mut fixed, name, function)
            .result()
            .called_for("cuFuncGetAttribute", kernel)?;
    }
    // The smallest size that leaves no room for a further block.
    let wanted = (each / u64::from(target + 1) + 1).min(of_block).saturating_sub(fixed as u64).max(needed);
    set_shared(function, kernel, wanted)?;
    Ok(if blocks(wanted)? >= 1 { wanted } else { needed })
}

fn set_shared(function: sys::CUfunction, kernel: &str, bytes: u64) -> Result<(), DeviceError> {
    let attribute = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    // SAFETY: the function is loaded.
    unsafe { sys::cuFuncSetAttribute(function, attribute, i32::try_from(bytes).unwrap_or(i32::MAX)) }
        .result()
        .called_for("cuFuncSetAttribute(MAX_DYNAMIC_SHARED_SIZE)", kernel)
}

/// Returns the maximum resident blocks of a multiprocessor, with `bytes` bytes of dynamic shared memory.
pub(super) fn blocks_at_once(
    function: sys::CUfunction,
    kernel: &str,
    shape: &LaunchShape,
    bytes: u64,
) -> Result<u32, DeviceError> {
    let threads = i32::try_from(shape.block_threads()).unwrap_or(i32::MAX);
    let mut blocks = 0;
    // SAFETY: the function is loaded; the call writes one integer.
    unsafe {
        sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(&raw mut blocks, function, threads, bytes as usize)
    }
    .result()
    .called_for("cuOccupancyMaxActiveBlocksPerMultiprocessor", kernel)?;
    Ok(u32::try_from(blocks).unwrap_or(0))
}
