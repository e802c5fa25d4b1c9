//! Hooks for graphs. Each graph launch is recorded as launches of the kernels in the graph.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use warptrace_abi::log::LaunchLogs;
use warptrace_host::LaunchShape;

use super::Handle;
use super::launch::{per_thread, shape_of};
use crate::driver::{self, Answer, Relaxed, SUCCESS};
use crate::exchange::{Kernel, NOT_ASKED};
use crate::graphs::{Executable, Node, Skipped, shape};
use crate::inside::guarded;
use crate::state::{State, lock, state};
use crate::trace::{self, Item, Request};

/// The flag of graphs that are instantiated for device launch.
const DEVICE_LAUNCH: u64 = 4;

/// # Safety
/// If `answer` is success, the driver has instantiated `exec` from `graph`.
pub(super) unsafe fn instantiated(answer: Answer, exec: *mut Handle, graph: Handle, flags: u64) -> Answer {
    if answer != SUCCESS || exec.is_null() {
        return answer;
    }
    guarded(|| {
        let state = state()?;
        if flags & DEVICE_LAUNCH != 0 {
            lock(&state.summary).note("graphs that kernels launch run untraced");
            return None;
        }
        if lock(&state.graphs).is_of_node(graph) {
            lock(&state.summary).note("a graph that was made ready from a node of another runs untraced");
            return None;
        }
        let _relaxed = Relaxed::enter();
        // SAFETY: the driver has written the handle.
        let (handle, found) = unsafe { (*exec, Executable::read(state, graph)) };
        lock(&state.graphs).add(handle, graph, found);
        Some(())
    });
    answer
}

/// Returns the flags, the first field of instantiation parameters; 0 for null.
///
/// # Safety
/// `parameters` is null or points to instantiation parameters.
pub(super) unsafe fn flags_in(parameters: *const u64) -> u64 {
    // SAFETY: guaranteed by the caller.
    if parameters.is_null() { 0 } else { unsafe { *parameters } }
}

type RealLaunch = unsafe extern "C" fn(Handle, Handle) -> Answer;

#[derive(Clone, Copy)]
struct GraphLaunch {
    real: RealLaunch,
    exec: Handle,
    stream: Handle,
}

impl GraphLaunch {
    /// # Safety
    /// It is the program's own launch.
    unsafe fn own(self) -> Answer {
        // SAFETY: guaranteed by the caller.
        unsafe { (self.real)(self.exec, self.stream) }
    }
}

pub(super) unsafe fn launch(real: RealLaunch, exec: Handle, stream: Handle) -> Answer {
    // SAFETY: the program's own launch.
    unsafe { launched(GraphLaunch { real, exec, stream }, stream) }
}

pub(super) unsafe fn launch_per_thread(real: RealLaunch, exec: Handle, stream: Handle) -> Answer {
    // SAFETY: the program's own launch.
    unsafe { launched(GraphLaunch { real, exec, stream }, per_thread(stream)) }
}

/// Records a graph launch. If it cannot be recorded, makes the program's own launch.
///
/// # Safety
/// `launch` is the program's own launch.
unsafe fn launched(launch: GraphLaunch, stream: Handle) -> Answer {
    // The driver's result, if recording launched the graph.
    let mut issued = None;
    guarded(|| {
        let state = state()?;
        let executable = lock(&state.graphs).executable(launch.exec)?;
        let _relaxed = Relaxed::enter();
        let mut executable = lock(&executable);
        // SAFETY: guaranteed by the caller.
        unsafe {
            // During capture the graph becomes part of another graph, with the program's own kernels.
            if !driver::is_capturing(stream) {
                issued = recorded(state, &mut executable, launch, stream);
            }
            if issued.is_none() && !executable.restore(launch.exec, |_| true) {
                // The graph's traced kernels would still write to their old logs.
                let context = driver::current_context()?;
                trace::abandon(state, context, "a graph could not be given its own kernels again");
            }
        }
        Some(())
    });
    // SAFETY: guaranteed by the caller.
    issued.unwrap_or_else(|| unsafe { launch.own() })
}

/// A node that is launched as its traced copy.
struct Chosen {
    node: Node,
    traced: usize,
    shared: u32,
    shape: LaunchShape,
}

/// Records a graph launch if possible. Returns the driver's result if the launch succeeded.
///
/// # Safety
/// `launch` launches `executable`.
unsafe fn recorded(
    state: &'static State,
    executable: &mut Executable,
    launch: GraphLaunch,
    stream: Handle,
) -> Option<Answer> {
    let is_asked = state.is_within() && !state.is_paused.load(Ordering::Relaxed);
    let untraced = |kernel: &Arc<str>, reason: &str, shape: Option<LaunchShape>| {
        state.untraced(kernel, reason);
        if let Some(shape) = shape.filter(|_| is_asked) {
            trace::note(state, kernel, shape, None);
        }
    };
    let seen = executable.skipped().count() + executable.enabled().count();
    state.counts.seen.fetch_add(seen as u64, Ordering::Relaxed);
    for Skipped { kernel, reason, shape } in executable.skipped() {
        untraced(kernel, if is_asked { reason } else { NOT_ASKED }, *shape);
    }
    let untraced_node =
        |node: &Node, reason: &str| untraced(node.function.readable(), reason, Some(shape(&node.own.0)));
    if !is_asked {
        executable.enabled().for_each(|(_, node)| untraced_node(node, NOT_ASKED));
        return None;
    }
    let Some(context) = driver::current_context() else {
        executable.enabled().for_each(|(_, node)| untraced_node(node, "the thread has no context"));
        return None;
    };
    let (mut places, mut chosen, mut counts) = (Vec::new(), Vec::<Chosen>::new(), HashMap::new());
    for (at, node) in executable.enabled() {
        let before = counts.entry(Arc::clone(&node.function.name)).or_insert(0);
        match choose(state, context, node, *before) {
            Ok(found) => {
                *before += 1;
                places.push(at);
                chosen.push(found);
            }
            Err(reason) => untraced_node(node, &reason),
        }
    }
    // SAFETY: guaranteed by the caller.
    let are_own = unsafe { executable.restore(launch.exec, |at| !places.contains(&at)) };
    if chosen.is_empty() || !are_own {
        let reason = "a graph could not be given its own kernels again";
        chosen.iter().for_each(|chosen| untraced_node(&chosen.node, reason));
        return None;
    }
    let kernels: Vec<(Node, LaunchShape)> =
        chosen.iter().map(|chosen| (chosen.node.clone(), chosen.shape)).collect();
    let items = kernels.iter().filter_map(|(node, shape)| {
        let function = &node.function;
        Some(Item { code: function.traced_code().ok()?, kernel: function.kernel().ok()?, shape: *shape })
    });
    for &at in &places {
        // Set for all nodes, even if `make` fails after some of them.
        executable.nodes[at].is_traced = true;
    }
    let (mut issued, mut are_traced) = (None, Vec::new());
    // Sets the logs of each node, then launches the graph.
    let make = |logs: &[Option<LaunchLogs>]| {
        for (chosen, logs) in chosen.iter().zip(logs) {
            let traced: Handle = std::ptr::with_exposed_provenance_mut(chosen.traced);
            let put = logs.as_ref().map(|logs| (traced, chosen.shared, logs));
            // SAFETY: a node of the launched graph, and the copy of its kernel.
            let answer = unsafe { chosen.node.put(launch.exec, put) };
            if answer != SUCCESS {
                return answer;
            }
        }
        // SAFETY: the program's own launch.
        let answer = unsafe { launch.own() };
        issued = Some(answer).filter(|answer| *answer == SUCCESS);
        if issued.is_some() {
            are_traced = logs.iter().map(Option::is_some).collect();
        }
        answer
    };
    let recorded = trace::record(state, Request { context, stream, items: items.collect(), launch: make });
    let reason = recorded.as_ref().err().map_or(NOT_ASKED, String::as_str);
    for (at, (node, _)) in kernels.iter().enumerate() {
        if are_traced.get(at) == Some(&true) {
            state.counts.traced.fetch_add(1, Ordering::Relaxed);
        } else {
            let shape = issued.is_none().then(|| shape(&node.own.0));
            untraced(node.function.readable(), reason, shape);
        }
        if recorded.is_ok() {
            node.function.was_recorded();
        }
    }
    issued
}

/// Prepares a node for a launch with logs, after `before` nodes of the same kernel in this graph.
fn choose(state: &State, context: Handle, node: &Node, before: u64) -> Result<Chosen, String> {
    let kernel: &Kernel = node.function.kernel()?;
    node.function.check_launches(state.settings.spec.recording.window.first, before)?;
    let own_context: Handle = node.own.0.ctx.cast();
    if !own_context.is_null() && own_context != context {
        return Err("its node is of another context than the one in which the graph is launched".to_owned());
    }
    let traced = node.function.traced(kernel).ok_or("its traced copy is not in the module")?;
    if kernel.is_deep {
        driver::grow_stack();
    }
    let own = &node.own.0;
    let grid = [own.gridDimX, own.gridDimY, own.gridDimZ];
    let block = [own.blockDimX, own.blockDimY, own.blockDimZ];
    let func = if own.func.is_null() { own.kern.cast() } else { own.func.cast() };
    let (shape, shared) =
        shape_of(func, grid, block, own.sharedMemBytes, node.is_cooperative, kernel, traced)?;
    let shared = u32::try_from(shared).map_err(|_| "its shared memory has no number")?;
    Ok(Chosen { node: node.clone(), traced: traced as usize, shared, shape })
}

pub(super) unsafe fn destroy_exec(real: unsafe extern "C" fn(Handle) -> Answer, exec: Handle) -> Answer {
    // Removed before the driver call, since the driver may reuse the handle at once.
    let kept = guarded(|| lock(&state()?.graphs).remove(exec)).flatten();
    // SAFETY: the program's own call.
    let answer = unsafe { real(exec) };
    if let Some(kept) = kept {
        // SAFETY: the program has destroyed the graph, and nothing uses it any more.
        guarded(|| unsafe { cudarc::driver::sys::cuGraphDestroy(kept.cast()) });
    }
    answer
}

/// Registers the graph of a child graph node. It lives only as long as its node.
///
/// # Safety
/// If `answer` is success, the driver has written the handle.
pub(super) unsafe fn child(answer: Answer, graph: *const Handle) -> Answer {
    if answer == SUCCESS && !graph.is_null() {
        // SAFETY: guaranteed by the caller.
        let graph = unsafe { *graph };
        guarded(|| state().map(|state| lock(&state.graphs).add_child(graph)));
    }
    answer
}

/// Removes a node that the program destroys. Executable graphs keep its kernel, but the driver can no longer
/// update it there. Therefore their own kernels are restored first.
pub(super) fn destroy_node(node: Handle) {
    guarded(|| {
        let state = state()?;
        let _relaxed = Relaxed::enter();
        let all = lock(&state.graphs).of_node(node);
        for (handle, executable) in all {
            let mut executable = lock(&executable);
            // SAFETY: this executable graph, whose node still exists.
            unsafe { executable.restore(handle, |_| true) };
            executable.changed(Some(node));
        }
        Some(())
    });
}

/// Destroys a graph, or keeps it until all graphs instantiated from it are destroyed.
///
/// # Safety
/// It is the program's own call.
pub(super) unsafe fn destroy(real: unsafe extern "C" fn(Handle) -> Answer, graph: Handle) -> Answer {
    let is_kept = guarded(|| state().is_some_and(|state| lock(&state.graphs).keeps(graph)));
    if is_kept == Some(true) {
        return SUCCESS;
    }
    // SAFETY: guaranteed by the caller.
    unsafe { real(graph) }
}
