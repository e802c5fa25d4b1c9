//! The program's memory. A trace gets all of it when it starts, and changes afterwards.

use warptrace_format::file::BufferKind;
use warptrace_host::{AddressMap, Ending, Launches, Memory, MemoryChange};

use super::{Context, Traces};
use crate::driver;

/// Memory of the program and its device; `None` if the device is unknown or all devices can access it.
type Known = (Memory, Option<u32>);

#[derive(Debug, Default)]
pub(super) struct ProgramMemory {
    /// Each entry has its sequence number.
    live: AddressMap<(u64, Known)>,
    next: u64,
    lacks: bool,
}

impl ProgramMemory {
    pub(super) fn tell_all<E: Ending>(&self, launches: &Launches<E>, device: u32) {
        // In order of allocation: buffers get their numbers in this order.
        let mut all: Vec<&(u64, Known)> = self.live.iter().map(|(.., known)| known).collect();
        all.sort_unstable_by_key(|(turn, _)| *turn);
        let got = |(_, known): &(u64, Known)| MemoryChange::Got(seen_from(device, known));
        all.into_iter().for_each(|known| launches.change_memory(got(known)));
        if self.lacks {
            launches.change_memory(MemoryChange::Unknown);
        }
    }
}

/// Returns memory as kernels of a device see it. Memory of another device has that device in its name.
fn seen_from(device: u32, (memory, owner): &Known) -> Memory {
    let mut memory = memory.clone();
    if let Some(owner) = owner.filter(|owner| *owner != device) {
        let space = if memory.name.is_empty() { "" } else { " " };
        memory.name.push_str(&format!("{space}of device {owner}"));
    }
    memory
}

impl Traces {
    /// Applies a change to the program's memory, and sends it to all traces.
    pub(crate) fn change_memory(&mut self, change: MemoryChange) {
        let mut owner = None;
        match &change {
            MemoryChange::Got(memory) => {
                // A program may request the address of a variable many times.
                let known = self.memory.live.get(memory.address);
                if memory.bytes == 0 || known.is_some_and(|(_, (known, _))| known == memory) {
                    return;
                }
                let is_of_one =
                    matches!(memory.kind, BufferKind::Device | BufferKind::Pool | BufferKind::Variable);
                let device = driver::current_device().and_then(|device| u32::try_from(device).ok());
                owner = device.filter(|_| is_of_one);
                let known = (self.memory.next, (memory.clone(), owner));
                self.memory.live.insert(memory.address, memory.bytes, known);
                self.memory.next += 1;
            }
            MemoryChange::Gone(address) if self.memory.live.remove(*address).is_none() => return,
            MemoryChange::Gone(_) => {}
            MemoryChange::Unknown if std::mem::replace(&mut self.memory.lacks, true) => return,
            MemoryChange::Unknown => {}
        }
        for context in self.contexts.values() {
            let Context::Recording(recorder) = context else { continue };
            recorder.launches().change_memory(match &change {
                MemoryChange::Got(memory) => {
                    MemoryChange::Got(seen_from(recorder.device, &(memory.clone(), owner)))
                }
                other => other.clone(),
            });
        }
    }

    /// Removes all mappings that begin within `bytes` bytes from `address`.
    pub(crate) fn unmap_memory(&mut self, address: u64, bytes: u64) {
        let begins_there = |at: u64| (address..address.saturating_add(bytes)).contains(&at);
        let mapped = self
            .memory
            .live
            .iter()
            .filter(|(at, _, (_, (memory, _)))| begins_there(*at) && memory.kind == BufferKind::Mapped);
        let mapped: Vec<u64> = mapped.map(|(at, ..)| at).collect();
        mapped.into_iter().for_each(|at| self.change_memory(MemoryChange::Gone(at)));
    }
}
