//! Memory that kernels can reach, on its way to the file.

use std::collections::BTreeMap;

use warptrace_format::file::limits::{MAX_BUFFER_NAME_BYTES, MAX_BUFFERS};
use warptrace_format::file::{BufferInfo, Buffers};
use warptrace_ptx::{Module, Space};

use crate::{AddressMap, Memory, MemoryChange};

/// Lists the variables that PTX has in global memory, and tells whether its code may allocate some: also
/// where it cannot be read.
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

/// What is known of the program's memory, and what of this the file was not told yet.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownBuffers {
    /// Buffers that are there.
    live: AddressMap<BufferInfo>,
    /// Those that are new, or have ended, by number.
    news: BTreeMap<u32, BufferInfo>,
    next: u32,
    /// Whether there is memory of which nothing is known.
    lacks: bool,
    /// Whether the file is to have buffers, or to be told that some are not known.
    is_changed: bool,
}

impl KnownBuffers {
    /// Notes a change before the launch with this number.
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
        // Who was there in no launch need not be told of, if the file was not told yet.
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

    /// Tells whether there is something that the file was not told.
    pub(super) const fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// Returns what the file is to be told; `None` if that is nothing.
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

    /// Number, address, first launch and end of what the file is told.
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
        // What lived in no launch.
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
