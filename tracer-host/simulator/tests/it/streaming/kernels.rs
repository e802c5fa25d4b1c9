//! Kernels for the tests of streamed logs.

use warptrace_device::simt;
use warptrace_macros::kernels;

#[kernels(device = warptrace_device, only_marked)]
mod fractal_kernel {
    use super::*;

    /// Points of a plane leave a circle after different numbers of steps.
    #[kernel]
    pub fn fractal(steps: u32) {
        let thread = simt::global_thread_x();
        let c = [(thread % 16) as f32 / 8.0 - 1.5, (thread / 16) as f32 / 8.0 - 1.0];
        let mut z = [0.0_f32; 2];
        trace!("ENTER");
        for _ in 0..steps {
            trace!("STEP");
            z = [z[0] * z[0] - z[1] * z[1] + c[0], 2.0 * z[0] * z[1] + c[1]];
            if z[0] * z[0] + z[1] * z[1] > 4.0 {
                trace!("LEAVE" = 5);
                return;
            }
            if z[0] < 0.0 {
                trace!("FAR" = 3);
            } else {
                trace!("NEAR");
            }
        }
        trace!("END" = 7);
    }
}
pub(crate) use fractal_kernel::fractal;

#[kernels(device = warptrace_device, only_marked)]
mod anything_kernel {
    use super::*;

    /// Pseudorandom events, for any duration.
    #[kernel]
    pub fn anything(times: u32, seed: u32) {
        let mut number = seed ^ simt::global_thread_x().wrapping_mul(0x9e37_79b9) | 1;
        for _ in 0..times {
            trace!("STEP" = 2);
            number ^= number << 13;
            number ^= number >> 17;
            number ^= number << 5;
            match number % 64 {
                0 => {
                    trace!("LEAVE" = 5);
                    return;
                }
                1..20 => trace!("NEAR" = 4),
                20..40 => {
                    let mut steps = trace_loop!("LOOP" = 6);
                    for _ in 0..number >> 30 {
                        steps.tick();
                    }
                    drop(steps);
                }
                _ => trace!("FAR" = 3),
            }
        }
        trace!("END" = 7);
    }
}
pub(crate) use anything_kernel::anything;

#[kernels(device = warptrace_device, only_marked)]
mod long_runs_kernel {
    use super::*;

    /// Runs with more repeats than a key can count, appended by lanes 0 and 1.
    #[kernel]
    pub fn long_runs(often: u32) {
        let mut steps = trace_loop!("LOOP" = 6);
        for _ in 0..often * (1 + simt::lane() % 2) {
            steps.tick();
        }
        drop(steps);
        trace!("END");
    }
}
pub(crate) use long_runs_kernel::long_runs;

#[kernels(device = warptrace_device, only_marked)]
mod apart_kernel {
    use super::*;

    /// Odd and even lanes execute separate paths in which each event is a run.
    #[kernel]
    pub fn apart(times: u32) {
        if simt::lane() % 2 == 1 {
            for _ in 0..times {
                trace!("STEP" = 2);
                trace!("FAR");
            }
        } else {
            for _ in 0..times {
                trace!("ENTER" = 1);
                trace!("NEAR" = 4);
            }
        }
    }
}
pub(crate) use apart_kernel::apart;
