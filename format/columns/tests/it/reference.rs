//! Compares this crate with the Python reader, which was written from `docs/reference/codecs.md`: both decode
//! columns to the same values and reject the same columns.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{KINDS, Random, column};
use warptrace_columns::{ColumnCursor, Element, Header, Layout, Packing, Shape, decode, encode};

fn columns<T: Element>() -> Vec<Vec<u8>> {
    let mut columns = Vec::new();
    let mut random = Random(3);
    for kind in KINDS {
        for length in [0, 1, 2, 127, 128, 129, 255, 256, 300, 700] {
            let values = column::<T>(kind, length);
            let mut chosen = Vec::new();
            encode(&values, 1, &mut chosen);
            columns.push(chosen);
            for packing in Packing::ALL {
                for zero_runs in [false, true] {
                    let shape = Shape::new(random.below(9) as usize, 1 + random.below(8) as usize).unwrap();
                    let mut bytes = Vec::new();
                    Layout { shape, zero_runs, packing }.encode(&values, &mut bytes);
                    bytes.extend(std::iter::repeat_n(0xa5, random.below(3) as usize));
                    columns.push(bytes);
                }
            }
        }
    }
    columns
}

fn read(bytes: &[u8]) -> String {
    fn line<T: Element>(bytes: &[u8]) -> Option<String> {
        let mut source = ColumnCursor::new(bytes);
        let values = decode::<T>(&mut source).ok()?;
        let mut line = format!("{} {}", source.offset(), T::BITS);
        values.iter().for_each(|value| write!(line, " {}", value.to_u64()).unwrap());
        Some(line)
    }
    let line = match Header::read(&mut ColumnCursor::new(bytes)) {
        Ok(Header { bits: 64, .. }) => line::<u64>(bytes),
        Ok(_) => line::<u32>(bytes),
        Err(_) => None,
    };
    line.unwrap_or_else(|| "damaged".to_owned())
}

/// Returns the number of columns that both readers reject.
fn compare(columns: &[Vec<u8>]) -> Option<usize> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../decoder/reference/columns.py");
    let mut python = Command::new("python3");
    python.arg(script).env("PYTHONDONTWRITEBYTECODE", "1").stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut python) = python.spawn() else {
        eprintln!("skipped: there is no python3");
        return None;
    };
    let mut lines = String::new();
    for column in columns {
        column.iter().for_each(|byte| write!(lines, "{byte:02x}").unwrap());
        lines.push('\n');
    }
    let mut input = python.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = python.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    let output = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.lines().count(), columns.len());
    for (found, column) in output.lines().zip(columns) {
        assert_eq!(found, read(column), "{column:02x?}");
    }
    Some(output.lines().filter(|line| *line == "damaged").count())
}

#[test]
fn columns_of_all_layouts() {
    for columns in [columns::<u32>(), columns::<u64>()] {
        assert!(compare(&columns).is_none_or(|damaged| damaged == 0));
    }
}

#[test]
fn damaged_columns() {
    let mut random = Random(4);
    let mut damaged = Vec::new();
    for column in columns::<u32>().into_iter().chain(columns::<u64>()) {
        for _ in 0..4 {
            let mut column = column.clone();
            // Half of the changes are near the start, where most bytes have a separate meaning.
            let limit = if random.below(2) == 0 { 8 } else { column.len() as u64 };
            let at = random.below(limit) as usize;
            match random.below(3) {
                0 => column.truncate(at),
                _ if at < column.len() => column[at] ^= 1 << random.below(8),
                _ => column.push(0),
            }
            damaged.push(column);
        }
    }
    let refused = compare(&damaged);
    assert!(
        refused.is_none_or(|refused| (damaged.len() / 5..damaged.len()).contains(&refused)),
        "{refused:?}"
    );
}
