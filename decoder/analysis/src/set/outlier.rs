//! Finds the file that differs most from the others.

use std::cmp::Reverse;

use serde::Serialize;

use super::spread::{Figure, Spread};
use super::{SetAnalysis, SetRow};
use crate::counts::median;
use crate::order::OrderItems;

/// A kernel or line of the outlier file, and its difference from the median.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OutlierRow {
    /// Name of the kernel, or file of the line.
    pub name: String,
    /// Number of the line; 0 for a kernel.
    pub line: u32,
    /// Compared figure.
    pub figure: Figure,
    /// Value in the file.
    pub number: u64,
    /// Median over the files.
    pub median: u64,
}

/// The file that differs most from the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OutlierFile {
    /// Index of the file.
    pub file: u32,
    /// Kernel with the greatest difference from the median.
    pub kernel: OutlierRow,
    /// Line with the greatest difference from the median; `None` if no line differs.
    pub line: Option<OutlierRow>,
}

impl SetAnalysis {
    /// Returns the file with the greatest distance from the median, summed over kernels; `None` if no kernel
    /// differs. Compares run times if all files have them, otherwise warp-cycles, otherwise visits.
    pub fn outlier(&self) -> Option<OutlierFile> {
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
            (distance > 0).then_some(OutlierRow { name, line, figure, number, median })
        };
        let kernel = farthest(figure, |row| matches!(row, SetRow::Kernel(_)))?;
        let of_line = self.first_of(&[Figure::WarpCycles, Figure::Visits]);
        let is_line = |row: &SetRow| matches!(row, SetRow::Line(_, 1.., _));
        Some(OutlierFile { file, kernel, line: farthest(of_line, is_line) })
    }

    /// Returns the kernels that differ in the figure that [`outlier`](Self::outlier) compares, by range, descending.
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

    /// Returns the first of these figures that all files have; visits if there is none.
    pub fn first_of(&self, figures: &[Figure]) -> Figure {
        figures.iter().copied().find(|figure| self.has(*figure)).unwrap_or(Figure::Visits)
    }

    pub(super) fn has(&self, figure: Figure) -> bool {
        let mut files = self.files.iter().filter(|file| file.left_out.is_none());
        files.all(|file| match figure {
            Figure::Nanoseconds => file.nanoseconds.is_some(),
            Figure::WarpCycles => file.totals.time.is_some(),
            _ => true,
        })
    }

    /// Returns each file, its distance from the median, its value, and the median.
    fn distances(&self, row: &SetRow, figure: Figure) -> Vec<(u32, u64, u64, u64)> {
        let Some(numbers) = self.rows.get(row) else { return Vec::new() };
        let numbers = numbers.by_file(figure, self.having(row));
        let middle = median(&mut numbers.iter().map(|(_, number)| *number).collect::<Vec<_>>());
        numbers.into_iter().map(|(file, number)| (file, number.abs_diff(middle), number, middle)).collect()
    }
}
