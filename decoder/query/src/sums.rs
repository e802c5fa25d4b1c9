//! An optimizer rule for sums over events. A query that only counts and sums reads the table of sums, where
//! each row represents many events.

use std::any::Any;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::error::Result;
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::functions_aggregate::expr_fn::sum;
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::{
    Aggregate, Expr, ExprSchemable, Filter, LogicalPlan, Projection, SubqueryAlias, TableScan,
    TableScanBuilder, cast, lit,
};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use warptrace_tables::{COUNT, EventTable, SINGLE, TraceTable};

use crate::scan::{SqlTable, TableName};

#[derive(Debug)]
pub(crate) struct SumEvents;

impl OptimizerRule for SumEvents {
    fn name(&self) -> &str {
        "sum_events"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Aggregate(aggregate) = &plan else { return Ok(Transformed::no(plan)) };
        Ok(match over_sums(aggregate)? {
            Some(rewritten) => Transformed::yes(rewritten),
            None => Transformed::no(plan),
        })
    }
}

/// Returns the aggregate over sums; `None` if it needs single events.
fn over_sums(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let schema = aggregate.input.schema();
    let Some((input, count)) = with_count(&aggregate.input)? else { return Ok(None) };
    let mut functions = Vec::new();
    for (number, expression) in aggregate.aggr_expr.iter().enumerate() {
        let Some(function) = weighted(expression, schema, &count)? else { return Ok(None) };
        functions.push(function.alias(format!("sum_{number}")));
    }
    let groups = aggregate.schema.fields().len() - functions.len();
    let summed = Aggregate::try_new(Arc::new(input), aggregate.group_expr.clone(), functions)?;
    let mut columns = Vec::new();
    for (number, (qualifier, field)) in aggregate.schema.iter().enumerate() {
        let mut column = Expr::Column(Column::from(summed.schema.qualified_field(number)));
        // A count of no events is 0, never null.
        if number >= groups && *field.data_type() == DataType::Int64 && !field.is_nullable() {
            column = cast(coalesce(vec![column, lit(0_u64)]), DataType::Int64);
        }
        columns.push(if number < groups {
            column
        } else {
            column.alias_qualified(qualifier.cloned(), field.name())
        });
    }
    let projection = Projection::try_new(columns, Arc::new(LogicalPlan::Aggregate(summed)))?;
    Ok(Some(LogicalPlan::Projection(projection)))
}

/// Rewrites an aggregate function for rows that represent `count` events each; `None` if that is impossible.
fn weighted(expression: &Expr, schema: &DFSchema, count: &Column) -> Result<Option<Expr>> {
    let expression = match expression {
        Expr::Alias(alias) => &alias.expr,
        other => other,
    };
    let Expr::AggregateFunction(AggregateFunction { func, params }) = expression else { return Ok(None) };
    let AggregateFunctionParams { args, distinct, filter, order_by, .. } = params;
    let [argument] = &args[..] else { return Ok(None) };
    if *distinct || filter.is_some() || !order_by.is_empty() {
        return Ok(None);
    }
    let count = Expr::Column(count.clone());
    Ok(match (func.name(), argument.get_type(schema)?) {
        ("count", _) if !argument.nullable(schema)? => Some(sum(count)),
        ("sum", DataType::UInt64) => Some(sum(argument.clone() * count)),
        ("sum", DataType::Int64) => Some(sum(argument.clone() * cast(count, DataType::Int64))),
        ("min" | "max", _) => Some(expression.clone()),
        _ => None,
    })
}

/// Returns the plan over the table of sums, with its column of counts. Returns `None` if the plan does not
/// scan `events`, or uses columns that differ between the events of a run.
fn with_count(plan: &LogicalPlan) -> Result<Option<(LogicalPlan, Column)>> {
    Ok(match plan {
        LogicalPlan::TableScan(scan) => scan_sums(scan)?,
        LogicalPlan::Filter(filter) => match with_count(&filter.input)? {
            Some((input, count)) => {
                let filter = Filter::try_new(filter.predicate.clone(), Arc::new(input))?;
                Some((LogicalPlan::Filter(filter), count))
            }
            None => None,
        },
        LogicalPlan::SubqueryAlias(alias) => match with_count(&alias.input)? {
            Some((input, count)) => {
                let renamed = Column::new(Some(alias.alias.clone()), count.name);
                let alias = SubqueryAlias::try_new(Arc::new(input), alias.alias.clone())?;
                Some((LogicalPlan::SubqueryAlias(alias), renamed))
            }
            None => None,
        },
        LogicalPlan::Projection(projection) => match with_count(&projection.input)? {
            Some((input, count)) => {
                let columns = projection.expr.iter().cloned().chain([Expr::Column(count.clone())]).collect();
                Some((LogicalPlan::Projection(Projection::try_new(columns, Arc::new(input))?), count))
            }
            None => None,
        },
        _ => None,
    })
}

fn scan_sums(scan: &TableScan) -> Result<Option<(LogicalPlan, Column)>> {
    // Other tables, for example in the information schema, may have other sources.
    let Ok(provider) = source_as_provider(&scan.source) else { return Ok(None) };
    let provider: &dyn Any = provider.as_ref();
    let Some(table) = provider.downcast_ref::<SqlTable>() else { return Ok(None) };
    let Some(columns) = &scan.projection else { return Ok(None) };
    let is_single =
        |filter: &Expr| filter.column_refs().iter().any(|column| SINGLE.contains(&column.name.as_str()));
    let schema = EventTable::Sums.schema();
    let is_summable = table.name == TableName::Rows(TraceTable::Events(EventTable::Events))
        && scan.fetch.is_none()
        && !columns.iter().any(|&column| SINGLE.contains(&schema.field(column).name().as_str()))
        && !scan.filters.iter().any(is_single);
    if !is_summable {
        return Ok(None);
    }
    let sums = SqlTable { name: TableName::Rows(TraceTable::Events(EventTable::Sums)), ..table.clone() };
    let columns = columns.iter().copied().chain([schema.index_of(COUNT)?]).collect();
    let scan = TableScanBuilder::new(scan.table_name.clone(), provider_as_source(Arc::new(sums)))
        .with_projection(Some(columns))
        .with_filters(scan.filters.clone())
        .build()?;
    let count = Column::new(Some(scan.table_name.clone()), COUNT);
    Ok(Some((LogicalPlan::TableScan(scan), count)))
}
