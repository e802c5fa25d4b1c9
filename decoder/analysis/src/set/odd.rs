//! Which file is unlike the others.

use std::cmp::Reverse;

use serde::Serialize;

use super::spread::{Figure, Spread};
use super::{SetAnalysis, SetRow};
use crate::counts::median;
use crate::order::OrderItems;

/// A kernel or a line of the odd file, and how far it is from the median there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OddRow {
    /// The kernel's name, or the line's file.
    pub name: String,
    /// The number of the line; 0 of a kernel.
    pub line: u32,
    /// What is compared.
    pub figure: Figure,
    /// How much the file has of it.
    pub number: u64,
    /// How much the median file has.
    pub median: u64,
}

/// The file that is farthest from the others, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OddFile {
    /// Its place among the files.
    pub file: u32,
    /// The kernel in which it is farthest from the median.
    pub kernel: OddRow,
    /// The line in which it is.
    pub line: Option<OddRow>,
}

impl SetAnalysis {
    /// Returns the file whose kernels are farthest from those of the median file: the distances of the kernels
    /// are summed up. Compared is the time of launches if all files have it, else warp-cycles, else visits. `None`
    /// if no kernel differs.
    pub fn odd(&self) -> Option<OddFile> {
        let figure = self.first_of(&[Figure::Nanoseconds, Figure::WarpCycles, Figure::Visits]);
        let mut distances = vec![0_u64; self.files.len()];
        for row in self.rows.keys().filter(|row| matches!(row, SetRow::Kernel(_))) {
            for (file, distance, ..) in self.distances(row, figure) {
                let sum = &mut distances[file as usize];
                *sum = sum.saturating_add(distance);
            }
        }
        let (file, most) =
            (0..).zip(distances).reduce(|most, next| if next.1 > most.1 { next } else { most })?;
        if most == 0 {
            return None;
        }
        let farthest = |figure: Figure, is_asked: fn(&SetRow) -> bool| {
            let rows = self.rows.keys().filter(|row| is_asked(row));
            let of_file = rows.filter_map(|row| {
                let found = self.distances(row, figure).into_iter().find(|(of, ..)| *of == file)?;
                Some((row, found))
            });
            let (row, (_, distance, number, median)) =
                of_file.reduce(|most, next| if next.1.1 > most.1.1 { next } else { most })?;
            let (name, line) = match row {
                SetRow::Line(name, line, _) => (name.clone(), *line),
                SetRow::Kernel(name) => (name.clone(), 0),
                SetRow::Location(id) => (id.to_string(), 0),
            };
            (distance > 0).then_some(OddRow { name, line, figure, number, median })
        };
        let kernel = farthest(figure, |row| matches!(row, SetRow::Kernel(_)))?;
        let of_line = self.first_of(&[Figure::WarpCycles, Figure::Visits]);
        let is_line = |row: &SetRow| matches!(row, SetRow::Line(_, 1.., _));
        Some(OddFile { file, kernel, line: farthest(of_line, is_line) })
    }

    /// Returns the kernels that differ from file to file, in the figure that [`odd`](Self::odd) compares: those first
    /// whose least and most are farthest apart.
    pub fn kernels_apart(&self) -> Vec<(&str, Figure, Spread)> {
        let figure = self.first_of(&[Figure::Nanoseconds, Figure::WarpCycles, Figure::Visits]);
        let rows = self.rows.iter().filter_map(|(row, numbers)| match row {
            SetRow::Kernel(name) => {
                Some((name.as_str(), figure, Spread::new(&numbers.by_file(figure, self.having(row)))?))
            }
            _ => None,
        });
        let mut apart: Vec<(&str, Figure, Spread)> = rows.filter(|(.., spread)| !spread.is_even()).collect();
        apart.order_by_key(|(.., spread)| Reverse(spread.most - spread.least));
        apart
    }

    /// Returns the first of these figures that all files have; visits if none is.
    pub fn first_of(&self, figures: &[Figure]) -> Figure {
        figures.iter().copied().find(|figure| self.has(*figure)).unwrap_or(Figure::Visits)
    }

    /// Whether all files know a figure, so that it can be compared.
    pub(super) fn has(&self, figure: Figure) -> bool {
        let mut files = self.files.iter().filter(|file| file.left_out.is_none());
        files.all(|file| match figure {
            Figure::Nanoseconds => file.nanoseconds.is_some(),
            Figure::WarpCycles => file.totals.time.is_some(),
            _ => true,
        })
    }

    /// Each file's distance from the median, its number, and the median.
    fn distances(&self, row: &SetRow, figure: Figure) -> Vec<(u32, u64, u64, u64)> {
        let Some(numbers) = self.rows.get(row) else { return Vec::new() };
        let numbers = numbers.by_file(figure, self.having(row));
        let middle = median(&mut numbers.iter().map(|(_, number)| *number).collect::<Vec<_>>());
        numbers.into_iter().map(|(file, number)| (file, number.abs_diff(middle), number, middle)).collect()
    }
}
