//! `cuGetProcAddress`: the runtime and most programs look up the driver's functions with it.

use std::ffi::{CStr, c_char, c_int};

use super::{Handle, Hook, named};
use crate::driver::{Answer, SUCCESS};
use crate::inside::guarded;

/// Flag that requests functions for per-thread default streams.
const PER_THREAD: u64 = 2;
/// CUDA version that added version 2 of `cuGetProcAddress` and of functions for graph nodes.
const CUDA_12: c_int = 12000;

/// Replaces the driver's function by its hook, if it has one.
///
/// # Safety
/// If `answer` is success, `symbol` is null or a C string, and `found` is null or readable and writable.
pub(super) unsafe fn exchange(
    answer: Answer,
    symbol: *const c_char,
    found: *mut Handle,
    version: c_int,
    flags: u64,
) -> Answer {
    if answer != SUCCESS || symbol.is_null() || found.is_null() {
        return answer;
    }
    // SAFETY: guaranteed by the caller.
    let (symbol, real) = unsafe { (CStr::from_ptr(symbol), *found) };
    if real.is_null() {
        return answer;
    }
    let ours = guarded(|| hook_of(symbol.to_bytes(), version, flags).map(|hook| hook.replace(real)));
    if let Some(ours) = ours.flatten() {
        // SAFETY: guaranteed by the caller.
        unsafe { *found = ours };
    }
    answer
}

/// Returns the hook of a function, by its name without a version suffix.
fn hook_of(symbol: &[u8], version: c_int, flags: u64) -> Option<Hook> {
    if flags & PER_THREAD != 0
        && let Some(hook) = named(&[symbol, b"_ptsz"].concat())
    {
        return Some(hook);
    }
    if symbol == b"cuGraphInstantiate" && version >= CUDA_12 {
        return Some(Hook::cuGraphInstantiateWithFlags);
    }
    let second = named(&[symbol, b"_v2"].concat());
    match second {
        // Version 1 of all other functions is older than `cuGetProcAddress`.
        Some(
            Hook::cuGetProcAddress_v2 | Hook::cuGraphExecKernelNodeSetParams_v2 | Hook::cuGraphExecUpdate_v2,
        ) if version < CUDA_12 => named(symbol),
        Some(hook) => Some(hook),
        None => named(symbol),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_flags_choose_the_function() {
        for (symbol, version, flags, hook) in [
            ("cuLaunchKernel", 13000, 1, Some(Hook::cuLaunchKernel)),
            ("cuLaunchKernel", 13000, 2, Some(Hook::cuLaunchKernel_ptsz)),
            ("cuModuleLoadData", 13000, 2, Some(Hook::cuModuleLoadData)),
            ("cuGetProcAddress", 11030, 0, Some(Hook::cuGetProcAddress)),
            ("cuGetProcAddress", 12000, 0, Some(Hook::cuGetProcAddress_v2)),
            ("cuCtxDestroy", 4000, 0, Some(Hook::cuCtxDestroy_v2)),
            ("cuGraphExecUpdate", 11000, 0, Some(Hook::cuGraphExecUpdate)),
            ("cuGraphExecUpdate", 12000, 0, Some(Hook::cuGraphExecUpdate_v2)),
            ("cuGraphInstantiate", 11040, 0, Some(Hook::cuGraphInstantiate_v2)),
            ("cuGraphInstantiate", 13000, 0, Some(Hook::cuGraphInstantiateWithFlags)),
            ("cuGraphLaunch", 13000, 2, Some(Hook::cuGraphLaunch_ptsz)),
            ("cuMemAlloc", 13000, 0, Some(Hook::cuMemAlloc_v2)),
            ("cuMemFreeAsync", 13000, 2, Some(Hook::cuMemFreeAsync_ptsz)),
            ("cuMemGetInfo", 13000, 0, None),
        ] {
            assert_eq!(hook_of(symbol.as_bytes(), version, flags), hook, "{symbol} {version} {flags}");
        }
    }
}
