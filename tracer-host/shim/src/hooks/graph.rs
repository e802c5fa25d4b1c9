//! Graphs: each of their launches is recorded as launches of the kernels in them.

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

/// The flag of graphs that kernels launch.
const DEVICE_LAUNCH: u64 = 4;

/// Notes a graph that the program has made ready.
///
/// # Safety
/// The driver has made it of that graph, if it succeeded.
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

/// Returns the flags with which parameters begin.
///
/// # Safety
/// Null, or parameters.
pub(super) unsafe fn flags_in(parameters: *const u64) -> u64 {
    // SAFETY: the caller's promise.
    if parameters.is_null() { 0 } else { unsafe { *parameters } }
}

/// The driver's function that launches a graph.
type RealLaunch = unsafe extern "C" fn(Handle, Handle) -> Answer;

/// The program's own launch.
#[derive(Clone, Copy)]
struct GraphLaunch {
    real: RealLaunch,
    exec: Handle,
    stream: Handle,
}

impl GraphLaunch {
    /// Makes it.
    ///
    /// # Safety
    /// It is the program's own.
    unsafe fn own(self) -> Answer {
        // SAFETY: the caller's promise.
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

/// Records a launch of a graph; if it was not made so, makes the program's own.
///
/// # Safety
/// It is the program's own launch.
unsafe fn launched(launch: GraphLaunch, stream: Handle) -> Answer {
    // What the driver has said, once it took the launch.
    let mut issued = None;
    guarded(|| {
        let state = state()?;
        let executable = lock(&state.graphs).executable(launch.exec)?;
        let _relaxed = Relaxed::enter();
        let mut executable = lock(&executable);
        // SAFETY: the caller's promise.
        unsafe {
            // A graph of which this becomes a part has the program's own kernels.
            if !driver::is_capturing(stream) {
                issued = recorded(state, &mut executable, launch, stream);
            }
            if issued.is_none() && !executable.restore(launch.exec, |_| true) {
                // Its kernels write where their logs were.
                let context = driver::current_context()?;
                trace::abandon(state, context, "a graph could not be given its own kernels again");
            }
        }
        Some(())
    });
    // SAFETY: the caller's promise.
    issued.unwrap_or_else(|| unsafe { launch.own() })
}

/// A node that is launched with logs.
struct Chosen {
    node: Node,
    traced: usize,
    shared: u32,
    shape: LaunchShape,
}

/// Records a launch of a graph, if that is possible; returns what the driver has said if it took it.
///
/// # Safety
/// The launch is of this graph.
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
    // SAFETY: the caller's promise.
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
        // Also if only some of them are set below.
        executable.nodes[at].is_traced = true;
    }
    let (mut issued, mut are_traced) = (None, Vec::new());
    // Each node gets its logs, and the graph is launched.
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

/// Tells how a node can be launched with logs, behind this many others of its kernel in the same graph.
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
    // Before, since the driver may give its handle to another one at once.
    let kept = guarded(|| lock(&state()?.graphs).remove(exec)).flatten();
    // SAFETY: the program's own call.
    let answer = unsafe { real(exec) };
    if let Some(kept) = kept {
        // SAFETY: the program has destroyed it, and nothing needs it any more.
        guarded(|| unsafe { cudarc::driver::sys::cuGraphDestroy(kept.cast()) });
    }
    answer
}

/// Notes a graph that is a node's: it lives as long as that, which nothing here can lengthen.
///
/// # Safety
/// The driver has written the handle if it succeeded.
pub(super) unsafe fn child(answer: Answer, graph: *const Handle) -> Answer {
    if answer == SUCCESS && !graph.is_null() {
        // SAFETY: the caller's promise.
        let graph = unsafe { *graph };
        guarded(|| state().map(|state| lock(&state.graphs).add_child(graph)));
    }
    answer
}

/// Forgets a node that goes from its graph: what was made of the graph before keeps its kernel, and can no
/// longer be told of it.
pub(super) fn destroy_node(node: Handle) {
    guarded(|| {
        let state = state()?;
        let _relaxed = Relaxed::enter();
        let all = lock(&state.graphs).of_node(node);
        for (handle, executable) in all {
            let mut executable = lock(&executable);
            // SAFETY: this graph, whose node is still there.
            unsafe { executable.restore(handle, |_| true) };
            executable.changed(Some(node));
        }
        Some(())
    });
}

/// Destroys a graph, or keeps it until what was made of it is destroyed.
///
/// # Safety
/// The program's own call.
pub(super) unsafe fn destroy(real: unsafe extern "C" fn(Handle) -> Answer, graph: Handle) -> Answer {
    let is_kept = guarded(|| state().is_some_and(|state| lock(&state.graphs).keeps(graph)));
    if is_kept == Some(true) {
        return SUCCESS;
    }
    // SAFETY: the caller's promise.
    unsafe { real(graph) }
}
