//! Writers of results.

use std::io::Write;

use datafusion::arrow::array::{Array, AsArray, Float64Array, RecordBatch};
use datafusion::arrow::csv;
use datafusion::arrow::datatypes::{Field, Float64Type, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::writer::{JsonFormat, WriterBuilder};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use warptrace_format::shown;

use crate::error::QueryError;

/// Number of rows that determine the widths of a table's columns. Later rows may be wider.
const MEASURED: usize = 1000;
const ROW_GROUP: usize = 1 << 18;

/// Formats of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Columns of text for display.
    Table,
    /// Comma-separated values with a header.
    Csv,
    /// A list of objects, one on each line.
    Json,
    /// A Parquet file.
    Parquet,
}

/// A writer of batches of rows. Holds at most a row group of Parquet, or the first rows of a table.
pub struct Writer<W: Write + Send>(Kind<W>);

enum Kind<W: Write + Send> {
    Table(TextTable<W>),
    Csv { out: W, is_begun: bool },
    Json(datafusion::arrow::json::Writer<W, Rows>),
    Parquet(Box<ArrowWriter<W>>),
}

#[derive(Debug, Default)]
struct Rows;

impl JsonFormat for Rows {
    fn start_stream<W: Write>(&self, out: &mut W) -> Result<(), ArrowError> {
        Ok(out.write_all(b"[")?)
    }

    fn start_row<W: Write>(&self, out: &mut W, is_first: bool) -> Result<(), ArrowError> {
        Ok(out.write_all(if is_first { b"\n" } else { b",\n" })?)
    }

    fn end_stream<W: Write>(&self, out: &mut W) -> Result<(), ArrowError> {
        Ok(out.write_all(b"\n]\n")?)
    }
}

impl<W: Write + Send> std::fmt::Debug for Writer<W> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Writer").finish_non_exhaustive()
    }
}

impl<W: Write + Send> Writer<W> {
    /// Starts a result with these columns. Fails if `out` cannot be written, or the format lacks a type.
    pub fn new(out: W, format: Format, schema: &SchemaRef) -> Result<Self, QueryError> {
        Ok(Self(match format {
            Format::Table => Kind::Table(TextTable::new(out, schema)),
            Format::Csv => {
                let mut kind = Kind::Csv { out, is_begun: false };
                // Writes the header, also for a result without rows.
                kind.write(&RecordBatch::new_empty(schema.clone()))?;
                kind
            }
            Format::Json => Kind::Json(WriterBuilder::new().with_explicit_nulls(true).build::<W, Rows>(out)),
            Format::Parquet => {
                let properties = WriterProperties::builder()
                    .set_compression(Compression::ZSTD(ZstdLevel::default()))
                    .set_max_row_group_row_count(Some(ROW_GROUP))
                    .build();
                Kind::Parquet(Box::new(ArrowWriter::try_new(out, schema.clone(), Some(properties))?))
            }
        }))
    }

    /// Writes rows. Fails if the output cannot be written.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), QueryError> {
        self.0.write(batch)
    }

    /// Finishes the result. Fails if the output cannot be written.
    pub fn finish(self) -> Result<W, QueryError> {
        Ok(match self.0 {
            Kind::Table(table) => table.finish()?,
            Kind::Csv { out, .. } => out,
            Kind::Json(mut writer) => {
                writer.finish()?;
                writer.into_inner()
            }
            Kind::Parquet(writer) => writer.into_inner()?,
        })
    }
}

impl<W: Write + Send> Kind<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), QueryError> {
        match self {
            Self::Table(table) => table.write(batch),
            Self::Csv { out, is_begun } => {
                // Arrow converts errors of `out` to text, which would hide the kind of a closed pipe.
                let mut bytes = Vec::new();
                csv::WriterBuilder::new().with_header(!*is_begun).build(&mut bytes).write(batch)?;
                *is_begun = true;
                Ok(out.write_all(&bytes)?)
            }
            Self::Json(writer) => Ok(writer.write(batch)?),
            Self::Parquet(writer) => Ok(writer.write(batch)?),
        }
    }
}

fn fraction(number: f64) -> String {
    let rounded = format!("{number:.4}");
    if number != 0.0 && number.abs() < 0.01 || !number.is_finite() { number.to_string() } else { rounded }
}

struct TextTable<W> {
    out: W,
    head: Vec<(String, bool)>,
    /// Rows to be measured, until widths are set.
    first: Vec<Vec<String>>,
    widths: Option<Vec<usize>>,
}

impl<W: Write> TextTable<W> {
    fn new(out: W, schema: &SchemaRef) -> Self {
        let column = |field: &Field| (shown(field.name()).into_owned(), field.data_type().is_numeric());
        let head = schema.fields().iter().map(|field| column(field)).collect();
        Self { out, head, first: Vec::new(), widths: None }
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<(), QueryError> {
        let options = FormatOptions::default();
        let columns = batch.columns().iter().map(|column| {
            Ok((
                ArrayFormatter::try_new(column.as_ref(), &options)?,
                column.as_primitive_opt::<Float64Type>(),
            ))
        });
        let columns = columns.collect::<Result<Vec<_>, ArrowError>>()?;
        for row in 0..batch.num_rows() {
            let cell = |(text, fractions): &(ArrayFormatter<'_>, Option<&Float64Array>)| match fractions {
                Some(numbers) if numbers.is_valid(row) => fraction(numbers.value(row)),
                _ => text.value(row).to_string(),
            };
            let cells: Vec<String> = columns.iter().map(cell).collect();
            if self.is_plan() {
                self.add_plan(&cells)?;
            } else {
                self.add(cells.iter().map(|cell| shown(cell).into_owned()).collect())?;
            }
        }
        Ok(())
    }

    /// Returns true for the rows of EXPLAIN, which have several lines.
    fn is_plan(&self) -> bool {
        self.head.iter().map(|(name, _)| name.as_str()).eq(["plan_type", "plan"])
    }

    fn add_plan(&mut self, cells: &[String]) -> Result<(), QueryError> {
        let [kind, plan] = cells else { return Ok(()) };
        for (number, line) in plan.trim_end().lines().enumerate() {
            let kind = if number == 0 { shown(kind) } else { "".into() };
            self.add(vec![kind.into_owned(), shown(line).into_owned()])?;
        }
        Ok(())
    }

    fn add(&mut self, cells: Vec<String>) -> Result<(), QueryError> {
        if self.widths.is_some() {
            return self.line(&cells);
        }
        self.first.push(cells);
        if self.first.len() == MEASURED {
            self.begin()?;
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<(), QueryError> {
        let width = |text: &String| text.chars().count();
        let of_column = |(at, (name, _)): (usize, &(String, bool))| {
            let cells = self.first.iter().map(|row| width(&row[at]));
            cells.chain([width(name)]).max().unwrap_or(0)
        };
        self.widths = Some(self.head.iter().enumerate().map(of_column).collect());
        let head: Vec<String> = self.head.iter().map(|(name, _)| name.clone()).collect();
        self.line(&head)?;
        for row in std::mem::take(&mut self.first) {
            self.line(&row)?;
        }
        Ok(())
    }

    fn line(&mut self, cells: &[String]) -> Result<(), QueryError> {
        let widths = self.widths.as_deref().unwrap_or(&[]);
        let mut line = String::new();
        for ((cell, width), (_, is_number)) in cells.iter().zip(widths).zip(&self.head) {
            if !line.is_empty() {
                line.push(' ');
            }
            line += &if *is_number { format!("{cell:>width$}") } else { format!("{cell:<width$}") };
        }
        Ok(writeln!(self.out, "{}", line.trim_end())?)
    }

    fn finish(mut self) -> Result<W, QueryError> {
        if self.widths.is_none() {
            self.begin()?;
        }
        Ok(self.out)
    }
}
