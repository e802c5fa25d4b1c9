//! Bounds of columns from the conditions of a query, to skip launches and warps. DataFusion tests all rows.

use std::collections::BTreeMap;

use borsh::{BorshDeserialize, BorshSerialize};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

/// Bounds of columns. Columns that are not listed have no bounds.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct Bounds {
    /// Minimum and maximum, both included.
    numbers: BTreeMap<String, (u64, u64)>,
    texts: BTreeMap<String, Vec<String>>,
}

impl Bounds {
    /// Reads conditions that must all hold. Ignores conditions that it does not understand.
    pub(crate) fn new(conditions: &[Expr]) -> Self {
        let mut bounds = Self::default();
        conditions.iter().for_each(|condition| bounds.read(condition));
        bounds
    }

    pub(crate) fn allow(&self, column: &str, value: u64) -> bool {
        let (least, greatest) = self.range(column);
        (least..=greatest).contains(&value)
    }

    /// Returns the minimum and the maximum of a column. No value is allowed if the minimum is greater.
    pub(crate) fn range(&self, column: &str) -> (u64, u64) {
        self.numbers.get(column).copied().unwrap_or((0, u64::MAX))
    }

    pub(crate) fn allow_text(&self, column: &str, text: &str) -> bool {
        self.texts.get(column).is_none_or(|texts| texts.iter().any(|known| known == text))
    }

    fn read(&mut self, condition: &Expr) {
        match condition {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
                self.read(left);
                self.read(right);
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (&**left, &**right) {
                (Expr::Column(column), Expr::Literal(value, _)) => self.compare(&column.name, *op, value),
                (Expr::Literal(value, _), Expr::Column(column)) => {
                    if let Some(op) = op.swap() {
                        self.compare(&column.name, op, value);
                    }
                }
                _ => {}
            },
            Expr::Between(between) if !between.negated => {
                if let (Expr::Column(column), Expr::Literal(low, _), Expr::Literal(high, _)) =
                    (&*between.expr, &*between.low, &*between.high)
                {
                    self.compare(&column.name, Operator::GtEq, low);
                    self.compare(&column.name, Operator::LtEq, high);
                }
            }
            Expr::InList(list) if !list.negated => {
                let Expr::Column(column) = &*list.expr else { return };
                let values: Vec<&ScalarValue> = list
                    .list
                    .iter()
                    .filter_map(|value| if let Expr::Literal(value, _) = value { Some(value) } else { None })
                    .collect();
                if values.len() == list.list.len() {
                    self.one_of(&column.name, &values);
                }
            }
            _ => {}
        }
    }

    fn one_of(&mut self, column: &str, values: &[&ScalarValue]) {
        let numbers: Vec<i128> = values.iter().filter_map(|value| number(value)).collect();
        let texts: Vec<String> = values.iter().filter_map(|value| text(value)).collect();
        if texts.len() == values.len() {
            self.only(column, texts);
        } else if numbers.len() == values.len()
            && let (Some(least), Some(greatest)) = (numbers.iter().min(), numbers.iter().max())
        {
            self.narrow(column, *least, *greatest);
        }
    }

    fn compare(&mut self, column: &str, op: Operator, value: &ScalarValue) {
        if let (Some(text), Operator::Eq) = (text(value), op) {
            self.only(column, vec![text]);
        }
        let Some(number) = number(value) else { return };
        let all = (i128::MIN, i128::MAX);
        let (least, greatest) = match op {
            Operator::Eq => (number, number),
            Operator::Lt => (all.0, number - 1),
            Operator::LtEq => (all.0, number),
            Operator::Gt => (number + 1, all.1),
            Operator::GtEq => (number, all.1),
            _ => return,
        };
        self.narrow(column, least, greatest);
    }

    fn narrow(&mut self, column: &str, least: i128, greatest: i128) {
        let bounds = self.numbers.entry(column.to_owned()).or_insert((0, u64::MAX));
        match (u64::try_from(least.max(0)), u64::try_from(greatest.min(u64::MAX.into()))) {
            (Ok(least), Ok(greatest)) => *bounds = (bounds.0.max(least), bounds.1.min(greatest)),
            // Columns have no such numbers.
            _ => *bounds = (1, 0),
        }
    }

    fn only(&mut self, column: &str, texts: Vec<String>) {
        let known = self.texts.entry(column.to_owned()).or_insert_with(|| texts.clone());
        known.retain(|text| texts.contains(text));
    }
}

fn number(value: &ScalarValue) -> Option<i128> {
    Some(match value {
        ScalarValue::UInt8(value) => (*value)?.into(),
        ScalarValue::UInt16(value) => (*value)?.into(),
        ScalarValue::UInt32(value) => (*value)?.into(),
        ScalarValue::UInt64(value) => (*value)?.into(),
        ScalarValue::Int8(value) => (*value)?.into(),
        ScalarValue::Int16(value) => (*value)?.into(),
        ScalarValue::Int32(value) => (*value)?.into(),
        ScalarValue::Int64(value) => (*value)?.into(),
        _ => return None,
    })
}

fn text(value: &ScalarValue) -> Option<String> {
    match value {
        ScalarValue::Utf8(value) | ScalarValue::Utf8View(value) | ScalarValue::LargeUtf8(value) => {
            value.clone()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::{col, lit};

    use super::*;

    #[test]
    fn conditions_that_all_hold_narrow_the_bounds() {
        let conditions = [
            col("launch").eq(lit(3_u32)),
            col("warp_index").gt_eq(lit(10_i64)).and(lit(20_i64).gt(col("warp_index"))),
            col("location").in_list(vec![lit(7_u16), lit(5_u16)], false),
            col("kernel").eq(lit("k")),
            col("event").between(lit(1_i64), lit(4_i64)),
        ];
        let bounds = Bounds::new(&conditions);
        assert_eq!((bounds.range("launch"), bounds.range("warp_index")), ((3, 3), (10, 19)));
        assert_eq!((bounds.range("location"), bounds.range("event")), ((5, 7), (1, 4)));
        assert!(bounds.allow_text("kernel", "k") && !bounds.allow_text("kernel", "l"));
        assert!(bounds.allow_text("trace", "any") && bounds.allow("mask", 9) && !bounds.allow("launch", 2));
    }

    #[test]
    fn what_may_hold_in_another_way_bounds_nothing() {
        let conditions = [
            col("launch").eq(lit(3_u32)).or(col("warp").eq(lit(1_u32))),
            col("launch").not_eq(lit(4_u32)),
            (col("launch") + lit(1_u32)).eq(lit(4_u32)),
            col("location").in_list(vec![lit(7_u16), col("warp")], false),
            col("location").in_list(vec![lit(7_u16)], true),
            col("kernel").not_eq(lit("k")),
        ];
        assert_eq!(Bounds::new(&conditions), Bounds::default());
    }

    #[test]
    fn numbers_that_no_column_has_allow_nothing() {
        let bounds = Bounds::new(&[col("launch").lt(lit(0_i64))]);
        let (least, greatest) = bounds.range("launch");
        assert!(least > greatest);
    }
}
