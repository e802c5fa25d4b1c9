//! `cuGetProcAddress`: how the runtime, and most programs, find the driver's functions.

use std::ffi::{CStr, c_char, c_int};

use super::{Handle, Hook, named};
use crate::driver::{Answer, SUCCESS};
use crate::inside::guarded;

/// The flag with which a program asks for the functions of per-thread default streams.
const PER_THREAD: u64 = 2;
/// The version of CUDA from which on `cuGetProcAddress` and graphs' nodes have their second version.
const CUDA_12: c_int = 12000;

/// Returns our function instead of the driver's, where there is one.
///
/// # Safety
/// The name is a string, and `found` can be read and written, if the call succeeded.
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
    // SAFETY: the caller's promise.
    let (symbol, real) = unsafe { (CStr::from_ptr(symbol), *found) };
    if real.is_null() {
        return answer;
    }
    let ours = guarded(|| hook_of(symbol.to_bytes(), version, flags).map(|hook| hook.replace(real)));
    if let Some(ours) = ours.flatten() {
        // SAFETY: the caller's promise.
        unsafe { *found = ours };
    }
    answer
}

/// Finds the hook of a function by the name without its version, as this interface takes it.
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
        // Their first versions are older than this interface is, or than what asks for them.
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
