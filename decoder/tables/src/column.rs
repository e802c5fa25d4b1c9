//! Columns, from which tables are declared.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
    StringViewArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use arrow_select::take::take;
use warptrace_analysis::Time;

type Make<C, R> = Box<dyn Fn(&C, &[R]) -> Result<ArrayRef, ArrowError>>;

struct Column<C, R> {
    name: &'static str,
    kind: DataType,
    is_optional: bool,
    /// Whether the column needs a pass over events, accesses or spans.
    is_counted: bool,
    make: Make<C, R>,
}

/// The columns of a table with rows of type `R` and shared data of type `C`.
pub(crate) struct Columns<C, R> {
    columns: Vec<Column<C, R>>,
    is_counted: bool,
}

pub(crate) trait Number: Sized {
    const KIND: DataType;
    const IS_OPTIONAL: bool;
    fn array(values: impl Iterator<Item = Self>) -> ArrayRef;
}

macro_rules! numbers {
    ($($number:ty, $array:ident, $kind:ident;)*) => {$(
        impl Number for $number {
            const KIND: DataType = DataType::$kind;
            const IS_OPTIONAL: bool = false;
            fn array(values: impl Iterator<Item = Self>) -> ArrayRef {
                Arc::new($array::from_iter_values(values))
            }
        }

        impl Number for Option<$number> {
            const KIND: DataType = DataType::$kind;
            const IS_OPTIONAL: bool = true;
            fn array(values: impl Iterator<Item = Self>) -> ArrayRef {
                Arc::new(values.collect::<$array>())
            }
        }
    )*};
}

numbers! {
    u8, UInt8Array, UInt8;
    u16, UInt16Array, UInt16;
    u32, UInt32Array, UInt32;
    u64, UInt64Array, UInt64;
    i32, Int32Array, Int32;
    i64, Int64Array, Int64;
    f64, Float64Array, Float64;
}

impl<C, R> Columns<C, R> {
    pub(crate) const fn new() -> Self {
        Self { columns: Vec::new(), is_counted: false }
    }

    fn with(mut self, name: &'static str, (kind, is_optional): (DataType, bool), make: Make<C, R>) -> Self {
        self.columns.push(Column { name, kind, is_optional, is_counted: self.is_counted, make });
        self
    }

    /// Sets whether the following columns need a pass over events, accesses or spans.
    pub(crate) fn counted(self, is_counted: bool) -> Self {
        Self { is_counted, ..self }
    }

    /// Adds a column of numbers. `None` is unknown.
    pub(crate) fn number<T: Number>(self, name: &'static str, of: impl Fn(&C, &R) -> T + 'static) -> Self {
        let make = move |shared: &C, rows: &[R]| Ok(T::array(rows.iter().map(|row| of(shared, row))));
        self.with(name, (T::KIND, T::IS_OPTIONAL), Box::new(make))
    }

    pub(crate) fn text(
        self,
        name: &'static str,
        of: impl for<'a> Fn(&'a C, &'a R) -> &'a str + 'static,
    ) -> Self {
        let make = move |shared: &C, rows: &[R]| -> Result<ArrayRef, ArrowError> {
            Ok(Arc::new(StringArray::from_iter_values(rows.iter().map(|row| of(shared, row)))))
        };
        self.with(name, (DataType::Utf8, false), Box::new(make))
    }

    pub(crate) fn made_text(self, name: &'static str, of: impl Fn(&C, &R) -> String + 'static) -> Self {
        let make = move |shared: &C, rows: &[R]| -> Result<ArrayRef, ArrowError> {
            Ok(Arc::new(StringArray::from_iter_values(rows.iter().map(|row| of(shared, row)))))
        };
        self.with(name, (DataType::Utf8, false), Box::new(make))
    }

    pub(crate) fn known_text(
        self,
        name: &'static str,
        of: impl for<'a> Fn(&'a C, &'a R) -> &'a str + 'static,
    ) -> Self {
        let make = move |shared: &C, rows: &[R]| -> Result<ArrayRef, ArrowError> {
            let texts = rows.iter().map(|row| Some(of(shared, row)).filter(|text| !text.is_empty()));
            Ok(Arc::new(texts.collect::<StringArray>()))
        };
        self.with(name, (DataType::Utf8, true), Box::new(make))
    }

    pub(crate) fn view(
        self,
        name: &'static str,
        of: impl for<'a> Fn(&'a C, &'a R) -> &'a str + 'static,
    ) -> Self {
        let make = move |shared: &C, rows: &[R]| -> Result<ArrayRef, ArrowError> {
            Ok(Arc::new(StringViewArray::from_iter_values(rows.iter().map(|row| of(shared, row)))))
        };
        self.with(name, (DataType::Utf8View, false), Box::new(make))
    }

    pub(crate) fn known_view(
        self,
        name: &'static str,
        of: impl for<'a> Fn(&'a C, &'a R) -> &'a str + 'static,
    ) -> Self {
        let make = move |shared: &C, rows: &[R]| -> Result<ArrayRef, ArrowError> {
            let texts = rows.iter().map(|row| Some(of(shared, row)).filter(|text| !text.is_empty()));
            Ok(Arc::new(texts.collect::<StringViewArray>()))
        };
        self.with(name, (DataType::Utf8View, true), Box::new(make))
    }

    /// Adds a column of texts from an array, by index. `is_optional` is whether the array has nulls.
    pub(crate) fn lookup(
        self,
        (name, is_optional): (&'static str, bool),
        texts: impl Fn(&C) -> &StringViewArray + 'static,
        place: impl Fn(&C, &R) -> u32 + 'static,
    ) -> Self {
        let make = move |shared: &C, rows: &[R]| {
            let places = UInt32Array::from_iter_values(rows.iter().map(|row| place(shared, row)));
            take(texts(shared), &places, None)
        };
        self.with(name, (DataType::Utf8View, is_optional), Box::new(make))
    }

    /// Adds the columns of time. They are null if the trace has no times.
    pub(crate) fn times(self, of: impl Fn(&C, &R) -> Option<Time> + Copy + 'static) -> Self {
        self.number("lane_cycles", move |shared, row| Some(of(shared, row)?.lane_cycles))
            .number("warp_cycles", move |shared, row| Some(of(shared, row)?.warp_cycles))
            .number("active_lane_cycles", move |shared, row| Some(of(shared, row)?.active_lane_cycles))
            .number("idle_lane_cycles", move |shared, row| Some(of(shared, row)?.idle_lane_cycles))
            .number("timed_visits", move |shared, row| Some(of(shared, row)?.timed_visits))
    }

    pub(crate) fn without_last(mut self) -> Self {
        self.columns.pop();
        self
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        let field = |column: &Column<C, R>| Field::new(column.name, column.kind.clone(), column.is_optional);
        Arc::new(Schema::new(self.columns.iter().map(field).collect::<Vec<_>>()))
    }

    pub(crate) fn are_counted(&self, chosen: &[usize]) -> bool {
        chosen.iter().any(|&column| self.columns[column].is_counted)
    }

    pub(crate) fn have(&self, chosen: &[usize], names: &[&str]) -> bool {
        chosen.iter().any(|&column| names.contains(&self.columns[column].name))
    }

    pub(crate) fn count(&self, chosen: &[usize], names: &[&str]) -> usize {
        chosen.iter().filter(|&&column| names.contains(&self.columns[column].name)).count()
    }

    /// Makes the chosen columns. `count` is the number of rows; `rows` may be empty if no column is chosen.
    pub(crate) fn batch(
        &self,
        (chosen, schema): (&[usize], &SchemaRef),
        shared: &C,
        rows: &[R],
        count: usize,
    ) -> Result<RecordBatch, ArrowError> {
        let arrays = chosen.iter().map(|&column| (self.columns[column].make)(shared, rows));
        let arrays = arrays.collect::<Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)
    }
}

/// Returns `None` for 0, which means unknown.
pub(crate) fn known<T: Default + PartialEq>(number: T) -> Option<T> {
    (number != T::default()).then_some(number)
}
