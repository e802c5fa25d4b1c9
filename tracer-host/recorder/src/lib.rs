//! Tracing sessions: allocate device memory, launch, drain, write.
//!
//! ```text
//! Session ── launch ──▶ Device (CudaDevice | SimDevice) ── chunks ──▶ Session ── frames ──▶ TraceWriter
//! TraceWriter ──▶ .wtrc
//! ```
//!
//! - [`Device`] runs kernels and holds memory. [`CudaDevice`] is a GPU, used through the driver, which is
//!   loaded at run time. [`SimDevice`] is the simulator. [`DeviceChoice`] opens one by name.
//! - [`Session`] owns the pool, numbers the launches, drains and writes. A [`Window`] selects the part of the
//!   program to record.
//! - With [`Launcher`], the same code runs kernels traced ([`Session`]) or untraced ([`Untraced`]).

mod addresses;
mod choose;
mod clock;
mod cuda;
mod device;
mod error;
mod file_name;
mod host_memory;
mod launcher;
mod live;
mod message;
mod origin;
mod packed;
mod session;
mod sim;
mod sites;
mod threads;
mod trace_output;
pub mod writer;

pub use addresses::AddressMap;
pub use choose::{DeviceChoice, DeviceChoiceError, OpenError, Opened};
pub use clock::{HostClock, Moment};
pub use cuda::{
    CLOCKS_PTX, CudaDevice, EndEvent, EndEvents, MARKS_VARIABLE, REGISTERS_VARIABLE, encoder_ptx,
    traced_registers,
};
pub use device::{
    Allocation, Blocks, ClockSteps, Device, DeviceClocks, DeviceFacts, EncodeJob, Encoded, LaunchShape,
    LaunchTime, Logs, MemoryType, Prepare, Simulated, Traced,
};
pub use error::DeviceError;
pub use file_name::{FileNameError, NameParts, file_name, is_name_of_one};
pub use host_memory::HostMemory;
pub use launcher::{Buffer, Launcher, Pod, Session, Untraced};
pub use live::{LiveMemory, MAX_READ, Serve};
pub use message::{HostMessage, LaunchName, Memory, MemoryChange};
pub use origin::{ranks, ranks_of};
pub use session::{
    Drainer, Ended, Ending, Interrupted, LaunchReport, Launches, MemoryUse, Next, OldestLaunch, Patience,
    Recorder, Reserved, SessionError, Ticket, TracedProgram, Waits, command_line, command_of, memory_of,
};
pub use sim::{ProgressHook, SimDevice, SimOptions};
pub(crate) use sites::value_info;
pub use sites::{site_info, wait_info};
pub use trace_output::{Earlier, TraceOutput};
pub use warptrace_abi::recording::{LogKind, Placement, Recording};
pub use warptrace_encode::{DEVICE_ECL, DEVICE_PREDICT, FlattenJob};
pub use warptrace_sim::Progress;
pub use warptrace_spec::{
    BlockChoice, MemorySize, MemorySizeError, NumberRange, Policy, RecordingSpec, Spaces, SpecError, Times,
    Visits, Window, WindowError,
};
