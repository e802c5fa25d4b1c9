//! Queries over traces on other machines.
//!
//! The client lists the workers' traces, assigns each file to one worker, and plans queries as for local
//! traces. DataFusion Distributed cuts the plan where rows of several tasks are combined, and sends the parts
//! below to the workers: each a [`Scan`](crate::scan::Scan), filters, projections and partial sums.

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

/// Version that worker and client must have in common.
pub(crate) const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "/1");

#[derive(Clone, Debug)]
pub(crate) struct Share {
    pub(crate) worker: Url,
    /// Name in queries and path on the worker of each trace; for listings, patterns.
    pub(crate) files: Vec<(String, String)>,
}

/// The traces of all workers. At least two shares, because plans with one task are not sent.
pub(crate) type Shares = Vec<Share>;

pub(crate) fn desired(event: DesiredTaskCountEvent<'_>) -> Option<Result<DesiredTaskCountEventResponse>> {
    let Traces::Apart(shares) = &event.plan.downcast_ref::<Scan>()?.traces else { return None };
    Some(Ok(DesiredTaskCountEventResponse::desired(shares.len())))
}

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
