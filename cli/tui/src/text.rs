//! Text that fits into a number of columns.

use ratatui::text::Span;
use warptrace_analysis::words::count;

/// Formats a number in at most five characters: `9,999`, `12.3k`, `4.56M`.
pub(crate) fn short(number: u64) -> String {
    if number < 10_000 {
        return count(number);
    }
    let (mut scaled, mut suffix) = (number as f64, "");
    for next in ["k", "M", "G", "T", "P", "E"] {
        // A number that would round to 1000 gets the next suffix.
        if scaled < 999.5 {
            break;
        }
        (scaled, suffix) = (scaled / 1000.0, next);
    }
    let digits = if scaled < 9.995 {
        2
    } else if scaled < 99.95 {
        1
    } else {
        0
    };
    format!("{scaled:.digits$}{suffix}")
}

pub(crate) fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// Cuts a text to at most `columns` columns. A cut text ends with `…`.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut cut = String::new();
    let mut taken = 1;
    for character in text.chars() {
        taken += width(character.encode_utf8(&mut [0; 4]));
        if taken > columns {
            break;
        }
        cut.push(character);
    }
    if columns > 0 {
        cut.push('…');
    }
    cut
}

/// Cuts or pads a text to `columns` columns. Numbers are padded on the left.
pub(crate) fn pad(text: &str, columns: usize, is_number: bool) -> String {
    let text = fit(text, columns);
    let spaces = " ".repeat(columns.saturating_sub(width(&text)));
    if is_number { spaces + &text } else { text + &spaces }
}

/// Breaks a text between words into at most `lines` lines. Lines wider than `columns` are cut.
pub(crate) fn wrap(text: &str, columns: usize, lines: usize) -> Vec<String> {
    let mut wrapped: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let is_last = wrapped.len() == lines;
        match wrapped.last_mut() {
            Some(line) if is_last || width(line) + 1 + width(word) <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => wrapped.push(word.to_owned()),
        }
    }
    wrapped.iter().map(|line| fit(line, columns)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_five_characters() {
        let numbers = [0, 9_999, 10_000, 12_345, 99_949, 99_950, 999_499, 999_500, 4_560_000, 1_000_000_000];
        let said = numbers.map(short);
        assert_eq!(
            said,
            ["0", "9,999", "10.0k", "12.3k", "99.9k", "100k", "999k", "1.00M", "4.56M", "1.00G"]
        );
        assert_eq!(short(u64::MAX), "18.4E");
    }

    #[test]
    fn texts_are_cut_and_wrapped() {
        assert_eq!(
            (fit("abcdef", 4), fit("abcd", 4), fit("ab", 0)),
            ("abc…".into(), "abcd".into(), String::new())
        );
        // Wide characters take two columns.
        assert_eq!((fit("漢字漢", 4), pad("漢", 4, true)), ("漢…".into(), "  漢".into()));
        assert_eq!(wrap("one two three four", 8, 2), ["one two", "three f…"]);
        assert_eq!(wrap("one two three four", 80, 2), ["one two three four"]);
        assert_eq!(wrap("", 8, 2), Vec::<String>::new());
    }
}
