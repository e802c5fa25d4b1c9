//! The columns of each table.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

use DataType::{Float64, Int32, Int64, UInt8, UInt16, UInt32, UInt64, Utf8, Utf8View};

/// Columns of time, at the end of `locations`, `kernels` and `lines`; null if the trace has none.
pub(crate) const TIME: [(&str, DataType, bool); 5] = [
    ("lane_cycles", UInt64, true),
    ("warp_cycles", UInt64, true),
    ("active_lane_cycles", UInt64, true),
    ("idle_lane_cycles", UInt64, true),
    ("timed_visits", UInt64, true),
];

fn schema(columns: &[(&str, DataType, bool)]) -> SchemaRef {
    let field = |(name, kind, nullable): &(&str, DataType, bool)| Field::new(*name, kind.clone(), *nullable);
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

/// Columns of `runs`; `events` has all but the last.
pub fn runs() -> SchemaRef {
    schema(&[
        ("trace", Utf8View, false),
        ("launch", UInt32, false),
        ("kernel", Utf8View, false),
        ("block_x", UInt32, false),
        ("block_y", UInt32, false),
        ("block_z", UInt32, false),
        ("warp", UInt32, false),
        ("warp_index", UInt32, false),
        (EVENT, UInt64, false),
        ("location", UInt16, false),
        ("name", Utf8View, true),
        ("file", Utf8View, true),
        ("line", UInt32, true),
        ("mask", UInt32, false),
        ("lanes", UInt8, false),
        (BEGIN, UInt64, true),
        (END, UInt64, true),
        ("sm", UInt32, true),
        ("block_begin_ns", UInt64, true),
        ("block_end_ns", UInt64, true),
        (COUNT, UInt64, false),
    ])
}

/// The number of an event in its warp.
pub const EVENT: &str = "event";
/// When a run began, in cycles: of `events` that of its first event.
pub const BEGIN: &str = "t_begin";
/// When the warp's next run began, or the run itself if that was later: of `events` that of a run's last
/// event.
pub const END: &str = "t_end";
/// The numbers of [`EVENT`], [`BEGIN`] and [`END`], which tell the events of a run from each other, among the
/// columns of `runs`.
pub const SINGLE_COLUMNS: [usize; 3] = [8, 15, 16];
/// How many events a row of `runs` stands for.
pub const COUNT: &str = "count";
/// The number of [`COUNT`] among the columns of `runs`.
pub const COUNT_COLUMN: usize = 20;
/// The numbers of the columns of `runs` that say where and when the row's block ran.
pub const BLOCK_COLUMNS: [usize; 3] = [17, 18, 19];

/// Columns of `events`.
pub fn events() -> SchemaRef {
    let runs = runs();
    Arc::new(Schema::new(runs.fields()[..runs.fields().len() - 1].to_vec()))
}

/// Columns of `warps`.
pub fn warps() -> SchemaRef {
    schema(&[
        ("trace", Utf8, false),
        ("launch", UInt32, false),
        ("kernel", Utf8, false),
        ("block_x", UInt32, false),
        ("block_y", UInt32, false),
        ("block_z", UInt32, false),
        ("warp", UInt32, false),
        ("warp_index", UInt32, false),
        ("visits", UInt64, false),
        ("lanes", UInt64, false),
        ("idle", UInt64, false),
        ("path", UInt64, false),
        ("last", UInt16, false),
        ("end", Utf8, false),
        ("cycles", UInt64, true),
        ("sm", UInt32, true),
        ("begin_ns", UInt64, true),
        ("end_ns", UInt64, true),
        ("role", UInt8, true),
    ])
}

/// Columns of `locations`; those before [`LOCATION_FIGURES`] need no look at the events.
pub fn locations() -> SchemaRef {
    schema(
        &[
            &[
                ("trace", Utf8, false),
                ("location", UInt16, false),
                ("name", Utf8, false),
                ("description", Utf8, true),
                ("file", Utf8, true),
                ("line", UInt32, true),
                ("column", UInt32, true),
                ("visits", UInt64, false),
                ("lanes", UInt64, false),
                ("idle", UInt64, false),
                ("warps", UInt64, false),
                ("splits", UInt64, false),
                ("caused", UInt64, false),
            ][..],
            &TIME,
        ]
        .concat(),
    )
}

/// The first column of `locations` that is counted.
pub const LOCATION_FIGURES: usize = 7;

/// Columns of `loops`.
pub fn loops() -> SchemaRef {
    schema(&[
        ("trace", Utf8, false),
        ("location", UInt16, false),
        ("name", Utf8, false),
        ("file", Utf8, true),
        ("line", UInt32, true),
        ("entries", UInt64, false),
        ("trips", UInt64, false),
        ("min", UInt64, false),
        ("median", UInt64, false),
        ("p95", UInt64, false),
        ("max", UInt64, false),
        ("mean", Float64, false),
        ("imbalance", Float64, false),
        ("visits", UInt64, false),
        ("idle", UInt64, false),
        ("warp_imbalance", Float64, false),
        ("loop_lane_cycles", UInt64, true),
    ])
}

/// Columns of `launches`.
pub fn launches() -> SchemaRef {
    schema(&[
        ("trace", Utf8, false),
        ("launch", UInt32, false),
        ("kernel", Utf8, false),
        ("grid_x", UInt32, false),
        ("grid_y", UInt32, false),
        ("grid_z", UInt32, false),
        ("threads_x", UInt32, false),
        ("threads_y", UInt32, false),
        ("threads_z", UInt32, false),
        ("shared_bytes", UInt32, false),
        ("warps", UInt32, false),
        ("recorded_warps", UInt32, false),
        ("events", UInt64, false),
        ("end", Utf8, false),
        ("begin_ns", UInt64, true),
        ("end_ns", UInt64, true),
        ("label", Utf8, true),
    ])
}

/// The first column of `launches` that needs a look at where and when warps ran.
pub const LAUNCH_TIMES: usize = 14;

/// Columns of `kernels`.
pub fn kernels() -> SchemaRef {
    schema(
        &[
            &[
                ("trace", Utf8, false),
                ("kernel", Utf8, false),
                ("launches", UInt64, false),
                ("warps", UInt64, false),
                ("visits", UInt64, false),
                ("lanes", UInt64, false),
                ("idle", UInt64, false),
                ("slots", UInt64, false),
            ][..],
            &TIME,
        ]
        .concat(),
    )
}

/// Columns of `lines`.
pub fn lines() -> SchemaRef {
    schema(
        &[
            &[
                ("trace", Utf8, false),
                ("file", Utf8, true),
                ("line", UInt32, true),
                ("names", Utf8, false),
                ("visits", UInt64, false),
                ("lanes", UInt64, false),
                ("idle", UInt64, false),
                ("slots", UInt64, false),
                ("caused", UInt64, false),
                ("warps", UInt64, false),
                ("splits", UInt64, false),
            ][..],
            &TIME,
        ]
        .concat(),
    )
}

/// Columns of `causes`.
pub fn causes() -> SchemaRef {
    schema(&[
        ("trace", Utf8, false),
        ("location", UInt16, false),
        ("name", Utf8, false),
        ("file", Utf8, true),
        ("line", UInt32, true),
        ("decision", UInt16, false),
        ("idle", UInt64, false),
        ("partings", UInt64, false),
        ("met", UInt64, false),
        ("events_apart", Float64, false),
    ])
}

/// Columns of `edges`.
pub fn edges() -> SchemaRef {
    schema(&[
        ("trace", Utf8, false),
        ("from", UInt16, true),
        ("to", UInt16, true),
        ("visits", UInt64, false),
        ("lanes", UInt64, false),
    ])
}

/// The columns that `accesses`, `values`, `lane_accesses` and `lane_values` begin with.
const ACCESSED: [(&str, DataType, bool); 18] = [
    ("trace", Utf8View, false),
    ("launch", UInt32, false),
    ("kernel", Utf8View, false),
    ("block_x", UInt32, false),
    ("block_y", UInt32, false),
    ("block_z", UInt32, false),
    ("warp", UInt32, false),
    ("warp_index", UInt32, false),
    ("site", UInt16, false),
    ("kind", Utf8View, true),
    ("space", Utf8View, true),
    ("bytes", UInt32, true),
    ("name", Utf8View, true),
    ("file", Utf8View, true),
    ("line", UInt32, true),
    ("location", UInt16, true),
    ("time", UInt64, true),
    ("request", UInt64, false),
];

/// How many columns stand before those that are not the same in all four tables of accesses and values.
pub(crate) const ACCESS_COLUMNS: usize = ACCESSED.len();

/// Columns of `accesses` and `values`.
pub fn accesses() -> SchemaRef {
    schema(
        &[
            &ACCESSED,
            &[
                ("mask", UInt32, false),
                ("lanes", UInt8, false),
                ("form", Utf8View, false),
                ("lane", UInt8, true),
                ("base", UInt64, false),
                ("spread", Int32, true),
                ("step", Int32, false),
                ("count", UInt32, false),
            ][..],
        ]
        .concat(),
    )
}

/// Columns of `lane_accesses`.
pub fn lane_accesses() -> SchemaRef {
    schema(&[&ACCESSED, &[("lane", UInt8, false), ("address", UInt64, false)][..]].concat())
}

/// Columns of `lane_values`.
pub fn lane_values() -> SchemaRef {
    schema(
        &[&ACCESSED, &[("lane", UInt8, false), ("bits", UInt64, false), ("number", Float64, true)][..]]
            .concat(),
    )
}

/// Columns of `sites`; those before [`SITE_FIGURES`] need no look at the accesses.
pub fn sites() -> SchemaRef {
    schema(&[
        ("trace", Utf8, false),
        ("site", UInt16, false),
        ("kind", Utf8, true),
        ("space", Utf8, true),
        ("bytes", UInt32, true),
        ("elements", UInt32, true),
        ("cache", Utf8, true),
        ("name", Utf8, true),
        ("number", Utf8, true),
        ("root", UInt16, true),
        ("location", UInt16, true),
        ("file", Utf8, true),
        ("line", UInt32, true),
        ("column", UInt32, true),
        ("accesses", UInt64, false),
        ("requests", UInt64, false),
        ("events", UInt64, true),
        ("uniform", UInt64, false),
        ("affine", UInt64, false),
        ("generic", UInt64, false),
        ("stride", Int64, true),
        ("sectors", UInt64, false),
        ("least_sectors", UInt64, false),
        ("moved_bytes", UInt64, false),
        ("used_bytes", UInt64, false),
        ("passes", UInt64, false),
        ("least_passes", UInt64, false),
    ])
}

/// The first column of `sites` that is counted.
pub const SITE_FIGURES: usize = 14;

/// Columns of `access_losses`.
pub fn access_losses() -> SchemaRef {
    schema(&[
        ("trace", Utf8, false),
        ("launch", UInt32, false),
        ("kernel", Utf8, false),
        ("accesses", UInt64, false),
        ("lost", UInt64, false),
        ("left_out", UInt64, false),
        ("unmatched", UInt64, false),
        ("damaged_entries", UInt64, false),
    ])
}
