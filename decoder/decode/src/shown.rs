//! Texts of a file as they may be shown.
//!
//! A [`TraceFile`](crate::TraceFile) holds no text as it stands in the file: what would act on a terminal, or
//! change the order of what is read, is escaped when the file is opened. So printing cannot forget it.

use std::borrow::Cow;

use warptrace_format::file::{DeviceInfo, EarlyEnd, KernelInfo, LocationInfo, Metadata};

/// Escapes control characters (C0, DEL and C1), marks of direction, and separators of lines and paragraphs, as
/// Rust writes them: `\u{1b}`, `\n`. All other characters stay, a backslash too.
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

/// As [`shown`], but lines stay lines and tabs tabs.
pub(crate) fn shown_lines(text: String) -> String {
    if !text.contains(|letter| acts(letter) && letter != '\n' && letter != '\t') {
        return text;
    }
    let line = |line: &str| line.split('\t').map(shown).collect::<Vec<_>>().join("\t");
    let lines = text.split('\n').map(|text| line(text.strip_suffix('\r').unwrap_or(text)));
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether a terminal or a reader does more with a character than show it.
fn acts(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escape(text: &mut String) {
    if let Cow::Owned(shown) = shown(text) {
        *text = shown;
    }
}

pub(crate) fn metadata(found: &mut Metadata) {
    let Metadata { tool, device, kernels, policy, locations, properties, .. } = found;
    let DeviceInfo { name, driver_version, .. } = device;
    [tool, name, policy].into_iter().chain(driver_version).for_each(escape);
    for KernelInfo { name, source_file, .. } in kernels {
        [name, source_file].into_iter().for_each(escape);
    }
    for LocationInfo { name, description, file, function, .. } in locations {
        [name, description, file, function].into_iter().for_each(escape);
    }
    for (key, value) in properties {
        [key, value].into_iter().for_each(escape);
    }
}

pub(crate) fn early_end(end: &mut EarlyEnd) {
    if let EarlyEnd::Failed { message } = end {
        *message = shown_lines(std::mem::take(message));
    }
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
        // Nothing is left to escape.
        assert!(matches!(shown(&shown(text)), Cow::Borrowed(_)));
    }

    #[test]
    fn lines_stay_lines() {
        assert_eq!(shown_lines("a\r\n\tb\u{1b}\rc\n".to_owned()), "a\n\tb\\u{1b}\\rc\n");
    }
}
