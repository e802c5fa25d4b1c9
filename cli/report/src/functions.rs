//! Finds the lines of a function in its source, by indentation and by the function's name.

use std::ops::RangeInclusive;

/// Maximum number of lines of a function that is shown as a whole.
const LONGEST: usize = 200;

/// Returns the lines of the function `name` that contains `line`, counted from 1; `None` if it is not found or
/// has more than 200 lines. The name may have a path, template arguments and parameters.
pub(crate) fn lines_of(code: &[String], line: usize, name: &str) -> Option<RangeInclusive<usize>> {
    let name = name.split(['<', '(']).next()?.rsplit("::").next()?.trim();
    let indent = |line: usize| {
        let text = code.get(line.checked_sub(1)?)?;
        let rest = text.trim_start();
        // Preprocessor lines and comments of Python may stand anywhere.
        (!rest.is_empty() && !rest.starts_with('#')).then(|| (text.len() - rest.len(), rest))
    };
    // Each enclosing construct has at most the indentation of its contents.
    let mut level = usize::MAX;
    let head = (line.saturating_sub(LONGEST).max(1)..=line).rev().find(|&at| match indent(at) {
        Some((indent, text)) if indent <= level => {
            level = indent;
            has_word(text, name)
        }
        _ => false,
    })?;
    // Brackets of the head may have its indentation.
    let is_over = |at: &usize| {
        indent(*at).is_some_and(|(indent, text)| indent <= level && !text.starts_with(['{', ')']))
    };
    // The lines between the head and `line` are the function's.
    let end = (line + 1..=code.len()).find(is_over).map_or(code.len(), |at| match indent(at) {
        Some((_, text)) if text.starts_with('}') => at,
        _ => at - 1,
    });
    let end = (line..=end).rev().find(|&at| indent(at).is_some()).unwrap_or(line);
    (end - head < LONGEST).then_some(head..=end)
}

/// Returns true if the text has `name` as a whole word.
fn has_word(text: &str, name: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    !name.is_empty()
        && text
            .match_indices(name)
            .any(|(at, _)| !text[..at].ends_with(is_part) && !text[at + name.len()..].starts_with(is_part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_found_from_its_head_to_its_end() {
        let lines = |code: &str| code.lines().map(str::to_owned).collect::<Vec<_>>();
        let cuda = lines(
            "int f();\n\nstatic __global__\nvoid find(int n,\n          int* out)\n{\n  int i = 0;\n#pragma unroll\n  while (i < n)\n    i++;\n\n  find_all(i);\n}\n\nvoid other() {}\n",
        );
        assert_eq!(lines_of(&cuda, 10, "graph::find<int>(int, int*)"), Some(4..=13));
        assert_eq!(lines_of(&cuda, 4, "find"), Some(4..=13));
        assert_eq!(lines_of(&cuda, 15, "other"), Some(15..=15));
        assert_eq!(lines_of(&cuda, 10, "missing"), None);
        let python = lines(
            "@jit\ndef add(x,\n        y):\n    if x:\n        y = 1\n    return y\n\n\nz = add(1, 2)\n",
        );
        assert_eq!(lines_of(&python, 5, "add"), Some(2..=6));
        let rust = lines(
            "mod k {\n    pub fn run(\n        a: u32,\n    ) {\n        loop {\n            a();\n        }\n    }\n\n    fn b() {}\n}\n",
        );
        assert_eq!(lines_of(&rust, 6, "run"), Some(2..=8));
    }
}
