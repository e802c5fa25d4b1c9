//! Reads the device's clocks: their resolution, and the current global timer.

use std::ffi::c_void;

use cudarc::driver::{result, sys};

use super::driver::{Called, PtxKernel, Waits};
use crate::{ClockSteps, DeviceClocks, DeviceError};

/// The kernel in PTX, so that the host needs no device compiler. One thread takes samples of the clock and
/// the global timer. It writes the greatest common divisor of the differences for each of them, and then the
/// current timer.
///
/// Between two samples the thread runs up to seven loop iterations, divisions and a memory read, whose time
/// varies. A clock with steps of 16 cycles yields 16, and a clock that counts each cycle soon yields 1.
pub const CLOCKS_PTX: &str = r"
.version 7.0
.target sm_70
.address_size 64

.visible .entry warptrace_clocks(
    .param .u64 to,
    .param .u32 samples
)
{
    .reg .pred %done;
    .reg .u32 %left, %turns, %odd;
    .reg .u64 %to, %sample, %timer, %last_clock, %last_timer, %cycles, %nanoseconds, %since, %rest;

    ld.param.u64 %to, [to];
    ld.param.u32 %left, [samples];
    mov.u64 %cycles, 0;
    mov.u64 %nanoseconds, 0;
    mov.u64 %last_clock, %clock64;
    mov.u64 %last_timer, %globaltimer;
sample:
    setp.eq.u32 %done, %left, 0;
    @%done bra end;
    sub.u32 %left, %left, 1;
    and.b32 %turns, %left, 7;
turn:
    setp.eq.u32 %done, %turns, 0;
    @%done bra turned;
    sub.u32 %turns, %turns, 1;
    xor.b32 %odd, %turns, %left;
    bra turn;
turned:
    ld.volatile.global.u64 %rest, [%to];
    mov.u64 %sample, %clock64;
    mov.u64 %timer, %globaltimer;
    sub.u64 %since, %sample, %last_clock;
of_clock:
    setp.eq.u64 %done, %since, 0;
    @%done bra clock_done;
    mov.u64 %last_clock, %sample;
    rem.u64 %rest, %cycles, %since;
    mov.u64 %cycles, %since;
    mov.u64 %since, %rest;
    bra of_clock;
clock_done:
    sub.u64 %since, %timer, %last_timer;
of_timer:
    setp.eq.u64 %done, %since, 0;
    @%done bra sample;
    mov.u64 %last_timer, %timer;
    rem.u64 %rest, %nanoseconds, %since;
    mov.u64 %nanoseconds, %since;
    mov.u64 %since, %rest;
    bra of_timer;
end:
    st.global.u64 [%to], %cycles;
    st.global.u64 [%to+8], %nanoseconds;
    mov.u64 %timer, %globaltimer;
    st.global.u64 [%to+16], %timer;
    ret;
}
";

/// Samples for the resolution: a few tenths of a millisecond, over a hundred steps of a 1 µs timer.
const SAMPLES: u32 = 2_048;
const RESULT_BYTES: usize = 24;

pub(super) struct Clocks {
    kernel: PtxKernel,
    memory: u64,
}

impl Clocks {
    /// Loads the kernel. A context must be current.
    pub(super) fn new(waits: &Waits) -> Result<Self, DeviceError> {
        let kernel = PtxKernel::load("warptrace_clocks", CLOCKS_PTX, waits)?;
        // SAFETY: a plain allocation, freed by `drop`.
        let memory = unsafe { result::malloc_sync(RESULT_BYTES) }.called("cuMemAlloc")?;
        Ok(Self { kernel, memory })
    }

    /// Reads the clocks. `steps` is `None` if a clock did not advance.
    pub(super) fn read(&self, with_steps: bool, stream: sys::CUstream) -> Result<DeviceClocks, DeviceError> {
        let [cycles, nanoseconds, timer] = self.run(if with_steps { SAMPLES } else { 0 }, stream)?;
        let steps = (cycles != 0 && nanoseconds != 0).then_some(ClockSteps { cycles, nanoseconds });
        Ok(DeviceClocks { steps, timer: Some(timer).filter(|timer| *timer != 0) })
    }

    fn run(&self, mut samples: u32, stream: sys::CUstream) -> Result<[u64; 3], DeviceError> {
        let mut to = self.memory;
        let mut arguments: [*mut c_void; 2] = [(&raw mut to).cast(), (&raw mut samples).cast()];
        let mut found = [0u64; 3];
        // SAFETY: the arguments match the kernel in order and size; it writes only the allocated bytes.
        unsafe {
            result::memset_d8_async(self.memory, 0, RESULT_BYTES, stream).called("cuMemsetD8Async")?;
            self.kernel.run([1, 1], stream, &mut arguments, &mut found, self.memory)?;
        }
        Ok(found)
    }
}

impl Drop for Clocks {
    fn drop(&mut self) {
        // `drop` ignores errors. After a failed kernel this call fails, without harm.
        // SAFETY: allocated in `new`, and not used by anything else.
        let _ = unsafe { result::free_sync(self.memory) };
    }
}
