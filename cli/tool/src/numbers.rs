//! Parses lists of numbers in arguments.

use std::str::FromStr;

/// Parses numbers separated by commas; `None` if a part is not a number or if there are not exactly `N`.
pub fn parse_numbers<T: FromStr, const N: usize>(text: &str) -> Option<[T; N]> {
    list(text)?.try_into().ok()
}

fn list<T: FromStr>(text: &str) -> Option<Vec<T>> {
    text.split(',').map(|part| part.trim().parse().ok()).collect()
}

/// Parses one to three coordinates of a block. Missing ones are 0. Fails for any other text.
pub fn parse_block(text: &str) -> Result<[u32; 3], String> {
    let found: Vec<u32> = list(text).ok_or("a block is X, X,Y or X,Y,Z, as in 12 or 3,4")?;
    match found[..] {
        [x] => Ok([x, 0, 0]),
        [x, y] => Ok([x, y, 0]),
        [x, y, z] => Ok([x, y, z]),
        _ => Err("a block has one to three coordinates".to_owned()),
    }
}
