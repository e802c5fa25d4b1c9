#![forbid(unsafe_code)]
//! Kernel arguments must not outlive their thread, because the arrays may be freed then.

use warptrace_macros::kernels;

#[kernels(device = warptrace_device)]
mod kept {
    use std::sync::Mutex;

    use warptrace_device::{AtomicSlice, DisjointSlice, thread};

    static KEPT: Mutex<Option<&'static mut u32>> = Mutex::new(None);
    static SHARED: Mutex<Option<AtomicSlice<'static, u32>>> = Mutex::new(None);

    #[kernel]
    pub fn keeps_an_element(out: DisjointSlice<u32>) {
        if let Some((_, own)) = out.own(thread::index())
            && let Ok(mut kept) = KEPT.lock()
        {
            *kept = Some(own);
        }
    }

    #[kernel]
    pub fn keeps_counters(counts: AtomicSlice<u32>) {
        if let Ok(mut kept) = SHARED.lock() {
            *kept = Some(counts);
        }
    }

    #[kernel]
    pub fn claims_to_be_static(out: DisjointSlice<'static, u32>) {
        let _ = out;
    }
}

fn main() {}
