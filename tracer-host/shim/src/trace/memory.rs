//! The program's memory, which traces are told of: what there is when one begins, and what changes then.

use std::collections::BTreeMap;

use warptrace_format::file::BufferKind;
use warptrace_host::{Launches, Memory};

use super::{Context, Traces};
use crate::driver;

/// A change of the program's memory.
pub(crate) enum Change<'a> {
    /// It has got some. What was at these addresses is no more.
    Got(Memory),
    /// That at this address goes.
    Gone(u64),
    /// What was mapped to this many bytes from this address on goes.
    Unmapped(u64, u64),
    /// It has some that nothing is known of.
    Unknown,
    /// A module has these variables.
    Variables(&'a [(String, Option<(u64, u64)>)]),
}

/// Memory of the program, and the device whose it is: `None` if all devices can reach it, or that is not
/// known.
type Known = (Memory, Option<u32>);

/// Memory that the program has.
#[derive(Debug, Default)]
pub(super) struct ProgramMemory {
    /// By address, each with its turn.
    live: BTreeMap<u64, (u64, Known)>,
    next: u64,
    lacks: bool,
}

impl ProgramMemory {
    /// Tells a trace that begins of all that is there.
    pub(super) fn tell_all<E: warptrace_host::Ending>(&self, launches: &Launches<E>, device: u32) {
        // Numbers are given in the order in which the program got it.
        let mut all: Vec<&(u64, Known)> = self.live.values().collect();
        all.sort_unstable_by_key(|(turn, _)| *turn);
        all.into_iter().for_each(|(_, known)| launches.add_memory(seen_from(device, known)));
        if self.lacks {
            launches.lack_memory();
        }
    }

    fn got(&mut self, known: Known) {
        let over = known.0.overlapped(&self.live, |(_, (other, _))| other.bytes);
        over.iter().for_each(|address| drop(self.live.remove(address)));
        self.live.insert(known.0.address, (self.next, known));
        self.next += 1;
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
    pub(crate) fn change_memory(&mut self, change: Change<'_>) {
        let recorders = || {
            self.contexts.values().filter_map(|context| match context {
                Context::Recording(recorder) => Some(&**recorder),
                Context::Ended(_) => None,
            })
        };
        match change {
            Change::Got(memory) => {
                // The program may ask for a variable's address again and again.
                if memory.bytes == 0
                    || self.memory.live.get(&memory.address).is_some_and(|(_, (known, _))| *known == memory)
                {
                    return;
                }
                let is_of_one =
                    matches!(memory.kind, BufferKind::Device | BufferKind::Pool | BufferKind::Variable);
                let device = driver::current_device().and_then(|device| u32::try_from(device).ok());
                let known = (memory, device.filter(|_| is_of_one));
                recorders().for_each(|recorder| {
                    recorder.launches().add_memory(seen_from(recorder.device, &known));
                });
                self.memory.got(known);
            }
            Change::Gone(address) => {
                if self.memory.live.remove(&address).is_some() {
                    recorders().for_each(|recorder| recorder.launches().remove_memory(address));
                }
            }
            Change::Unmapped(address, bytes) => {
                let mapped = self.memory.live.range(address..address.saturating_add(bytes));
                let mapped = mapped.filter(|(_, (_, (memory, _)))| memory.kind == BufferKind::Mapped);
                let mapped: Vec<u64> = mapped.map(|(address, _)| *address).collect();
                mapped.into_iter().for_each(|address| self.change_memory(Change::Gone(address)));
            }
            Change::Unknown => {
                if !std::mem::replace(&mut self.memory.lacks, true) {
                    recorders().for_each(|recorder| recorder.launches().lack_memory());
                }
            }
            Change::Variables(variables) => {
                for (name, place) in variables {
                    let of = |(address, bytes)| Memory {
                        address,
                        bytes,
                        kind: BufferKind::Variable,
                        name: name.clone(),
                    };
                    self.change_memory(place.map_or(Change::Unknown, |place| Change::Got(of(place))));
                }
            }
        }
    }
}
