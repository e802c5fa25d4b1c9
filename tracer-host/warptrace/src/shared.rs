//! A device that its handle, buffers and a trace use in turns.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::rc::Rc;
use std::sync::Arc;

use cudarc::driver::CudaStream;
use warptrace_device::SafeCall;
use warptrace_host::{Allocation, Device, DeviceError, Place};

use crate::{Error, LaunchConfig};

/// The device, and the memory that buffers have of it.
pub(crate) struct Shared {
    device: RefCell<Box<dyn Device>>,
    /// Length in bytes of each buffer, by address.
    buffers: RefCell<BTreeMap<u64, u64>>,
    /// Kernels and arguments of which a launch had too few threads: it is said once.
    too_few: RefCell<BTreeSet<(String, usize)>>,
    /// The stream of a device that is the user's own. It outlives the device, which uses it.
    stream: Option<Arc<CudaStream>>,
}

impl Shared {
    pub(crate) fn new(device: Box<dyn Device>, stream: Option<Arc<CudaStream>>) -> Rc<Self> {
        Rc::new(Self {
            device: RefCell::new(device),
            buffers: RefCell::default(),
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
        self.buffers.borrow_mut().insert(address, bytes);
    }

    /// Forgets memory that was [adopted](Self::adopt).
    pub(crate) fn release(&self, address: u64) {
        self.buffers.borrow_mut().remove(&address);
    }

    /// Uses the device. No user's code runs meanwhile that could ask for it again.
    pub(crate) fn with<T>(&self, run: impl FnOnce(&mut dyn Device) -> T) -> T {
        run(&mut **self.device.borrow_mut())
    }

    pub(crate) fn allocate(&self, bytes: u64) -> Result<Allocation, DeviceError> {
        let allocation = self.with(|device| device.allocate(bytes.max(1), Place::Device))?;
        self.buffers.borrow_mut().insert(allocation.address, allocation.bytes);
        Ok(allocation)
    }

    pub(crate) fn free(&self, allocation: Allocation) {
        self.buffers.borrow_mut().remove(&allocation.address);
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
            let inside = buffers.range(..=memory.address).next_back().is_some_and(|(start, bytes)| {
                let skipped = memory.address - start;
                skipped <= *bytes && memory.bytes <= bytes - skipped
            });
            if !inside {
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
