//! Kernels for the tests of traced launches.

use warptrace_device::simt;
use warptrace_macros::kernels;

#[kernels(device = warptrace_device, only_marked)]
mod rounds_kernel {
    use super::*;

    /// Rounds by lane, a branch, an early return.
    #[kernel]
    pub fn rounds(limit: u32) {
        trace!("ENTER");
        if simt::global_thread_x() >= limit {
            trace!("OUTSIDE");
            return;
        }
        for _ in 0..simt::lane() {
            trace!("STEP");
        }
        trace!("END");
    }
}
pub(crate) use rounds_kernel::rounds;

#[kernels(device = warptrace_device, only_marked)]
mod staircases_kernel {
    use super::*;

    /// Executes `times` rounds. In each, the steps by lane number are appended by the highest lane, then
    /// those by 31 - lane by different lanes.
    #[kernel]
    pub fn staircases(times: u32) {
        for _ in 0..times {
            for _ in 0..simt::lane() {
                trace!("STEP" = 3);
            }
            trace!("END");
            for _ in simt::lane()..31 {
                trace!("BACK");
            }
            trace!("TOP" = 12);
        }
    }
}
pub(crate) use staircases_kernel::staircases;

#[kernels(device = warptrace_device, only_marked)]
mod departures_kernel {
    use super::*;

    /// Like `staircases`, but a lane leaves the kernel after `stay` times its number.
    #[kernel]
    pub fn departures(times: u32, stay: u32) {
        for time in 0..times {
            if time == stay * simt::lane() {
                trace!("LEAVE" = 6);
                return;
            }
            for _ in 0..simt::lane() {
                trace!("STEP" = 3);
            }
            trace!("END");
        }
    }
}
pub(crate) use departures_kernel::departures;

#[kernels(device = warptrace_device, only_marked)]
mod parted_kernel {
    use super::*;

    /// Odd and even lanes execute separate paths, `times` times each.
    #[kernel]
    pub fn parted(times: u32) {
        if simt::lane() % 2 == 1 {
            for _ in 0..times {
                trace!("ODD" = 7);
                trace!("ODD_AGAIN");
            }
        } else {
            for _ in 0..times {
                trace!("EVEN");
                trace!("EVEN_AGAIN");
            }
        }
        trace!("MET");
    }
}
pub(crate) use parted_kernel::parted;

#[kernels(device = warptrace_device, only_marked)]
mod loops_kernel {
    use super::*;

    /// Two counted loops: lanes leave the first in five groups, the second together.
    #[kernel]
    pub fn loops(times: u32) {
        for time in 0..times {
            trace!("ENTER");
            let mut steps = trace_loop!("OUTSIDE");
            for _ in 0..simt::lane() % 5 {
                steps.tick();
            }
            drop(steps);
            let mut steps = trace_loop!("STEP");
            for _ in 0..time % 3 {
                steps.tick();
            }
            drop(steps);
            trace!("END");
        }
    }
}
pub(crate) use loops_kernel::loops;

#[kernels(device = warptrace_device, only_marked)]
mod long_runs_kernel {
    use super::*;

    /// `often` events at one trace point, then in a loop, with twice as many in half of the lanes.
    #[kernel]
    pub fn long_runs(often: u32) {
        trace!("ENTER");
        for _ in 0..often {
            trace!("OUTSIDE");
        }
        let mut steps = trace_loop!("STEP");
        for _ in 0..often * (1 + simt::lane() % 2) {
            steps.tick();
        }
        drop(steps);
        trace!("END");
    }
}
pub(crate) use long_runs_kernel::long_runs;

#[kernels(device = warptrace_device, only_marked)]
mod endless_kernel {
    #[kernel]
    pub fn endless() {
        let mut steps = trace_loop!("STEP" = 3);
        loop {
            steps.ticks::<65_535>();
        }
    }
}
pub(crate) use endless_kernel::endless;

#[kernels(device = warptrace_device, only_marked)]
mod low_locations_kernel {
    use super::*;

    /// A branch between locations below and above 255.
    #[kernel]
    pub fn low_locations() {
        for _ in 0..9 {
            if simt::lane().is_multiple_of(3) {
                trace!("LOW" = 255);
            } else {
                trace!("MIDDLE");
            }
            trace!("ABOVE" = 4097);
        }
    }
}
pub(crate) use low_locations_kernel::low_locations;

#[kernels(device = warptrace_device, only_marked)]
mod high_locations_kernel {
    use super::*;

    /// A branch between the highest locations.
    #[kernel]
    pub fn high_locations() {
        for _ in 0..9 {
            if simt::lane().is_multiple_of(3) {
                trace!("HIGH" = 65280);
            } else {
                trace!("HIGHER" = 65534);
            }
            trace!("HIGHEST");
        }
    }
}
pub(crate) use high_locations_kernel::high_locations;
