//! Counts lines of Rust: production, tests and comments. Ignores blank lines.

use std::fs;
use std::ops::AddAssign;
use std::path::Path;

use anyhow::Context;

use crate::workspace;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lines {
    pub(super) production: u64,
    /// Lines in `tests/`, `benches/`, `examples/`, `fuzz/`, `tests.rs`, `*_tests.rs` and items under `#[cfg(test)]`.
    pub(super) tests: u64,
    pub(super) comments: u64,
}

impl AddAssign for Lines {
    fn add_assign(&mut self, other: Self) {
        self.production += other.production;
        self.tests += other.tests;
        self.comments += other.comments;
    }
}

/// Counts the lines of all Rust files of the repository.
pub(super) fn count_all() -> anyhow::Result<Lines> {
    let mut sum = Lines::default();
    for name in workspace::files()?.iter().filter(|name| name.ends_with(".rs")) {
        let bytes = fs::read(workspace::root().join(name)).with_context(|| format!("cannot read {name}"))?;
        sum += count(&String::from_utf8_lossy(&bytes), is_test(Path::new(name)));
    }
    Ok(sum)
}

fn is_test(path: &Path) -> bool {
    let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let folders: Vec<&str> =
        path.parent().into_iter().flatten().map(|part| part.to_str().unwrap_or_default()).collect();
    folders.iter().any(|folder| ["tests", "benches", "examples"].contains(folder))
        || folders.first() == Some(&"fuzz")
        || file == "tests.rs"
        || file.ends_with("_tests.rs")
}

fn count(text: &str, is_test: bool) -> Lines {
    let mut lines = Lines::default();
    let mut in_comment = false;
    // The current item under `#[cfg(test)]`: its brace depth, and whether it has opened a brace.
    let mut item: Option<(i64, bool)> = None;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let is_comment = in_comment || line.starts_with("//") || line.starts_with("/*");
        if in_comment || line.starts_with("/*") {
            in_comment = !line.contains("*/");
        }
        if is_comment {
            lines.comments += 1;
        } else if let Some((depth, opened)) = &mut item {
            lines.tests += 1;
            let code = without_literals(line);
            let braces = |brace| code.matches(brace).count();
            *depth += i64::try_from(braces('{')).unwrap_or(0) - i64::try_from(braces('}')).unwrap_or(0);
            *opened |= code.contains('{');
            if *depth <= 0 && (code.contains('}') || (code.ends_with(';') && !*opened)) {
                item = None;
            }
        } else if is_test {
            lines.tests += 1;
        } else if line.starts_with("#[cfg(test") || line.starts_with("#[cfg(all(test") {
            item = Some((0, false));
            lines.tests += 1;
        } else {
            lines.production += 1;
        }
    }
    lines
}

/// Removes string and character literals, and a trailing comment.
fn without_literals(line: &str) -> String {
    let mut code = String::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        if rest.starts_with("//") {
            break;
        }
        let literal = match first {
            '"' => string_length(rest),
            '\'' => character_length(rest),
            _ => None,
        };
        match literal {
            Some(length) => rest = &rest[length..],
            None => {
                code.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    code
}

/// Returns the length of the string literal at the start, or `None` if it does not end on this line.
fn string_length(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Returns the length of the character literal at the start of `text`, or `None` for a lifetime.
fn character_length(text: &str) -> Option<usize> {
    let mut characters = text.char_indices().skip(1);
    let (_, first) = characters.next()?;
    if first == '\'' {
        return None;
    }
    if first == '\\' {
        characters.next()?;
    }
    let (at, last) = characters.next()?;
    (last == '\'').then_some(at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn production_tests_and_comments_are_told_apart() {
        let text = "//! A file.\n\nfn one() {} // not a comment line\n/* two\nlines */\n#[cfg(test)]\nuse a::b;\n\
                    #[cfg(test)]\nmod tests {\n    // }\n    const BRACE: (char, &str) = ('}', \"}\");\n}\nfn two<'a>() {}\n";
        assert_eq!(count(text, false), Lines { production: 2, tests: 6, comments: 4 });
        assert_eq!(count("fn helper() {}\n", true), Lines { production: 0, tests: 1, comments: 0 });
    }

    #[test]
    fn tests_are_known_by_their_path() {
        for (path, expected) in [
            ("cli/tool/tests/it/main.rs", true),
            ("cli/tool/src/main.rs", false),
            ("fuzz/src/lib.rs", true),
            ("decoder/fuzz/src/lib.rs", false),
            ("cli/tui/src/tests.rs", true),
            ("cli/tui/src/screen_tests.rs", true),
        ] {
            assert_eq!(is_test(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn literals_hide_braces() {
        assert_eq!(without_literals(r#"a("{", '}', '\'', "\"{") { 'b // {"#), "a(, , , ) { 'b ");
    }
}
