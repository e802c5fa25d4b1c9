//! The program's memory: traces get all of it when they begin, and then its changes.

use warptrace_format::file::BufferKind;
use warptrace_host::{AddressMap, Ending, Launches, Memory, MemoryChange};

use super::{Context, Traces};
use crate::driver;

/// Memory of the program, and the device whose it is: `None` if all devices can reach it, or that is not
/// known.
type Known = (Memory, Option<u32>);

/// Memory that the program has.
#[derive(Debug, Default)]
pub(super) struct ProgramMemory {
    /// Each with its turn.
    live: AddressMap<(u64, Known)>,
    next: u64,
    lacks: bool,
}

impl ProgramMemory {
    /// Sends all memory to a trace that begins.
    pub(super) fn tell_all<E: Ending>(&self, launches: &Launches<E>, device: u32) {
        // Numbers are given in the order in which the program got it.
        let mut all: Vec<&(u64, Known)> = self.live.iter().map(|(.., known)| known).collect();
        all.sort_unstable_by_key(|(turn, _)| *turn);
        let got = |(_, known): &(u64, Known)| MemoryChange::Got(seen_from(device, known));
        all.into_iter().for_each(|known| launches.change_memory(got(known)));
        if self.lacks {
            launches.change_memory(MemoryChange::Unknown);
        }
    }
}

/// Names memory as kernels of a device see it: that of another device, which they can reach if the program
/// lets them, as such. Addresses are the same on all devices.
fn seen_from(device: u32, (memory, owner): &Known) -> Memory {
    let mut memory = memory.clone();
    if let Some(owner) = owner.filter(|owner| *owner != device) {
        let space = if memory.name.is_empty() { "" } else { " " };
        memory.name.push_str(&format!("{space}of device {owner}"));
    }
    memory
}

impl Traces {
    /// Notes a change of the program's memory, and tells all traces.
    pub(crate) fn change_memory(&mut self, change: MemoryChange) {
        let mut owner = None;
        match &change {
            MemoryChange::Got(memory) => {
                // The program may ask for a variable's address again and again.
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

    /// Notes that what was mapped to `bytes` bytes from `address` on goes.
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
