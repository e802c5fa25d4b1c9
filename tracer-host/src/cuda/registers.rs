//! How many registers a traced kernel may take.
//!
//! The tracer's encoder needs more registers than most kernels, and a kernel gets as many as the deepest function that it
//! calls: without a limit a traced kernel would run with a third of its warps. The encoder is called rarely and can spill; so
//! each traced kernel is limited to what the untraced one takes, and a few more.

/// Registers that the tracer needs in the kernel itself, and those that its functions keep for their callers. With fewer, loops
/// spill; with more, warps are lost where nothing spills (measured: `docs/device.md`).
const EXTRA: u32 = 24;
/// Registers are given out in multiples of this.
const STEP: u32 = 8;
/// With so many registers a multiprocessor is full; fewer win nothing.
const FLOOR: u32 = 32;
const CEILING: u32 = 255;

/// The limit for the tracer's kernel that merges logs: with so many it spills 16 bytes, and a multiprocessor has twice as many warps of it.
pub(super) const MERGING: u32 = 64;

/// The limit for a kernel that takes `untraced` registers without tracing.
pub(super) fn limit(untraced: u32) -> u32 {
    (untraced + EXTRA).next_multiple_of(STEP).clamp(FLOOR, CEILING)
}

/// The names of the program's kernels in a module; the tracer's own have no untraced form.
pub(super) fn kernels(ptx: &str) -> impl Iterator<Item = &str> {
    ptx.lines().filter_map(entry).filter(|name| !name.starts_with("warptrace_"))
}

fn entry(line: &str) -> Option<&str> {
    let (_, after) = line.split_once(".entry ")?;
    Some(after.split(['(', ' ']).next().unwrap_or(after))
}

/// The module with a `.maxnreg` for each kernel to which `limit` answers one and that does not bring its own.
pub(super) fn limited(ptx: &str, limit: impl Fn(&str) -> Option<u32>) -> String {
    let mut out = String::with_capacity(ptx.len() + 256);
    let mut pending = None;
    for line in ptx.split_inclusive('\n') {
        if let Some(kernel) = entry(line) {
            pending = limit(kernel);
        }
        // A kernel's directives stand between its parameters and its body.
        if line.starts_with(".maxnreg") {
            pending = None;
        }
        if line.starts_with('{')
            && let Some(registers) = pending.take()
        {
            out.push_str(&format!(".maxnreg {registers}\n"));
        }
        out.push_str(line);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = ".version 7.0\n.visible .entry first(\n\t.param .u32 first_param_0\n)\n{\n\tret;\n}\n\
                       .func helper()\n{\n\tret;\n}\n.visible .entry second()\n{\n\tret;\n}\n";

    #[test]
    fn kernels_are_found() {
        assert_eq!(kernels(PTX).collect::<Vec<_>>(), ["first", "second"]);
    }

    #[test]
    fn a_limit_stands_before_the_body_of_its_kernel() {
        let text = limited(PTX, |kernel| (kernel == "second").then_some(40));
        assert_eq!(text, PTX.replace(".entry second()\n{", ".entry second()\n.maxnreg 40\n{"));
        assert_eq!(limited(PTX, |_| None), PTX);
        assert_eq!(limited(&text, |kernel| (kernel == "second").then_some(64)), text);
    }

    #[test]
    fn a_limit_is_what_the_kernel_takes_and_a_little_more() {
        assert_eq!([4, 16, 24, 25, 48, 255].map(limit), [32, 40, 48, 56, 72, 255]);
    }
}
