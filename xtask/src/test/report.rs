//! What the assembler says of registers, stack and spills.

use std::fmt::Write;

/// Name of the variant that must cost nothing.
const UNTRACED: &str = "untraced";

/// What one kernel needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Kernel {
    name: String,
    registers: u32,
}

/// A function of a module that uses memory for its registers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Function {
    name: String,
    stack_bytes: u32,
    spill_bytes: u32,
}

/// One module, assembled for one architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Report {
    variant: String,
    architecture: &'static str,
    kernels: Vec<Kernel>,
    /// Only those that use stack.
    functions: Vec<Function>,
}

impl Report {
    /// Reads what `ptxas -v` says. Lines that it does not know are left alone.
    pub(super) fn parse(variant: &str, architecture: &'static str, said: &str) -> Self {
        let mut report =
            Self { variant: variant.to_owned(), architecture, kernels: Vec::new(), functions: Vec::new() };
        let mut function = "";
        for line in said.lines() {
            if let Some((_, name)) = line.split_once("Compiling entry function '") {
                let name = name.split('\'').next().unwrap_or_default().to_owned();
                report.kernels.push(Kernel { name, registers: 0 });
            } else if let Some((_, name)) = line.split_once("Function properties for ") {
                function = name.trim();
            } else if let Some(stack_bytes) = number_before(line, " bytes stack frame") {
                let spills = [" bytes spill stores", " bytes spill loads"];
                let spill_bytes = spills.iter().filter_map(|what| number_before(line, what)).sum();
                if stack_bytes > 0 || spill_bytes > 0 {
                    report.functions.push(Function { name: function.to_owned(), stack_bytes, spill_bytes });
                }
            } else if let (Some(registers), Some(kernel)) =
                (number_before(line, " registers"), report.kernels.last_mut())
            {
                kernel.registers = registers;
            }
        }
        report
    }

    /// The kernel with the most registers.
    fn largest(&self) -> Kernel {
        self.kernels.iter().max_by_key(|kernel| kernel.registers).cloned().unwrap_or_default()
    }
}

/// The number that stands before `what`.
fn number_before(line: &str, what: &str) -> Option<u32> {
    let before = &line[..line.find(what)?];
    before.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// A row for each module and architecture.
pub(super) fn table(reports: &[Report]) -> String {
    let mut table = String::from("variant     for      kernels  registers, most in       stack  spills\n");
    for report in reports {
        let largest = report.largest();
        let stack = report.functions.iter().map(|function| function.stack_bytes).max().unwrap_or(0);
        let spills: u32 = report.functions.iter().map(|function| function.spill_bytes).sum();
        writeln!(
            table,
            "{:<11} {:<8} {:>7}  {:>9}  {:<14} {stack:>4} B  {spills:>4} B",
            report.variant,
            report.architecture,
            report.kernels.len(),
            largest.registers,
            largest.name,
        )
        .expect("writing to a string");
    }
    table
}

/// What a reader should know: memory used for registers where there is no tracer to blame, and spills anywhere.
pub(super) fn notes(reports: &[Report]) -> Vec<String> {
    let mut notes = Vec::new();
    for report in reports {
        for function in &report.functions {
            if function.spill_bytes > 0 || report.variant == UNTRACED {
                notes.push(format!(
                    "{} for {}: {} has {} bytes of stack and {} bytes of spills",
                    report.variant,
                    report.architecture,
                    function.name,
                    function.stack_bytes,
                    function.spill_bytes
                ));
            }
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "ptxas info    : 64 bytes gmem, 8 bytes cmem[4]
ptxas info    : Compiling entry function 'fractal' for 'sm_90'
ptxas info    : Function properties for fractal
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 30 registers, used 0 barriers, 3584 bytes smem
ptxas info    : Compile time = 12.867 ms
ptxas info    : Compiling entry function 'mis_find' for 'sm_90'
ptxas info    : Function properties for mis_find
    16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers
ptxas info    : Function properties for append
    40 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
";

    #[test]
    fn reads_registers_stack_and_spills() {
        let report = Report::parse("raw", "sm_90", SAID);
        assert_eq!(report.kernels.len(), 2);
        assert_eq!(report.largest(), Kernel { name: "mis_find".to_owned(), registers: 255 });
        assert_eq!(
            report.functions,
            [
                Function { name: "mis_find".to_owned(), stack_bytes: 16, spill_bytes: 20 },
                Function { name: "append".to_owned(), stack_bytes: 40, spill_bytes: 0 }
            ]
        );
        assert!(
            table(&[report])
                .ends_with("raw         sm_90          2        255  mis_find         40 B    20 B\n")
        );
    }

    #[test]
    fn stack_is_worth_a_note_where_nothing_is_traced() {
        assert_eq!(notes(&[Report::parse("raw", "sm_90", SAID)]).len(), 1);
        assert_eq!(notes(&[Report::parse("untraced", "sm_90", SAID)]).len(), 2);
        assert!(notes(&[Report::parse("untraced", "sm_90", "")]).is_empty());
    }
}
