//! Queries whose traces are with workers on other machines.
//!
//! The client lists the traces that workers have, and gives each file to one of them. A plan is made as for traces in
//! this process; DataFusion Distributed cuts it where rows of several tasks come together and sends the parts below to
//! the workers, a [`Scan`](crate::scan::Scan) with the files of each. What filters, projects and sums runs with the
//! workers.

mod channel;
mod client;
mod serve;
mod task;

use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_distributed::{
    DesiredTaskCountEvent, DesiredTaskCountEventResponse, DistributedLeafExec, RouteTasksEvent,
    RouteTasksEventResponse, ScaleUpLeafNodeEvent, ScaleUpLeafNodeEventResponse,
};
use url::Url;

pub use self::client::Workers;
pub use self::serve::{Listen, serve};
pub use self::task::ListFiles;
pub(crate) use self::task::Task;
use crate::scan::{Scan, Traces};

/// What tells workers and clients that do not fit together apart.
pub(crate) const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "/1");

/// The traces of one worker.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    pub(crate) worker: Url,
    /// What queries call each trace, and its path with the worker; to list traces, patterns.
    pub(crate) files: Vec<(String, String)>,
}

/// The traces of all workers; at least two shares, or plans would not be sent anywhere.
pub(crate) type Shares = Vec<Share>;

/// Wants a task for each share.
pub(crate) fn desired(event: DesiredTaskCountEvent<'_>) -> Option<Result<DesiredTaskCountEventResponse>> {
    let Traces::Apart(shares) = &event.plan.downcast_ref::<Scan>()?.traces else { return None };
    Some(Ok(DesiredTaskCountEventResponse::desired(shares.len())))
}

/// Gives each task its share.
pub(crate) fn shared_out(event: ScaleUpLeafNodeEvent<'_>) -> Option<Result<ScaleUpLeafNodeEventResponse>> {
    let scan = event.plan.downcast_ref::<Scan>()?;
    let Traces::Apart(shares) = &scan.traces else { return None };
    if event.task_count != shares.len() {
        return Some(Err(DataFusionError::Plan(
            "workers cannot answer this together: a part of it is not of traces; ask for that part apart"
                .to_owned(),
        )));
    }
    let variant = |share| -> Arc<dyn ExecutionPlan> {
        Arc::new(scan.with_traces(Traces::Share(Arc::clone(shares), share)))
    };
    let leaf = DistributedLeafExec::try_new(Arc::clone(event.plan), (0..shares.len()).map(variant));
    Some(leaf.map(|leaf| ScaleUpLeafNodeEventResponse::new(Arc::new(leaf))))
}

/// Sends each task to the worker that has its traces.
pub(crate) fn routed(event: RouteTasksEvent<'_>) -> Option<Result<RouteTasksEventResponse>> {
    let mut found = None;
    let walked = event.plan.apply(|node| {
        if let Some(leaf) = node.downcast_ref::<DistributedLeafExec>()
            && let Some(Scan { traces: Traces::Apart(shares), .. }) = leaf.original().downcast_ref::<Scan>()
        {
            found = Some(shares.iter().map(|share| share.worker.clone()).collect());
            return Ok(TreeNodeRecursion::Stop);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    match walked {
        Ok(_) => found.map(|urls| Ok(RouteTasksEventResponse::new(urls))),
        Err(error) => Some(Err(error)),
    }
}
