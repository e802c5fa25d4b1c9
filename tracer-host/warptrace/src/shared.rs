//! A device shared by its handle, buffers and a trace.

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

pub(crate) struct Shared {
    device: RefCell<Box<dyn Device>>,
    buffers: RefCell<Buffers>,
    /// True if kernels can access only this memory and variables of their modules.
    owns_all: bool,
    /// Kernels and arguments for which a warning about too few threads was printed, once each.
    too_few: RefCell<BTreeSet<(String, usize)>>,
    /// The user's stream, if any. It must outlive the device, which uses it.
    stream: Option<Arc<CudaStream>>,
}

#[derive(Default)]
struct Buffers {
    /// Value: number of the change that added the memory.
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

/// Buffers reported to a trace: the last change, and the change that added each existing buffer.
#[derive(Default)]
pub(crate) struct ReportedBuffers {
    changes: u64,
    live: BTreeMap<u64, u64>,
}

impl Shared {
    /// Shares a device. `owns_all`: kernels can access only memory that the device allocates here.
    pub(crate) fn new(device: Box<dyn Device>, stream: Option<Arc<CudaStream>>, owns_all: bool) -> Rc<Self> {
        Rc::new(Self {
            device: RefCell::new(device),
            buffers: RefCell::default(),
            owns_all,
            too_few: RefCell::default(),
            stream,
        })
    }

    pub(crate) fn stream(&self) -> Option<&Arc<CudaStream>> {
        self.stream.as_ref()
    }

    /// Registers memory that the device has not allocated, so that kernels may receive it.
    pub(crate) fn adopt(&self, address: u64, bytes: u64) {
        self.buffers.borrow_mut().add(address, bytes);
    }

    pub(crate) fn release(&self, address: u64) {
        self.buffers.borrow_mut().remove(address);
    }

    pub(crate) const fn owns_all(&self) -> bool {
        self.owns_all
    }

    /// Reports to a trace the buffers that its next launch can access.
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
        // Buffers are numbered in the order of their creation.
        new.sort_unstable_by_key(|(.., change)| *change);
        for (address, bytes, &change) in new {
            let memory = Memory { address, bytes, kind: BufferKind::Device, name: String::new() };
            recorder.change_memory(MemoryChange::Got(memory));
            told.live.insert(address, change);
        }
    }

    /// Calls `run` with the device. `run` must not call user code that could borrow the device again.
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
        // The error cannot be returned; dropping the device frees all its memory.
        let _ = self.with(|device| device.free(allocation));
    }

    /// Checks that a call's memory is in buffers, and that written memory overlaps no other argument. Prints
    /// a note to standard error if a launch has too few threads to write all elements.
    pub(crate) fn check(&self, call: &SafeCall<'_>, config: &LaunchConfig) -> Result<(), Error> {
        let kernel = || call.name().to_owned();
        let threads = config.shape().block_count() * u128::from(config.shape().block_threads());
        for memory in call.memory().iter().filter(|memory| u128::from(memory.threads) > threads) {
            let (argument, elements) = (memory.argument, memory.threads);
            if self.too_few.borrow_mut().insert((kernel(), argument)) {
                // `eprintln!` panics if standard error cannot be written.
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
