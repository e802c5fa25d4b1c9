//! Tracks memory that kernels can access, for the file.

use std::collections::BTreeMap;

use warptrace_format::file::limits::{MAX_BUFFER_NAME_BYTES, MAX_BUFFERS};
use warptrace_format::file::{BufferInfo, Buffers};
use warptrace_ptx::{Module, Space};

use crate::{AddressMap, Memory, MemoryChange};

/// Returns the names of global variables in PTX, and whether it may allocate memory or cannot be parsed.
#[must_use]
pub fn memory_of(ptx: &str) -> (Vec<String>, bool) {
    if ptx.is_empty() {
        return (Vec::new(), false);
    }
    let Ok(module) = Module::parse(ptx) else { return (Vec::new(), true) };
    let variables = module.variables().filter(|(_, declaration)| declaration.space == Space::Global);
    let names = variables.flat_map(|(_, declaration)| &declaration.names);
    (names.map(|declared| declared.name.to_owned()).collect(), ptx.contains("malloc"))
}

/// The program's memory, and the changes that were not written yet.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownBuffers {
    live: AddressMap<BufferInfo>,
    /// Buffers that are new or have ended, by number.
    news: BTreeMap<u32, BufferInfo>,
    next: u32,
    /// Whether unknown memory exists.
    lacks: bool,
    is_changed: bool,
}

impl KnownBuffers {
    /// Registers a change before the launch with this number.
    pub(super) fn change(&mut self, change: MemoryChange, launch: u32) {
        match change {
            MemoryChange::Got(memory) => self.add(memory, launch),
            MemoryChange::Gone(address) => {
                if let Some(buffer) = self.live.remove(address) {
                    self.end(buffer, launch);
                }
            }
            MemoryChange::Unknown => self.lack(),
        }
    }

    fn add(&mut self, memory: Memory, launch: u32) {
        if memory.bytes == 0 || memory.address.checked_add(memory.bytes - 1).is_none() {
            return;
        }
        let over = self.live.take_overlapped(memory.address, memory.bytes);
        over.into_iter().for_each(|buffer| self.end(buffer, launch));
        if self.next as usize >= MAX_BUFFERS {
            self.lack();
            return;
        }
        let Memory { address, bytes, kind, mut name } = memory;
        name.truncate(name.floor_char_boundary(MAX_BUFFER_NAME_BYTES));
        let buffer = BufferInfo { number: self.next, address, bytes, kind, name, first: launch, end: None };
        self.next += 1;
        self.news.insert(buffer.number, buffer.clone());
        self.live.insert(address, bytes, buffer);
        self.is_changed = true;
    }

    fn end(&mut self, buffer: BufferInfo, launch: u32) {
        // A buffer that existed in no launch and was not written yet can be dropped.
        if buffer.first == launch && self.news.remove(&buffer.number).is_some() {
            return;
        }
        self.news.insert(buffer.number, BufferInfo { end: Some(launch.max(buffer.first)), ..buffer });
        self.is_changed = true;
    }

    fn lack(&mut self) {
        self.is_changed |= !self.lacks;
        self.lacks = true;
    }

    pub(super) const fn is_changed(&self) -> bool {
        self.is_changed
    }

    pub(super) fn take(&mut self) -> Option<Buffers> {
        let is_changed = std::mem::take(&mut self.is_changed);
        let buffers = std::mem::take(&mut self.news).into_values().collect();
        is_changed.then_some(Buffers { is_complete: !self.lacks, buffers })
    }
}

#[cfg(test)]
mod tests {
    use warptrace_format::file::BufferKind;

    use super::*;

    fn memory(address: u64, bytes: u64) -> Memory {
        Memory { address, bytes, kind: BufferKind::Device, name: String::new() }
    }

    fn told(known: &mut KnownBuffers) -> Vec<(u32, u64, u32, Option<u32>)> {
        let taken = known.take().map_or_else(Vec::new, |taken| taken.buffers);
        taken.into_iter().map(|found| (found.number, found.address, found.first, found.end)).collect()
    }

    #[test]
    fn ptx_names_its_variables_in_global_memory() {
        let head = ".version 7.0\n.target sm_70\n.address_size 64\n";
        let of = |text: &str| memory_of(&format!("{head}{text}"));
        let variables = ".global .align 4 .u32 first, second[4];\n.shared .align 4 .b8 tile[64];\n";
        assert_eq!(of(variables), (vec!["first".to_owned(), "second".to_owned()], false));
        let malloc = ".extern .func (.param .b64 found) malloc (.param .b64 bytes);\n";
        assert_eq!(of(malloc), (Vec::new(), true));
        assert_eq!(memory_of("no PTX"), (Vec::new(), true), "what cannot be read may do anything");
        assert_eq!(memory_of(""), (Vec::new(), false));
    }

    #[test]
    fn lives_are_told_once_they_begin_and_once_they_end() {
        let mut known = KnownBuffers::default();
        assert_eq!(known.take(), None);
        known.add(memory(0x1000, 64), 0);
        known.add(memory(0x2000, 64), 1);
        assert_eq!(told(&mut known), [(0, 0x1000, 0, None), (1, 0x2000, 1, None)]);
        assert_eq!(known.take(), None, "nothing new");
        known.change(MemoryChange::Gone(0x1000), 3);
        known.change(MemoryChange::Gone(0x1000), 4);
        known.add(memory(0x1000, 8), 3);
        assert_eq!(told(&mut known), [(0, 0x1000, 0, Some(3)), (2, 0x1000, 3, None)]);
        known.add(memory(0x3000, 8), 5);
        known.change(MemoryChange::Gone(0x3000), 5);
        assert_eq!(told(&mut known), []);
    }

    #[test]
    fn what_is_at_the_same_addresses_ends_what_was_there() {
        let mut known = KnownBuffers::default();
        for at in [0x1000, 0x1100, 0x1200] {
            known.add(memory(at, 0x100), 0);
        }
        known.add(memory(0x1180, 0x81), 7);
        let expected =
            [(0, 0x1000, 0, None), (1, 0x1100, 0, Some(7)), (2, 0x1200, 0, Some(7)), (3, 0x1180, 7, None)];
        assert_eq!(told(&mut known), expected);
        known.add(memory(0, 0), 7);
        known.add(memory(u64::MAX, 2), 7);
        assert_eq!(known.take(), None, "there is no such memory");
    }

    #[test]
    fn what_is_not_known_is_said() {
        let mut known = KnownBuffers::default();
        known.change(MemoryChange::Unknown, 0);
        assert_eq!(known.take(), Some(Buffers { is_complete: false, buffers: Vec::new() }));
        known.change(MemoryChange::Unknown, 0);
        assert_eq!(known.take(), None);
        let mut known = KnownBuffers::default();
        for number in 0..=MAX_BUFFERS as u64 {
            known.add(memory(number << 8, 1), 0);
        }
        let taken = known.take().unwrap();
        assert_eq!((taken.is_complete, taken.buffers.len()), (false, MAX_BUFFERS));
        assert!(taken.encode_section().is_ok());
    }
}
