//! Sessions on a scripted device, and on the simulator.

mod additions;
mod drains;
mod errors;
mod fake;
mod host;
mod interrupted_spans;
mod kernels;
mod launches;
mod limits;
mod log_memory;
mod losses;
mod output;
mod positions;
mod rings;
mod room;
mod spans;
mod streamed;
mod window;

use std::io::Write;

use warptrace_device::KernelCall;
use warptrace_format::codec::CodecSpec;

use super::{SessionError, TracedProgram};
use crate::{LaunchShape, LaunchTime, Launcher, MemorySize, RecordingSpec, Session};

const PROGRAM: TracedProgram<'static> =
    TracedProgram { kernels: &[("k", ""), ("other", "")], modules: &[], ptx: "" };

fn options(kib: u64) -> RecordingSpec {
    RecordingSpec {
        chunk_bytes: 1024,
        memory: Some(MemorySize(kib << 10)),
        ..RecordingSpec::new(CodecSpec::Raw)
    }
}

fn launch<W: Write + Send + 'static>(
    session: &mut Session<'_, W>,
    kernel: &'static str,
) -> Result<LaunchTime, SessionError> {
    launch_warps(session, kernel, 2, 64)
}

fn launch_warps<W: Write + Send + 'static>(
    session: &mut Session<'_, W>,
    kernel: &'static str,
    warps: u64,
    block: u32,
) -> Result<LaunchTime, SessionError> {
    let call = KernelCall::new(kernel, Vec::new(), || {});
    // SAFETY: the call has no arguments.
    unsafe { session.launch(&call, &LaunchShape::linear(32 * warps, block)) }
}
