//! A wrong mask is undefined on a GPU, so operations with masks are unsafe.

use warptrace_device::simt;

fn main() {
    simt::sync_threads();
    simt::sync_warp(1);
    let _ = simt::ballot(1, true);
    let _ = simt::shuffle(1, 2, 3);
    let _ = simt::shuffle_up(1, 2, 3);
    let _ = simt::shuffle_up_all(2, 3);
    let _ = simt::shuffle_xor(1, 2, 3);
    let _ = simt::match_any(1, 2);
}
