//! Functions shared by the tests.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::sync::Mutex;

use warptrace_device::simt;
use warptrace_sim::{Launch, LaunchReport, SimError, Simulator};

/// The simulator returns an error for wrong masks.
pub(crate) mod lanes {
    macro_rules! safe {
        ($($name:ident($($argument:ident: $kind:ty),*) $(-> $answer:ty)?;)*) => {$(
            #[track_caller]
            pub(crate) fn $name($($argument: $kind),*) $(-> $answer)? {
                // SAFETY: the simulator defines the result of every misuse.
                unsafe { warptrace_device::simt::$name($($argument),*) }
            }
        )*};
    }

    safe! {
        ballot(mask: u32, predicate: bool) -> u32;
        match_any(mask: u32, value: u32) -> u32;
        shuffle(mask: u32, value: u32, source: u32) -> u32;
        shuffle_up(mask: u32, value: u32, delta: u32) -> u32;
        shuffle_xor(mask: u32, value: u32, lanes: u32) -> u32;
        sync_threads();
        sync_warp(mask: u32);
    }
}

/// Events of a launch, written by the leader of each group like the tracer does: (warp, label, mask).
#[derive(Default)]
pub(crate) struct Log(Mutex<Vec<(u32, u32, u32)>>);

impl Log {
    #[track_caller]
    pub(crate) fn mark(&self, label: u32) {
        let mask = simt::active_mask();
        if mask.trailing_zeros() == simt::lane() {
            let warps_per_block = simt::block_threads().div_ceil(32);
            let warp = simt::linear_block() * warps_per_block + simt::warp_in_block();
            self.0.lock().expect("no lane panics with the log").push((warp, label, mask));
        }
    }

    pub(crate) fn of_warp(&self, warp: u32) -> Vec<(u32, u32)> {
        let events = self.0.lock().expect("no lane panics with the log");
        events.iter().filter(|event| event.0 == warp).map(|event| (event.1, event.2)).collect()
    }

    pub(crate) fn by_warp(&self) -> Vec<(u32, u32, u32)> {
        let mut events = self.0.lock().expect("no lane panics with the log").clone();
        events.sort_by_key(|event| event.0);
        events
    }

    pub(crate) fn in_time(&self) -> Vec<(u32, u32, u32)> {
        self.0.lock().expect("no lane panics with the log").clone()
    }
}

pub(crate) fn one_block(threads: u32, kernel: &(dyn Fn() + Sync)) -> Result<LaunchReport, SimError> {
    Simulator::new().launch(&Launch::new([1, 1, 1], [threads, 1, 1]), kernel)
}

pub(crate) fn error_of(threads: u32, kernel: &(dyn Fn() + Sync)) -> (SimError, String) {
    let error = one_block(threads, kernel).expect_err("the kernel is wrong");
    let text = error.to_string();
    (error, text)
}
