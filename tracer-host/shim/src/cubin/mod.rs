//! Reads cubins as the program passes them to the driver: the registers of functions, and the embedded PTX.
//!
//! A cubin is an ELF file. NVIDIA documents only how programs use it. This module reads what `cuobjdump -elf`
//! and `nvdisasm` show for cubins of CUDA 11 to 13.

mod lines;
mod options;
mod text;

use std::ffi::c_void;

use object::LittleEndian as Little;
use object::elf::{FileHeader64, SHT_NOBITS};
use object::read::elf::{FileHeader, Rel, Rela, SectionHeader, SectionTable, Sym, SymbolTable};

pub(crate) use self::options::Assembled;
#[allow(unused_imports, reason = "the driver for tests needs only some")]
pub(crate) use self::text::{Embedded, NoText, ptx};

/// The section of attributes. Each attribute has a format, a number and a value.
const INFO: &[u8] = b".nv.info";
/// The format of attributes with a length field and a value. Other formats have a value of two bytes.
const FORMAT_LONG: u8 = 4;
/// The attribute with the index of a function's symbol and the function's number of registers.
const REGISTERS: u8 = 0x2f;
const HEADER_BYTES: usize = size_of::<FileHeader64<Little>>();
const MAX_BYTES: u64 = 1 << 30;
/// Shift that places code sections, which all begin at address 0, at distinct addresses.
const SECTION_SHIFT: u32 = 40;

struct Cubin<'a> {
    data: &'a [u8],
    sections: SectionTable<'a, FileHeader64<Little>>,
    symbols: SymbolTable<'a, FileHeader64<Little>>,
}

impl<'a> Cubin<'a> {
    fn parse(data: &'a [u8]) -> Option<Self> {
        let header = FileHeader64::<Little>::parse(data).ok()?;
        let sections = header.sections(Little, data).ok()?;
        let symbols = sections.symbols(Little, data, object::elf::SHT_SYMTAB).ok()?;
        Some(Self { data, sections, symbols })
    }

    fn section(&self, name: &str) -> Option<&'a [u8]> {
        let (_, section) = self.sections.section_by_name(Little, name.as_bytes())?;
        section.data(Little, self.data).ok()
    }

    /// Returns the full names and bytes of all sections named `name`, or `name` and a suffix after a dot.
    fn sections_of(&self, name: &str) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        self.sections.iter().filter_map(move |section| {
            let known = self.sections.section_name(Little, section).ok()?;
            let known = std::str::from_utf8(known).ok()?;
            let rest = known.strip_prefix(name)?;
            (rest.is_empty() || rest.starts_with('.')).then_some(())?;
            Some((known, section.data(Little, self.data).ok()?))
        })
    }

    /// Returns a section of debug tables, with code addresses relocated as [`SECTION_SHIFT`] says.
    fn placed(&self, name: &str) -> Option<Vec<u8>> {
        let (index, section) = self.sections.section_by_name(Little, name.as_bytes())?;
        let mut bytes = section.data(Little, self.data).ok()?.to_vec();
        let mut place = |offset: u64, symbol: u32, addend: i64| {
            let symbol = self.symbols.symbol(object::SymbolIndex(symbol as usize)).ok()?;
            let base = u64::from(symbol.st_shndx(Little).0) << SECTION_SHIFT;
            let address = base.checked_add(symbol.st_value(Little))?.checked_add_signed(addend)?;
            let at = usize::try_from(offset).ok()?;
            bytes.get_mut(at..at.checked_add(8)?)?.copy_from_slice(&address.to_le_bytes());
            Some(())
        };
        for relocations in self.sections.iter().filter(|found| found.sh_info(Little) as usize == index.0) {
            if let Ok(Some((all, _))) = relocations.rela(Little, self.data) {
                for one in all {
                    place(one.r_offset(Little), one.r_sym(Little, false), one.r_addend(Little))?;
                }
            }
            if let Ok(Some((all, _))) = relocations.rel(Little, self.data) {
                for one in all {
                    place(one.r_offset(Little), one.r_sym(Little), 0)?;
                }
            }
        }
        Some(bytes)
    }
}

/// Reads how a cubin was assembled. The result is empty if the cubin does not say.
pub(crate) fn assembled(cubin: &[u8]) -> Assembled {
    Cubin::parse(cubin).map(|cubin| Assembled::new(&cubin)).unwrap_or_default()
}

pub(crate) fn names_any(cubin: &[u8], text: &str) -> bool {
    Cubin::parse(cubin).is_some_and(|cubin| {
        let strings = cubin.symbols.strings();
        let mut names = cubin.symbols.iter().filter_map(|symbol| symbol.name(Little, strings).ok());
        names.any(|name| name.windows(text.len()).any(|part| part == text.as_bytes()))
    })
}

/// Returns the functions of a cubin with their numbers of registers; none if the cubin cannot be read.
pub(crate) fn registers(cubin: &[u8]) -> Vec<(String, u32)> {
    read_registers(cubin).unwrap_or_default()
}

fn read_registers(cubin: &[u8]) -> Option<Vec<(String, u32)>> {
    let cubin = Cubin::parse(cubin)?;
    let (_, info) = cubin.sections.section_by_name(Little, INFO)?;
    let mut rest = info.data(Little, cubin.data).ok()?;
    let mut found = Vec::new();
    while let [format, attribute, low, high, after @ ..] = rest {
        let short = usize::from(u16::from_le_bytes([*low, *high]));
        let bytes = if *format == FORMAT_LONG { short } else { 0 };
        let value = after.get(..bytes)?;
        rest = &after[bytes..];
        if let (REGISTERS, FORMAT_LONG, Some(index), Some(count)) =
            (*attribute, *format, number(value, 0), number(value, 4))
        {
            let symbol = cubin.symbols.symbol(object::SymbolIndex(index as usize)).ok()?;
            let name = symbol.name(Little, cubin.symbols.strings()).ok()?;
            found.push((String::from_utf8_lossy(name).into_owned(), count));
        }
    }
    Some(found)
}

/// Returns the cubin at an address; `None` if a header is invalid or the size exceeds [`MAX_BYTES`].
///
/// # Safety
/// `image` is the address of an ELF file. All that its tables describe is readable and constant for `'a`.
pub(crate) unsafe fn at<'a>(image: *const c_void) -> Option<&'a [u8]> {
    // SAFETY: guaranteed by the caller: the header and everything that the tables describe are readable.
    unsafe {
        let start = image.cast::<u8>();
        let header = std::slice::from_raw_parts(start, HEADER_BYTES);
        let header = FileHeader64::<Little>::parse(header).ok()?;
        let (at, count) = (header.e_shoff(Little), u64::from(header.e_shnum(Little)));
        let each = u64::from(header.e_shentsize(Little));
        let table_end = at.checked_add(count.checked_mul(each)?)?;
        if at == 0 || count == 0 || table_end > MAX_BYTES {
            return None;
        }
        let tables = std::slice::from_raw_parts(start, usize::try_from(table_end).ok()?);
        let end = header.section_headers(Little, tables).ok()?.iter().filter_map(|section| {
            let bytes = if section.sh_type(Little) == SHT_NOBITS { 0 } else { section.sh_size(Little) };
            section.sh_offset(Little).checked_add(bytes)
        });
        let segments = u64::from(header.e_phnum(Little)) * u64::from(header.e_phentsize(Little));
        let segments_end = header.e_phoff(Little).checked_add(segments)?;
        let end = end.max()?.max(table_end).max(segments_end);
        (end <= MAX_BYTES).then_some(())?;
        Some(std::slice::from_raw_parts(start, usize::try_from(end).ok()?))
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_le_bytes)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
