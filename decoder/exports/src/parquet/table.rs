//! A table that is written in row groups of bounded size.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as PhysicalType, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

/// Rows of a row group: what is kept in memory, some 70 bytes a row of `runs`.
const GROUP_ROWS: usize = 1 << 18;
/// Rows from which on a row group ends where a launch does, so that readers which want a launch leave out the
/// groups of others; fewer would be groups whose descriptions take more than is saved.
const LAUNCHES_ROWS: usize = 1 << 16;
/// Texts that are handed to the writer at once.
const TEXTS_AT_ONCE: usize = 1 << 10;

/// Types of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Unsigned numbers of this many bits, at most 32.
    Small(i8),
    /// Numbers of 32 bits with a sign.
    Signed,
    /// Unsigned numbers of 64 bits.
    Large,
    /// Numbers of 64 bits with a sign.
    LargeSigned,
    /// Floats of 64 bits.
    Float,
    /// UTF-8.
    Text,
}

/// A column: its name, its type, and whether values may be missing.
#[derive(Clone, Copy)]
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) is_optional: bool,
}

/// A column that has a value in each row.
pub(super) const fn column(name: &'static str, kind: Kind) -> Column {
    Column { name, kind, is_optional: false }
}

/// A column in which values may be missing.
pub(super) const fn optional(name: &'static str, kind: Kind) -> Column {
    Column { name, kind, is_optional: true }
}

/// A text of a table, to be written any number of times.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextId(u32);

/// A value of a row.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value {
    Missing,
    Small(u32),
    Large(u64),
    Float(f64),
    Text(TextId),
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Self::Small(value)
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Large(value)
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Self {
        Self::Small(value.cast_unsigned())
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Large(value.cast_unsigned())
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<TextId> for Value {
    fn from(value: TextId) -> Self {
        Self::Text(value)
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Missing, Into::into)
    }
}

/// Values of a column that wait to be written.
enum Values {
    Small(Vec<i32>),
    Large(Vec<i64>),
    Float(Vec<f64>),
    Text(Vec<TextId>),
}

struct Waiting {
    values: Values,
    /// 1 for each value, 0 for each that is missing; only where values may be.
    levels: Option<Vec<i16>>,
}

/// A table in the making.
pub(super) struct Table<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<Waiting>,
    texts: Vec<ByteArray>,
    /// Rows that wait.
    rows: usize,
    /// Rows in all.
    total: u64,
}

impl<W: Write + Send> Table<W> {
    /// Begins a table with these columns, whose rows come in ascending order of the columns `order`; `facts` are
    /// written beside them.
    pub(super) fn new(
        out: W,
        name: &str,
        columns: &[Column],
        order: &[&str],
        facts: &[(&str, String)],
    ) -> Result<Self, ParquetError> {
        let fields: Result<Vec<_>, _> = columns.iter().map(field).collect();
        let schema = Type::group_type_builder(name).with_fields(fields?).build()?;
        let pair = |(key, value): &(&str, String)| KeyValue::new(format!("warptrace.{key}"), value.clone());
        let mut properties = WriterProperties::builder();
        // Numbers of 64 bits are counters that grow in small steps, or small numbers: differences take less.
        for column in columns.iter().filter(|column| column.kind == Kind::Large) {
            properties = properties
                .set_column_dictionary_enabled(column.name.into(), false)
                .set_column_encoding(column.name.into(), Encoding::DELTA_BINARY_PACKED);
        }
        let place = |name: &&str| columns.iter().position(|column| column.name == *name);
        let sorted = |name: &&str| SortingColumn {
            column_idx: place(name).expect("the table has the columns it is ordered by") as i32,
            descending: false,
            nulls_first: false,
        };
        let properties = properties
            .set_sorting_columns((!order.is_empty()).then(|| order.iter().map(sorted).collect()))
            .set_statistics_enabled(EnabledStatistics::Page)
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
            .set_created_by(concat!("warptrace ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_key_value_metadata(Some(facts.iter().map(pair).collect()))
            .build();
        let writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?;
        let waiting = |column: &Column| Waiting {
            values: match column.kind {
                Kind::Small(_) | Kind::Signed => Values::Small(Vec::new()),
                Kind::Large | Kind::LargeSigned => Values::Large(Vec::new()),
                Kind::Float => Values::Float(Vec::new()),
                Kind::Text => Values::Text(Vec::new()),
            },
            levels: column.is_optional.then(Vec::new),
        };
        let columns = columns.iter().map(waiting).collect();
        Ok(Self { writer, columns, texts: Vec::new(), rows: 0, total: 0 })
    }

    /// Adds a text that rows can name.
    pub(super) fn text(&mut self, text: &str) -> TextId {
        self.texts.push(ByteArray::from(text));
        TextId((self.texts.len() - 1) as u32)
    }

    /// Adds a text if it is not empty.
    pub(super) fn text_if_known(&mut self, text: &str) -> Option<TextId> {
        (!text.is_empty()).then(|| self.text(text))
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If the values are not of the columns' types.
    pub(super) fn push(&mut self, row: &[Value]) -> Result<(), ParquetError> {
        assert_eq!(row.len(), self.columns.len(), "a row has a value for each column");
        for (column, value) in self.columns.iter_mut().zip(row) {
            match (&mut column.values, *value) {
                // The format keeps unsigned numbers in the bits of signed ones.
                (Values::Small(values), Value::Small(value)) => values.push(value.cast_signed()),
                (Values::Large(values), Value::Large(value)) => values.push(value.cast_signed()),
                (Values::Float(values), Value::Float(value)) => values.push(value),
                (Values::Text(values), Value::Text(value)) => values.push(value),
                (_, Value::Missing) if column.levels.is_some() => {}
                (_, value) => panic!("{value:?} is not of its column's type"),
            }
            if let Some(levels) = &mut column.levels {
                levels.push(i16::from(!matches!(value, Value::Missing)));
            }
        }
        self.rows += 1;
        self.total += 1;
        if self.rows == GROUP_ROWS { self.flush() } else { Ok(()) }
    }

    /// Says that the rows of a launch are there: the next row is of a later one.
    pub(super) fn end_launch(&mut self) -> Result<(), ParquetError> {
        if self.rows >= LAUNCHES_ROWS { self.flush() } else { Ok(()) }
    }

    /// Adds a fact that is known only when the rows are there.
    pub(super) fn fact(&mut self, key: &str, value: String) {
        self.writer.append_key_value_metadata(KeyValue::new(format!("warptrace.{key}"), value));
    }

    /// Ends the table; returns how many rows it has.
    pub(super) fn finish(mut self) -> Result<u64, ParquetError> {
        self.flush()?;
        self.writer.close()?;
        Ok(self.total)
    }

    /// Writes a row group of what waits.
    fn flush(&mut self) -> Result<(), ParquetError> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        for column in &mut self.columns {
            let mut writer = group.next_column()?.expect("the schema has as many columns");
            column.write(&mut writer, &self.texts)?;
            writer.close()?;
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }
}

impl Waiting {
    /// Writes all values, and forgets them.
    fn write(
        &mut self,
        writer: &mut SerializedColumnWriter<'_>,
        texts: &[ByteArray],
    ) -> Result<(), ParquetError> {
        let levels = self.levels.as_deref();
        match &mut self.values {
            Values::Small(values) => {
                writer.typed::<Int32Type>().write_batch(values, levels, None)?;
                values.clear();
            }
            Values::Large(values) => {
                writer.typed::<Int64Type>().write_batch(values, levels, None)?;
                values.clear();
            }
            Values::Float(values) => {
                writer.typed::<DoubleType>().write_batch(values, levels, None)?;
                values.clear();
            }
            Values::Text(values) => {
                let writer = writer.typed::<ByteArrayType>();
                let mut rest = values.iter();
                let mut next = |rows: usize| -> Vec<ByteArray> {
                    rest.by_ref().take(rows).map(|id| texts[id.0 as usize].clone()).collect()
                };
                if let Some(levels) = levels {
                    for levels in levels.chunks(TEXTS_AT_ONCE) {
                        let known = levels.iter().filter(|level| **level == 1).count();
                        writer.write_batch(&next(known), Some(levels), None)?;
                    }
                } else {
                    for _ in 0..values.len().div_ceil(TEXTS_AT_ONCE) {
                        writer.write_batch(&next(TEXTS_AT_ONCE), None, None)?;
                    }
                }
                values.clear();
            }
        }
        if let Some(levels) = &mut self.levels {
            levels.clear();
        }
        Ok(())
    }
}

fn field(column: &Column) -> Result<Arc<Type>, ParquetError> {
    let (physical, logical) = match column.kind {
        Kind::Small(bits) => (PhysicalType::INT32, Some(LogicalType::integer(bits, false))),
        Kind::Signed => (PhysicalType::INT32, Some(LogicalType::integer(32, true))),
        Kind::Large => (PhysicalType::INT64, Some(LogicalType::integer(64, false))),
        Kind::LargeSigned => (PhysicalType::INT64, Some(LogicalType::integer(64, true))),
        Kind::Float => (PhysicalType::DOUBLE, None),
        Kind::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let repetition = if column.is_optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let field = Type::primitive_type_builder(column.name, physical);
    Ok(Arc::new(field.with_repetition(repetition).with_logical_type(logical).build()?))
}

#[cfg(test)]
mod tests {
    use parquet::file::metadata::{PageIndexPolicy, ParquetMetaDataReader};
    use parquet::file::statistics::Statistics;

    use super::*;

    #[test]
    fn row_groups_end_with_launches_and_say_what_is_in_them() {
        let columns = [
            column("launch", Kind::LargeSigned),
            column("other", Kind::Small(8)),
            column("warp", Kind::Small(32)),
        ];
        let file = tempfile::tempfile().unwrap();
        let mut table = Table::new(&file, "t", &columns, &["launch", "warp"], &[]).unwrap();
        // Launches of 25,000 rows: three are more than a group needs.
        for launch in 0..7_i64 {
            for warp in 0..25_000_u32 {
                table.push(&[launch.into(), 1_u32.into(), warp.into()]).unwrap();
            }
            table.end_launch().unwrap();
        }
        assert_eq!(table.finish().unwrap(), 175_000);
        let mut reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Required);
        reader.try_parse(&file).unwrap();
        let metadata = reader.finish().unwrap();
        let found: Vec<(i64, i64, i64)> = (metadata.row_groups().iter())
            .map(|group| {
                let order = group.sorting_columns().unwrap();
                assert_eq!(order.iter().map(|by| by.column_idx).collect::<Vec<_>>(), [0, 2]);
                assert!(order.iter().all(|by| !by.descending));
                let Some(Statistics::Int64(launch)) = group.column(0).statistics() else {
                    panic!("no statistics")
                };
                (group.num_rows(), *launch.min_opt().unwrap(), *launch.max_opt().unwrap())
            })
            .collect();
        assert_eq!(found, [(75_000, 0, 2), (75_000, 3, 5), (25_000, 6, 6)]);
        // Pages within groups have statistics of their own.
        assert!(metadata.column_index().unwrap().iter().all(|columns| columns.len() == 3));
        assert!(metadata.offset_index().unwrap()[0][0].page_locations().len() >= 3);
    }
}
