//! Machine code: how many registers its kernels take.
//!
//! A cubin is an ELF file. Its section `.nv.info` is a list of attributes, each with a format, a number and a
//! value; attribute 0x2f has a symbol's index and how many registers that function takes. NVIDIA does not
//! document it; this is what `cuobjdump -elf` shows of cubins of CUDA 11 to 13.

use object::LittleEndian as Little;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, SectionHeader, Sym};

/// The section of attributes.
const INFO: &[u8] = b".nv.info";
/// The format of attributes whose value has a length of its own; those of other formats have two bytes.
const FORMAT_LONG: u8 = 4;
/// How many registers a function takes.
const REGISTERS: u8 = 0x2f;

/// Lists the functions of a cubin with the registers that each takes. Of what cannot be read nothing is listed.
pub(crate) fn registers(cubin: &[u8]) -> Vec<(String, u32)> {
    read(cubin).unwrap_or_default()
}

fn read(cubin: &[u8]) -> Option<Vec<(String, u32)>> {
    let header = FileHeader64::<Little>::parse(cubin).ok()?;
    let sections = header.sections(Little, cubin).ok()?;
    let symbols = sections.symbols(Little, cubin, object::elf::SHT_SYMTAB).ok()?;
    let (_, info) = sections.section_by_name(Little, INFO)?;
    let mut rest = info.data(Little, cubin).ok()?;
    let mut found = Vec::new();
    while let [format, attribute, low, high, after @ ..] = rest {
        let short = usize::from(u16::from_le_bytes([*low, *high]));
        let bytes = if *format == FORMAT_LONG { short } else { 0 };
        let value = after.get(..bytes)?;
        rest = &after[bytes..];
        if let (REGISTERS, FORMAT_LONG, Some(index), Some(count)) =
            (*attribute, *format, number(value, 0), number(value, 4))
        {
            let symbol = symbols.symbol(object::SymbolIndex(index as usize)).ok()?;
            let name = symbol.name(Little, symbols.strings()).ok()?;
            found.push((String::from_utf8_lossy(name).into_owned(), count));
        }
    }
    Some(found)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fatbin::{Kind, entries};

    #[test]
    fn registers_are_those_that_the_assembler_tells() {
        let fatbin = include_bytes!("../tests/data/kernels-cubin.fatbin");
        let entry = entries(fatbin).unwrap().into_iter().find(|entry| entry.kind == Kind::Elf).unwrap();
        let cubin = entry.bytes().unwrap();
        let found = registers(&cubin);
        assert!(!found.is_empty() && found.iter().all(|(_, count)| (1..=255).contains(count)), "{found:?}");
        for length in 0..cubin.len() {
            // None is listed of what is cut off, and nothing panics.
            let _ = registers(&cubin[..length]);
        }
        let mut broken = cubin.clone();
        for at in 0..broken.len() {
            broken[at] ^= 0xff;
            let _ = registers(&broken);
            broken[at] ^= 0xff;
        }
    }
}
