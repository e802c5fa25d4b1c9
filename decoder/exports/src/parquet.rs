//! Parquet files of the tables of [`warptrace_tables`].
//!
//! `docs/reference/exports.md` describes the columns. A file leaves out the first, the name of the trace.
//! `launch` is signed, because Spark ignores statistics of unsigned numbers. The facts of
//! [`ExportSource::facts`] are key-value metadata with keys that begin with `warptrace.`.

use std::io::Write;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use warptrace_analysis::{AccessLacks, analyse};
use warptrace_tables::{AccessBatch, COUNT, EventBatch, Made, TraceFigures, Wanted};
pub use warptrace_tables::{AccessTable, EventTable, FigureTable, TraceTable};

use crate::error::ExportError;
use crate::source::ExportSource;

/// Rows of a row group. They are kept in memory.
const GROUP_ROWS: usize = 1 << 18;
/// Minimum number of rows of a row group that ends with a launch, so that readers of one launch can skip
/// other groups. The metadata of smaller groups would cost more than they save.
const LAUNCHES_ROWS: usize = 1 << 16;
const LAUNCH: &str = "launch";

/// Writes a table of the selected part of a trace and returns the number of rows. Tables of accesses count
/// missing accesses in the facts `accesses_lost`, `accesses_left_out` and `accesses_unmatched`. Memory: as
/// for the table, plus 2^18 rows. Fails if the trace is damaged, the output exceeds its limit, or `out`
/// cannot be written.
pub fn write(
    source: &ExportSource<'_>,
    table: TraceTable,
    out: impl Write + Send,
) -> Result<u64, ExportError> {
    let (trace, selection) = (source.trace(), source.selection());
    let mut file = TableFile::new(trace.limited(out), table, &source.facts())?;
    let (columns, schema) = (file.columns.clone(), Arc::clone(&file.schema));
    let chosen = (&columns[..], &schema);
    match table {
        TraceTable::Figures(table) => {
            let analysis = &|| analyse(trace, selection).map(Arc::new).map_err(Arc::new);
            let figures = TraceFigures { name: "", trace, selection, analysis };
            file.take(|sink| figures.rows(table, chosen, sink).map(|_| ()))?;
        }
        TraceTable::Events(table) => {
            let made = Arc::new(Made::default());
            for (launch, warps) in source.launches_with_warps() {
                let wanted =
                    Wanted { warps: warps.clone(), selection: selection.clone(), locations: 0..=u64::MAX };
                let mut batch = EventBatch::new(("", trace), *launch, chosen, &made);
                file.take(|sink| {
                    let mut told = |rows: RecordBatch| {
                        source.tell(events(&rows));
                        sink(rows)
                    };
                    batch.fill(trace, &wanted, table, &mut told).map(|_| ())
                })?;
                file.end_launch()?;
            }
        }
        TraceTable::Accesses(table) => {
            let (mut lost, mut lacks) = (0, AccessLacks::default());
            // Asking each of many launches would be slow.
            let launches = if trace.has_accesses() { source.launches_with_warps() } else { &[] };
            for (launch, warps) in launches {
                let batch = AccessBatch::new(("", trace), *launch, table, chosen);
                let lacking = file.take(|sink| Ok(batch.fill(warps, selection, sink)?.1))?;
                file.end_launch()?;
                lacks.left_out += lacking.left_out;
                lacks.unmatched += lacking.unmatched;
                lost += selection.lost_accesses(trace, launch)?;
            }
            file.fact("accesses_lost", lost);
            file.fact("accesses_left_out", lacks.left_out);
            file.fact("accesses_unmatched", lacks.unmatched);
        }
    }
    file.finish()
}

fn events(rows: &RecordBatch) -> u64 {
    let counts = rows.column_by_name(COUNT);
    counts.map_or(rows.num_rows() as u64, |counts| counts.as_primitive::<UInt64Type>().values().iter().sum())
}

struct TableFile<W: Write + Send> {
    writer: ArrowWriter<W>,
    /// Indices of the file's columns in the table's schema.
    columns: Vec<usize>,
    schema: SchemaRef,
    /// Schema of the file: like `schema`, but launch numbers are signed.
    signed: SchemaRef,
    launch: Option<usize>,
    rows: u64,
}

impl<W: Write + Send> TableFile<W> {
    fn new(out: W, table: TraceTable, facts: &[(&str, String)]) -> Result<Self, ExportError> {
        let all = table.schema();
        // The file of locations has only the columns that need no pass over the events.
        let end = match table {
            TraceTable::Figures(FigureTable::Locations) => {
                all.index_of("visits").map_err(ParquetError::from)?
            }
            _ => all.fields().len(),
        };
        let columns: Vec<usize> = (1..end).collect();
        let schema = Arc::new(all.project(&columns).map_err(ParquetError::from)?);
        let signed = |field: &Arc<Field>| match field.name().as_str() {
            LAUNCH => Field::new(LAUNCH, DataType::Int64, field.is_nullable()).into(),
            _ => Arc::clone(field),
        };
        let signed = Arc::new(Schema::new(schema.fields().iter().map(signed).collect::<Vec<_>>()));
        let mut properties = WriterProperties::builder();
        // 64-bit numbers are small or grow in small steps, so differences take less space.
        for field in signed.fields().iter().filter(|field| *field.data_type() == DataType::UInt64) {
            let path = ColumnPath::from(field.name().as_str());
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
        let pair = |(key, value): &(&str, String)| KeyValue::new(format!("warptrace.{key}"), value.clone());
        let properties = properties
            .set_sorting_columns(sorted(table, &schema))
            .set_statistics_enabled(EnabledStatistics::Page)
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
            .set_created_by(concat!("warptrace ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_key_value_metadata(Some(facts.iter().map(pair).collect()))
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .build();
        let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(out, Arc::clone(&signed), options)?;
        let launch = schema.index_of(LAUNCH).ok();
        Ok(Self { writer, columns, schema, signed, launch, rows: 0 })
    }

    fn take<T>(
        &mut self,
        make: impl FnOnce(&mut warptrace_tables::Sink<'_>) -> Result<T, warptrace_tables::TableError>,
    ) -> Result<T, ExportError> {
        let mut written = Ok(());
        let made = make(&mut |batch| {
            written = self.write(&batch);
            if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        written?;
        Ok(made)
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<(), ParquetError> {
        let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
        if let Some(at) = self.launch {
            let launches = columns[at].as_primitive::<UInt32Type>();
            columns[at] = Arc::new(launches.unary::<_, Int64Type>(i64::from));
        }
        self.rows += batch.num_rows() as u64;
        self.writer.write(&RecordBatch::try_new(Arc::clone(&self.signed), columns)?)
    }

    fn end_launch(&mut self) -> Result<(), ParquetError> {
        if self.writer.in_progress_rows() >= LAUNCHES_ROWS { self.writer.flush() } else { Ok(()) }
    }

    fn fact(&mut self, key: &str, value: u64) {
        self.writer.append_key_value_metadata(KeyValue::new(format!("warptrace.{key}"), value.to_string()));
    }

    fn finish(self) -> Result<u64, ExportError> {
        self.writer.into_inner()?.flush()?;
        Ok(self.rows)
    }
}

fn sorted(table: TraceTable, schema: &Schema) -> Option<Vec<SortingColumn>> {
    let names: &[&str] = match table {
        TraceTable::Events(_) => &[LAUNCH, "warp_index", "event"],
        TraceTable::Accesses(_) => &[LAUNCH, "warp_index"],
        TraceTable::Figures(FigureTable::Sites) => &["site"],
        TraceTable::Figures(FigureTable::Launches | FigureTable::Losses | FigureTable::AccessLosses) => {
            &[LAUNCH]
        }
        TraceTable::Figures(_) => return None,
    };
    let column = |name: &&str| {
        let column_idx = schema.index_of(name).ok()? as i32;
        Some(SortingColumn { column_idx, descending: false, nulls_first: false })
    };
    names.iter().map(column).collect()
}

#[cfg(test)]
mod tests {
    use parquet::file::metadata::{PageIndexPolicy, ParquetMetaDataReader};
    use parquet::file::statistics::Statistics;

    use super::*;

    #[test]
    fn row_groups_end_with_launches_and_say_what_is_in_them() {
        let file = tempfile::tempfile().unwrap();
        let table = TraceTable::Figures(FigureTable::AccessLosses);
        let mut written = TableFile::new(&file, table, &[]).unwrap();
        let numbers =
            |value: u64| -> ArrayRef { Arc::new(arrow_array::UInt64Array::from(vec![value; 25_000])) };
        for launch in 0..7 {
            let mut columns: Vec<ArrayRef> = vec![
                Arc::new(arrow_array::UInt32Array::from(vec![launch; 25_000])),
                Arc::new(arrow_array::StringArray::from(vec!["k"; 25_000])),
            ];
            columns.extend((0..5).map(numbers));
            written.write(&RecordBatch::try_new(Arc::clone(&written.schema), columns).unwrap()).unwrap();
            written.end_launch().unwrap();
        }
        assert_eq!(written.finish().unwrap(), 175_000);
        let mut reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Required);
        reader.try_parse(&file).unwrap();
        let metadata = reader.finish().unwrap();
        let found: Vec<(i64, i64, i64)> = (metadata.row_groups().iter())
            .map(|group| {
                let order = group.sorting_columns().unwrap();
                assert_eq!(order.iter().map(|by| by.column_idx).collect::<Vec<_>>(), [0]);
                assert!(order.iter().all(|by| !by.descending));
                let Some(Statistics::Int64(launch)) = group.column(0).statistics() else {
                    panic!("no statistics")
                };
                (group.num_rows(), *launch.min_opt().unwrap(), *launch.max_opt().unwrap())
            })
            .collect();
        assert_eq!(found, [(75_000, 0, 2), (75_000, 3, 5), (25_000, 6, 6)]);
        assert!(metadata.column_index().unwrap().iter().all(|columns| columns.len() == 7));
        assert!(metadata.offset_index().unwrap()[0][0].page_locations().len() >= 3);
    }
}
