//! Markers that `#[warptrace::kernels]` inserts where lanes wait.

use std::borrow::Cow;

use warptrace_abi::marker::EVENT_AT_WAIT;

/// Turns the markers at waits into event markers.
#[must_use]
pub fn with_waits(text: &str) -> String {
    let [wait, event] = EVENT_AT_WAIT;
    text.replace(wait, event)
}

/// Removes the markers at waits, with the `inline asm` comments that the compiler puts around them.
pub(crate) fn without_waits(text: &str) -> Cow<'_, str> {
    let [wait, _] = EVENT_AT_WAIT;
    if !text.contains(wait) {
        return Cow::Borrowed(text);
    }
    let mut kept: Vec<&str> = Vec::new();
    let mut ends = false;
    for line in text.split_inclusive('\n') {
        let is_end = std::mem::take(&mut ends) && line.trim() == "// end inline asm";
        if line.trim_start().starts_with(wait) {
            ends = kept.pop_if(|last| last.trim() == "// begin inline asm").is_some();
        } else if !is_end {
            kept.push(line);
        }
    }
    Cow::Owned(kept.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_compiler_put_around_a_marker_goes_with_it() {
        let wait = "\t// begin inline asm\n\t// warptrace.wait 7\n\t// end inline asm\n";
        let other = "\t// begin inline asm\n\t// warptrace.loc 3\n\t// end inline asm\n";
        let text = format!("{wait}\tbar.sync \t0;\n{wait}{other}{wait}\t// warptrace.wait 8\n\tret;\n");
        assert_eq!(without_waits(&text), format!("\tbar.sync \t0;\n{other}\tret;\n"));
        assert!(matches!(without_waits(other), Cow::Borrowed(text) if text == other));
        assert_eq!(without_waits(&with_waits(&text)), text.replace("wait", "loc"));
    }
}
