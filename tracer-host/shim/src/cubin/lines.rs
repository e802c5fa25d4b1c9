//! Line tables of machine code: `.debug_line` says which line of the source an instruction has,
//! `.nv_debug_line_sass` which line of the PTX.
//!
//! NVIDIA's tables are DWARF 2 with an instruction of their own for inlined functions. Its operands are the
//! number of the row, from 1, that has the call, and where `.debug_str` names the function; row 0 ends it.

use gimli::{DebugLine, DebugLineOffset, DwLne, EndianSlice, LineInstruction, LineRow, LittleEndian, Reader};

use super::Cubin;

/// NVIDIA's instruction for what was inlined.
const INLINED_CALL: DwLne = DwLne(0x90);
/// The most calls that a place was inlined through.
const MAX_CALLS: usize = 64;

/// A table that says something of each address of code.
#[derive(Default)]
pub(super) struct AddressTable {
    /// By table of the section, its files' names, by number.
    pub(super) files: Vec<Vec<String>>,
    /// In ascending order of their addresses within each of the code's sections.
    rows: Vec<AddressRow>,
}

/// What is said of the code from an address on, up to the next one.
#[derive(Clone, Copy, Debug)]
struct AddressRow {
    address: u64,
    /// Which of the section's tables it is in.
    unit: usize,
    /// 0 if nothing is said.
    line: u32,
    file: u64,
    /// Index of the row with the call, in the order of the table, from 1; 0 without one.
    call: usize,
    /// Where `.debug_str` names the function that was called there.
    function: u64,
}

/// A place in the source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct CodePlace {
    pub(super) unit: usize,
    pub(super) file: u64,
    pub(super) line: u32,
    /// Functions that were inlined, innermost first: where `.debug_str` names each, and where it was called.
    pub(super) calls: Vec<(u64, (u64, u32))>,
}

impl AddressTable {
    /// Reads a section; empty if there is none. What cannot be read ends it.
    pub(super) fn read(cubin: &Cubin<'_>, name: &str) -> (Self, Vec<CodePlace>) {
        let (mut table, mut places) = (Self::default(), Vec::new());
        let Some(bytes) = cubin.placed(name) else { return (table, places) };
        let section = DebugLine::from(EndianSlice::new(&bytes, LittleEndian));
        let mut offset = 0;
        while offset < bytes.len() {
            let Some(end) = table.read_unit(&section, offset, &mut places) else { break };
            offset = end;
        }
        // Rows of the same address: the last one says it.
        table.rows.sort_by_key(|row| row.address);
        (table, places)
    }

    /// Reads one table of a section and appends what its rows say to `places`, as the rows' numbers are;
    /// returns where the next one begins.
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
        // From here on a row's `call` is its own number among all places.
        self.rows.extend(rows.iter().enumerate().map(|(at, row)| AddressRow { call: first + at, ..*row }));
        Some(end)
    }

    /// Returns the row that says something of an address: where it begins, its line, and its number among the
    /// places; `None` if none does.
    pub(super) fn at(&self, address: u64) -> Option<(u64, u32, usize)> {
        let after = self.rows.partition_point(|row| row.address <= address);
        let row = self.rows.get(after.checked_sub(1)?)?;
        let is_same_section = row.address >> super::SECTION_SHIFT == address >> super::SECTION_SHIFT;
        (is_same_section && row.line != 0).then_some((row.address, row.line, row.call))
    }

    /// Lists addresses and lines of a file, or of all, in the order of the addresses.
    pub(super) fn lines(&self, file: Option<&str>) -> impl Iterator<Item = (u64, u32)> {
        let is_in = move |row: &&AddressRow| {
            let name = || self.files.get(row.unit)?.get(usize::try_from(row.file).ok()?);
            row.line != 0 && file.is_none_or(|file| name().is_some_and(|name| name == file))
        };
        self.rows.iter().filter(is_in).map(|row| (row.address, row.line))
    }
}

/// Says of a row where the source has it, with the calls through which it came there.
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

/// Lists the paths of a table's files, by number: the first has 1, so that before it stands an empty one.
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
