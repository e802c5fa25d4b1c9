//! Parses the assembler's report of registers, stack and spills.

use super::{Function, Functions};

/// Parses the output of `ptxas -v` for each kernel and function. Ignores unknown lines.
pub(crate) fn parse(said: &str) -> Functions {
    let mut found: Functions = Functions::new();
    let mut name = "";
    for line in said.lines() {
        if let Some((_, function)) = line.split_once("Function properties for ") {
            name = function.trim();
            found.entry(name.to_owned()).or_default();
        } else if let Some(usage) = found.get_mut(name) {
            let spills = [" bytes spill stores", " bytes spill loads"];
            usage.spill_bytes += spills.iter().filter_map(|what| number_before(line, what)).sum::<u32>();
            usage.stack_bytes += number_before(line, " bytes stack frame").unwrap_or(0);
            usage.registers = usage.registers.max(number_before(line, " registers").unwrap_or(0));
        }
    }
    found
}

fn number_before(line: &str, what: &str) -> Option<u32> {
    let before = &line[..line.find(what)?];
    before.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[test]
fn reads_registers_and_spills() {
    const SAID: &str = "ptxas info    : 64 bytes gmem, 8 bytes cmem[4]
ptxas info    : Compiling entry function 'fractal' for 'sm_90'
ptxas info    : Function properties for fractal
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 30 registers, used 0 barriers, 3584 bytes smem
ptxas info    : Compile time = 12.867 ms
ptxas info    : Compiling entry function 'mis_find$traced' for 'sm_90'
ptxas info    : Function properties for mis_find$traced
    16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers
";
    let found = parse(SAID);
    let traced = Function { registers: 255, stack_bytes: 16, spill_bytes: 20, ..Function::default() };
    assert_eq!(found["fractal"], Function { registers: 30, ..Function::default() });
    assert_eq!(found["mis_find$traced"], traced);
    assert_eq!(found.len(), 2);
}
