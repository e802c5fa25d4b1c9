//! Line tables of machine code: `.debug_line` for source lines, `.nv_debug_line_sass` for PTX lines.
//!
//! NVIDIA's tables are DWARF 2 with one more instruction, for inlined functions. Its operands are the number,
//! from 1, of the table row with the call, and the offset of the function's name in `.debug_str`. Row 0 ends
//! the inlined code.

use gimli::{DebugLine, DebugLineOffset, DwLne, EndianSlice, LineInstruction, LineRow, LittleEndian, Reader};

use super::Cubin;

const INLINED_CALL: DwLne = DwLne(0x90);
const MAX_CALLS: usize = 64;

#[derive(Default)]
pub(super) struct AddressTable {
    /// File names, by number, for each table of the section.
    pub(super) files: Vec<Vec<String>>,
    /// Rows in ascending order of address. Code sections have disjoint ranges of addresses.
    rows: Vec<AddressRow>,
}

/// Line of the code from an address on, up to the next row.
#[derive(Clone, Copy, Debug)]
struct AddressRow {
    address: u64,
    /// Index of the section's table.
    unit: usize,
    /// 0 if the line is unknown.
    line: u32,
    file: u64,
    /// While a table is read: number of the row with the call, from 1, or 0. Then: index of the place.
    call: usize,
    /// Offset of the called function's name in `.debug_str`.
    function: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct CodePlace {
    pub(super) unit: usize,
    pub(super) file: u64,
    pub(super) line: u32,
    /// Inlined functions, innermost first: offset of the name in `.debug_str`, file and line of the call.
    pub(super) calls: Vec<(u64, (u64, u32))>,
}

impl AddressTable {
    /// Reads a section, up to the first table that cannot be read. Also returns the place of each row.
    pub(super) fn read(cubin: &Cubin<'_>, name: &str) -> (Self, Vec<CodePlace>) {
        let (mut table, mut places) = (Self::default(), Vec::new());
        let Some(bytes) = cubin.placed(name) else { return (table, places) };
        let section = DebugLine::from(EndianSlice::new(&bytes, LittleEndian));
        let mut offset = 0;
        while offset < bytes.len() {
            let Some(end) = table.read_unit(&section, offset, &mut places) else { break };
            offset = end;
        }
        // The sort is stable. Of rows with the same address, lookups find the last.
        table.rows.sort_by_key(|row| row.address);
        (table, places)
    }

    /// Reads one table of a section. Appends its rows' places to `places`. Returns the next table's offset.
    fn read_unit(
        &mut self,
        section: &DebugLine<EndianSlice<'_, LittleEndian>>,
        offset: usize,
        places: &mut Vec<CodePlace>,
    ) -> Option<usize> {
        let mut program = section.program(DebugLineOffset(offset), 8, None, None).ok()?;
        let header = program.header().clone();
        let end = offset + header.unit_length() + 4;
        let unit = self.files.len();
        self.files.push(file_names(&header));
        let mut instructions = header.instructions();
        let mut row = LineRow::new(&header);
        let (mut rows, mut call, mut function) = (Vec::<AddressRow>::new(), 0, 0);
        while let Ok(Some(instruction)) = instructions.next_instruction(&header) {
            if let LineInstruction::UnknownExtended(INLINED_CALL, mut operands) = instruction {
                call = usize::try_from(operands.read_uleb128().ok()?).ok()?;
                function = operands.read_uleb128().ok()?;
                continue;
            }
            if !row.execute(instruction, &mut program).ok()? {
                continue;
            }
            let is_end = row.end_sequence();
            let line = row.line().map_or(0, |line| u32::try_from(line.get()).unwrap_or(0));
            let (line, address) = (if is_end { 0 } else { line }, row.address());
            rows.push(AddressRow { address, unit, line, file: row.file_index(), call, function });
            if is_end {
                (call, function) = (0, 0);
            }
            row.reset(&header);
        }
        let first = places.len();
        for at in 0..rows.len() {
            places.push(place(&rows, at));
        }
        self.rows.extend(rows.iter().enumerate().map(|(at, row)| AddressRow { call: first + at, ..*row }));
        Some(end)
    }

    /// Returns the first address, the line and the place of an address's row; `None` for unknown lines.
    pub(super) fn at(&self, address: u64) -> Option<(u64, u32, usize)> {
        let after = self.rows.partition_point(|row| row.address <= address);
        let row = self.rows.get(after.checked_sub(1)?)?;
        let is_same_section = row.address >> super::SECTION_SHIFT == address >> super::SECTION_SHIFT;
        (is_same_section && row.line != 0).then_some((row.address, row.line, row.call))
    }

    /// Returns addresses and lines in order of address, for one file or for all.
    pub(super) fn lines(&self, file: Option<&str>) -> impl Iterator<Item = (u64, u32)> {
        let is_in = move |row: &&AddressRow| {
            let name = || self.files.get(row.unit)?.get(usize::try_from(row.file).ok()?);
            row.line != 0 && file.is_none_or(|file| name().is_some_and(|name| name == file))
        };
        self.rows.iter().filter(is_in).map(|row| (row.address, row.line))
    }
}

/// Returns the source place of a row, with the inlined calls that lead to it.
fn place(rows: &[AddressRow], at: usize) -> CodePlace {
    let row = &rows[at];
    let mut place = CodePlace { unit: row.unit, file: row.file, line: row.line, calls: Vec::new() };
    let mut inner = row;
    while let Some(outer) = inner.call.checked_sub(1).and_then(|index| rows.get(index)) {
        if place.calls.len() >= MAX_CALLS {
            break;
        }
        place.calls.push((inner.function, (outer.file, outer.line)));
        inner = outer;
    }
    place
}

/// Returns the paths of a table's files. Numbers start at 1, so the first path is empty.
fn file_names(header: &gimli::LineProgramHeader<EndianSlice<'_, LittleEndian>>) -> Vec<String> {
    let text = |value: gimli::AttributeValue<EndianSlice<'_, LittleEndian>>| match value {
        gimli::AttributeValue::String(name) => name.to_string_lossy().into_owned(),
        _ => String::new(),
    };
    let named = header.file_names().iter().map(|file| {
        let name = text(file.path_name());
        match file.directory(header).map(text).filter(|folder| !folder.is_empty()) {
            Some(folder) if !name.starts_with('/') => format!("{folder}/{name}"),
            _ => name,
        }
    });
    std::iter::once(String::new()).chain(named).collect()
}
