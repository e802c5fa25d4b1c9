//! A device that its handle, buffers and a trace use in turns.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::rc::Rc;
use std::sync::Arc;

use cudarc::driver::CudaStream;
use warptrace_device::SafeCall;
use warptrace_format::file::BufferKind;
use warptrace_host::{
    AddressMap, Allocation, Device, DeviceError, Memory, MemoryChange, MemoryType, Recorder,
};

use crate::{Error, LaunchConfig};

/// The device, and the memory that buffers have of it.
pub(crate) struct Shared {
    device: RefCell<Box<dyn Device>>,
    buffers: RefCell<Buffers>,
    /// Whether kernels can reach no other memory than these, and variables of their modules.
    owns_all: bool,
    /// Kernels and arguments of which a launch had too few threads: it is said once.
    too_few: RefCell<BTreeSet<(String, usize)>>,
    /// The stream of a device that is the user's own. It outlives the device, which uses it.
    stream: Option<Arc<CudaStream>>,
}

/// Memory that kernels can be given.
#[derive(Default)]
struct Buffers {
    /// Each with the change that brought it.
    live: AddressMap<u64>,
    changes: u64,
}

impl Buffers {
    fn add(&mut self, address: u64, bytes: u64) {
        self.changes += 1;
        self.live.insert(address, bytes, self.changes);
    }

    fn remove(&mut self, address: u64) {
        self.changes += 1;
        self.live.remove(address);
    }
}

/// What a trace was told of buffers: the last change, and of those that are there that which brought each.
#[derive(Default)]
pub(crate) struct ReportedBuffers {
    changes: u64,
    live: BTreeMap<u64, u64>,
}

impl Shared {
    /// Shares a device. `owns_all` says that kernels can reach no memory but what it allocates here.
    pub(crate) fn new(device: Box<dyn Device>, stream: Option<Arc<CudaStream>>, owns_all: bool) -> Rc<Self> {
        Rc::new(Self {
            device: RefCell::new(device),
            buffers: RefCell::default(),
            owns_all,
            too_few: RefCell::default(),
            stream,
        })
    }

    /// The user's own stream that kernels run on.
    pub(crate) fn stream(&self) -> Option<&Arc<CudaStream>> {
        self.stream.as_ref()
    }

    /// Notes memory that the device has not allocated, so that kernels may be given it.
    pub(crate) fn adopt(&self, address: u64, bytes: u64) {
        self.buffers.borrow_mut().add(address, bytes);
    }

    /// Forgets memory that was [adopted](Self::adopt).
    pub(crate) fn release(&self, address: u64) {
        self.buffers.borrow_mut().remove(address);
    }

    /// Whether kernels can reach no other memory than buffers and variables of their modules.
    pub(crate) const fn owns_all(&self) -> bool {
        self.owns_all
    }

    /// Tells a trace which buffers its next launch can reach.
    pub(crate) fn tell_buffers<W: Write + Send + 'static>(
        &self,
        told: &mut ReportedBuffers,
        recorder: &mut Recorder<W>,
    ) {
        let buffers = self.buffers.borrow();
        if std::mem::replace(&mut told.changes, buffers.changes) == buffers.changes {
            return;
        }
        told.live.retain(|address, change| {
            let is_there = buffers.live.get(*address) == Some(change);
            if !is_there {
                recorder.change_memory(MemoryChange::Gone(*address));
            }
            is_there
        });
        let mut new: Vec<_> = buffers.live.iter().filter(|(at, ..)| !told.live.contains_key(at)).collect();
        // Numbers are given in the order in which the program got them.
        new.sort_unstable_by_key(|(.., change)| *change);
        for (address, bytes, &change) in new {
            let memory = Memory { address, bytes, kind: BufferKind::Device, name: String::new() };
            recorder.change_memory(MemoryChange::Got(memory));
            told.live.insert(address, change);
        }
    }

    /// Uses the device. No user's code runs meanwhile that could ask for it again.
    pub(crate) fn with<T>(&self, run: impl FnOnce(&mut dyn Device) -> T) -> T {
        run(&mut **self.device.borrow_mut())
    }

    pub(crate) fn allocate(&self, bytes: u64) -> Result<Allocation, DeviceError> {
        let allocation = self.with(|device| device.allocate(bytes.max(1), MemoryType::Device))?;
        self.buffers.borrow_mut().add(allocation.address, allocation.bytes);
        Ok(allocation)
    }

    pub(crate) fn free(&self, allocation: Allocation) {
        self.buffers.borrow_mut().remove(allocation.address);
        // An error has nowhere to go; the device gives everything back when it is dropped.
        let _ = self.with(|device| device.free(allocation));
    }

    /// Checks what makes a call safe: its memory is in buffers, and what it writes overlaps nothing else.
    ///
    /// Says on standard error if elements have no thread that could write them.
    pub(crate) fn check(&self, call: &SafeCall<'_>, config: &LaunchConfig) -> Result<(), Error> {
        let kernel = || call.name().to_owned();
        let threads = config.shape().block_count() * u128::from(config.shape().block_threads());
        for memory in call.memory().iter().filter(|memory| u128::from(memory.threads) > threads) {
            let (argument, elements) = (memory.argument, memory.threads);
            if self.too_few.borrow_mut().insert((kernel(), argument)) {
                // Where standard error cannot be written, `eprintln!` would panic.
                let _ = writeln!(
                    std::io::stderr(),
                    "note: argument {argument} of kernel `{}` has {elements} elements, one a thread, and the launch \
                     {threads} threads: no thread writes the others; `LaunchConfig::for_elements({elements})` has enough",
                    kernel()
                );
            }
        }
        let buffers = self.buffers.borrow();
        for memory in call.memory().iter().filter(|memory| memory.bytes != 0) {
            if buffers.live.around(memory.address, memory.bytes).is_none() {
                return Err(Error::Argument { kernel: kernel(), argument: memory.argument });
            }
        }
        for written in call.memory().iter().filter(|memory| memory.is_written) {
            let overlapping = call.memory().iter().find(|other| {
                other.argument != written.argument
                    && other.address < written.address.saturating_add(written.bytes)
                    && written.address < other.address.saturating_add(other.bytes)
            });
            if let Some(other) = overlapping {
                let (written, other) = (written.argument, other.argument);
                return Err(Error::Overlap { kernel: kernel(), written, other });
            }
        }
        Ok(())
    }
}
