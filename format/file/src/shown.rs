//! Escaping of untrusted text for output: from files, paths, arguments, compilers and drivers.

use std::borrow::Cow;

/// Escapes control characters, direction marks, invisible characters, and line and paragraph separators in
/// Rust's notation: `\u{1b}`, `\n`. Other characters, the backslash included, stay.
pub fn shown(text: &str) -> Cow<'_, str> {
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        if acts(letter) {
            match letter {
                '\n' | '\r' | '\t' => shown.extend(letter.escape_default()),
                _ => shown.extend(letter.escape_unicode()),
            }
        } else {
            shown.push(letter);
        }
    }
    Cow::Owned(shown)
}

/// Like [`shown`], but keeps line breaks and tabs. Removes a carriage return at the end of a line.
pub fn shown_lines(text: &str) -> Cow<'_, str> {
    if !text.contains(|letter| acts(letter) && letter != '\n' && letter != '\t') {
        return Cow::Borrowed(text);
    }
    let line = |line: &str| line.split('\t').map(shown).collect::<Vec<_>>().join("\t");
    let lines = text.split('\n').map(|text| line(text.strip_suffix('\r').unwrap_or(text)));
    Cow::Owned(lines.collect::<Vec<_>>().join("\n"))
}

/// Joins the lines of a text with `; ` and escapes them like [`shown`].
pub fn on_one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(shown).collect::<Vec<_>>().join("; ")
}

/// Returns true for characters that a terminal interprets or that a reader cannot see.
fn acts(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_a_terminal_is_escaped_and_the_rest_stays() {
        for plain in ["", "µ \"quoted\" C:\\x", "two  words", "日本 ✓ e\u{301}"] {
            assert!(matches!(shown(plain), Cow::Borrowed(text) if text == plain));
        }
        let text = "a\u{1b}]52;c;x\u{7}\u{9b}2J\u{7f}\u{202e}b\u{2066}\u{2028}\n\t";
        assert_eq!(shown(text), "a\\u{1b}]52;c;x\\u{7}\\u{9b}2J\\u{7f}\\u{202e}b\\u{2066}\\u{2028}\\n\\t");
        // The escaped text needs no further escaping.
        assert!(matches!(shown(&shown(text)), Cow::Borrowed(_)));
    }

    #[test]
    fn the_characters_that_unicode_ignores_are_escaped() {
        let acting =
            regex::Regex::new(r"[\p{Cc}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}\u{fff9}-\u{fffb}]");
        let acting = acting.expect("a class");
        for letter in '\0'..=char::MAX {
            let text = letter.to_string();
            assert_eq!(shown(&text) != text, acting.is_match(&text), "{letter:?}");
        }
        assert_eq!(shown("a\u{200b}b\u{feff}\u{e0041}"), "a\\u{200b}b\\u{feff}\\u{e0041}");
    }

    #[test]
    fn lines_stay_lines() {
        assert_eq!(shown_lines("a\r\n\tb\u{1b}\rc\n"), "a\n\tb\\u{1b}\\rc\n");
    }

    #[test]
    fn what_is_on_one_line_is_escaped_once() {
        assert_eq!(on_one_line(" a\tb\\u{1b}\n\n  c\u{1b}\r\n"), "a\\tb\\u{1b}; c\\u{1b}");
    }
}
