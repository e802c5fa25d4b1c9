//! Executable graphs of the program, and their kernel nodes.
//!
//! Before a launch, each kernel node gets its traced copy and its logs. The driver identifies nodes of an
//! executable graph by the nodes of its source graph. Therefore the source graph is kept as long as the
//! executable graph exists, even if the program destroys it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex};

use cudarc::driver::sys::{self, CUDA_KERNEL_NODE_PARAMS as NodeParameters};
use warptrace_abi::log::LaunchLogs;
use warptrace_host::{Blocks, LaunchShape, MemoryChange};

use crate::driver::{self, Answer, SUCCESS};
use crate::exchange::Kernel;
use crate::state::{Function, State, lock};

type Handle = *mut c_void;

/// The driver's types of kernel, child graph, conditional and memory allocation nodes.
const KERNEL: u32 = 0;
const CHILD: u32 = 4;
const CONDITIONAL: u32 = 13;
const ALLOCATES: u32 = 10;

#[derive(Debug, Default)]
pub(crate) struct Graphs {
    executable: HashMap<usize, Arc<Mutex<Executable>>>,
    /// For each graph: the number of its executable graphs, and whether the program has destroyed it.
    made_of: HashMap<usize, (usize, bool)>,
    /// Graphs that belong to nodes of other graphs.
    children: HashSet<usize>,
}

#[derive(Debug, Default)]
pub(crate) struct Executable {
    graph: usize,
    pub(crate) nodes: Vec<Node>,
    /// Kernels that run untraced, by node.
    skipped: BTreeMap<usize, Skipped>,
    disabled: HashSet<usize>,
}

/// A node whose kernel runs untraced.
#[derive(Clone, Debug)]
pub(crate) struct Skipped {
    pub(crate) kernel: Arc<str>,
    pub(crate) reason: String,
    pub(crate) shape: Option<LaunchShape>,
}

/// A kernel node with a traced copy.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    handle: usize,
    pub(crate) function: Arc<Function>,
    /// The program's parameters, without addresses of arguments.
    pub(crate) own: Parameters,
    /// The arguments, each at its offset.
    arguments: Vec<u8>,
    pub(crate) is_cooperative: bool,
    /// True if the executable graph has the traced copy in this node.
    pub(crate) is_traced: bool,
}

/// Node parameters that any thread may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameters(pub(crate) NodeParameters);

// SAFETY: any thread may use the handles; the addresses of arguments are null.
unsafe impl Send for Parameters {}

impl Graphs {
    pub(crate) fn executable(&self, handle: Handle) -> Option<Arc<Mutex<Executable>>> {
        self.executable.get(&(handle as usize)).cloned()
    }

    pub(crate) fn add_child(&mut self, graph: Handle) {
        self.children.insert(graph as usize);
    }

    /// Returns true if the program has got this graph from a node of another graph.
    pub(crate) fn is_of_node(&self, graph: Handle) -> bool {
        self.children.contains(&(graph as usize))
    }

    /// Returns the executable graphs with this node, with their handles.
    pub(crate) fn of_node(&self, node: Handle) -> Vec<(Handle, Arc<Mutex<Executable>>)> {
        let all = self.executable.iter();
        let has =
            all.filter(|(_, found)| lock(found).nodes.iter().any(|known| known.handle == node as usize));
        has.map(|(handle, found)| (std::ptr::with_exposed_provenance_mut(*handle), Arc::clone(found)))
            .collect()
    }

    pub(crate) fn add(&mut self, handle: Handle, graph: Handle, mut found: Executable) {
        found.graph = graph as usize;
        self.made_of.entry(found.graph).or_default().0 += 1;
        self.executable.insert(handle as usize, Arc::new(Mutex::new(found)));
    }

    /// Returns true if a graph that the program destroys must be kept.
    pub(crate) fn keeps(&mut self, graph: Handle) -> bool {
        // The driver may reuse the handle for another graph.
        self.children.remove(&(graph as usize));
        match self.made_of.get_mut(&(graph as usize)) {
            Some((_, is_destroyed)) => {
                *is_destroyed = true;
                true
            }
            None => false,
        }
    }

    /// Removes an executable graph. Returns its source graph if that was kept only for this one.
    pub(crate) fn remove(&mut self, handle: Handle) -> Option<Handle> {
        let found = self.executable.remove(&(handle as usize))?;
        let graph = lock(&found).graph;
        let (count, is_destroyed) = self.made_of.get_mut(&graph)?;
        *count -= 1;
        if *count > 0 {
            return None;
        }
        let is_destroyed = *is_destroyed;
        self.made_of.remove(&graph);
        is_destroyed.then(|| std::ptr::with_exposed_provenance_mut(graph))
    }
}

impl Executable {
    /// # Safety
    /// `graph` is a graph of the program.
    pub(crate) unsafe fn read(state: &State, graph: Handle) -> Self {
        let mut found = Self::default();
        // SAFETY: guaranteed by the caller, here and below. The driver writes at most `count` nodes.
        let nodes = unsafe {
            let mut count = 0;
            if sys::cuGraphGetNodes(graph.cast(), null_mut(), &raw mut count) as u32 != SUCCESS {
                return found;
            }
            let mut nodes = vec![null_mut(); count];
            if sys::cuGraphGetNodes(graph.cast(), nodes.as_mut_ptr(), &raw mut count) as u32 != SUCCESS {
                return found;
            }
            nodes.truncate(count);
            nodes
        };
        for node in nodes {
            let mut kind = sys::CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY;
            // SAFETY: a node of the graph. The type is read as a number, since a driver may have others.
            let kind = unsafe {
                let answer = sys::cuGraphNodeGetType(node, &raw mut kind);
                if answer as u32 == SUCCESS { (&raw const kind).cast::<u32>().read() } else { continue }
            };
            match kind {
                KERNEL => {
                    let mut parameters = std::mem::MaybeUninit::<NodeParameters>::zeroed();
                    // SAFETY: a kernel node. The driver writes its parameters.
                    unsafe {
                        let answer = sys::cuGraphKernelNodeGetParams_v2(node, parameters.as_mut_ptr());
                        if answer as u32 == SUCCESS {
                            found.set(state, node.cast(), &parameters.assume_init());
                        }
                    }
                }
                CHILD | CONDITIONAL => {
                    let (kernel, reason) = ("kernels of a graph in a graph", "they are not recorded");
                    let skipped = Skipped { kernel: kernel.into(), reason: reason.to_owned(), shape: None };
                    found.skipped.insert(node as usize, skipped);
                }
                ALLOCATES if state.records_accesses() => {
                    lock(&state.traces).change_memory(MemoryChange::Unknown);
                }
                _ => {}
            }
        }
        found
    }

    /// Returns the enabled nodes with a traced copy, with their indices.
    pub(crate) fn enabled(&self) -> impl Iterator<Item = (usize, &Node)> {
        self.nodes.iter().enumerate().filter(|(_, node)| !self.disabled.contains(&node.handle))
    }

    pub(crate) fn skipped(&self) -> impl Iterator<Item = &Skipped> {
        self.skipped.iter().filter(|(node, _)| !self.disabled.contains(node)).map(|(_, skipped)| skipped)
    }

    /// Registers a node's parameters, set by the program.
    ///
    /// # Safety
    /// The driver has written or read the parameters.
    pub(crate) unsafe fn set(&mut self, state: &State, node: Handle, parameters: &NodeParameters) {
        // SAFETY: guaranteed by the caller.
        let found = unsafe { Node::new(state, node, parameters) };
        let known = self.nodes.iter().position(|known| known.handle == node as usize);
        self.skipped.remove(&(node as usize));
        match (found, known) {
            (Ok(found), Some(at)) => self.nodes[at] = found,
            (Ok(found), None) => self.nodes.push(found),
            (Err((kernel, reason)), known) => {
                if let Some(at) = known {
                    self.nodes.remove(at);
                }
                let shape = Some(shape(parameters));
                self.skipped.insert(node as usize, Skipped { kernel, reason, shape });
            }
        }
    }

    /// Makes a node, or all nodes, untraced after a change that the shim does not read.
    pub(crate) fn changed(&mut self, node: Option<Handle>) {
        let is_it = |known: &Node| node.is_none_or(|node| known.handle == node as usize);
        let (gone, left) = std::mem::take(&mut self.nodes).into_iter().partition(is_it);
        self.nodes = left;
        let gone: Vec<Node> = gone;
        for node in gone {
            let reason = "its node was changed in a way that is not read".to_owned();
            let kernel = Arc::clone(node.function.readable());
            self.skipped.insert(node.handle, Skipped { kernel, reason, shape: None });
        }
    }

    pub(crate) fn enable(&mut self, node: Handle, is_enabled: bool) {
        if is_enabled {
            self.disabled.remove(&(node as usize));
        } else {
            self.disabled.insert(node as usize);
        }
    }

    /// Restores the program's kernels in nodes with a `wanted` index. Returns true if this succeeds for all.
    ///
    /// # Safety
    /// `handle` is this executable graph.
    pub(crate) unsafe fn restore(&mut self, handle: Handle, wanted: impl Fn(usize) -> bool) -> bool {
        for (at, node) in self.nodes.iter_mut().enumerate() {
            if node.is_traced && wanted(at) {
                // SAFETY: guaranteed by the caller. The node is one of this graph.
                node.is_traced = unsafe { node.put(handle, None) } != SUCCESS;
            }
        }
        !self.nodes.iter().enumerate().any(|(at, node)| node.is_traced && wanted(at))
    }
}

impl Node {
    /// # Safety
    /// The driver has written or read the parameters.
    unsafe fn new(
        state: &State,
        handle: Handle,
        parameters: &NodeParameters,
    ) -> Result<Self, (Arc<str>, String)> {
        let found = function_of(state, parameters.func.cast(), parameters.kern.cast());
        let Some(function) = found else {
            let name = driver::function_name(parameters.func.cast());
            let name = name.map_or_else(|| "a kernel".to_owned(), |name| crate::names::readable(&name));
            return Err((name.into(), "the program found it by a way that is not watched".to_owned()));
        };
        let skipped = |reason: String| (Arc::clone(function.readable()), reason);
        let kernel = function.kernel().map_err(skipped)?;
        // SAFETY: guaranteed by the caller: each argument has an address, or all are in a buffer.
        let arguments = unsafe { arguments_of(kernel, parameters) }
            .ok_or_else(|| skipped("its node's arguments cannot be read".to_owned()))?;
        let own = NodeParameters { kernelParams: null_mut(), extra: null_mut(), ..*parameters };
        // SAFETY: guaranteed by the caller.
        let [is_cooperative, is_updatable] = unsafe {
            use sys::CUlaunchAttributeID as A;
            [A::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, A::CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE]
                .map(|attribute| has_attribute(handle, attribute))
        };
        if is_updatable {
            return Err(skipped("kernels may change its node".to_owned()));
        }
        Ok(Self {
            handle: handle as usize,
            own: Parameters(own),
            arguments,
            is_cooperative,
            is_traced: false,
            function,
        })
    }

    /// Puts the traced copy into the node of an executable graph, with its dynamic shared memory in bytes and
    /// its logs. For `None`, puts the program's own kernel.
    ///
    /// # Safety
    /// The node belongs to the graph from which `graph` was instantiated. The copy is a copy of its kernel.
    pub(crate) unsafe fn put(&self, graph: Handle, traced: Option<(Handle, u32, &LaunchLogs)>) -> Answer {
        let Ok(kernel) = self.function.kernel() else { return driver::INVALID };
        let mut bytes = self.arguments.clone();
        let mut own = self.own.0;
        let base = bytes.as_mut_ptr();
        // SAFETY: the offsets of parameters are within the bytes.
        let mut list: Vec<Handle> =
            kernel.parameters.iter().map(|parameter| unsafe { base.add(parameter.offset).cast() }).collect();
        if let Some((copy, shared, logs)) = traced {
            (own.func, own.kern, own.sharedMemBytes) = (copy.cast(), null_mut(), shared);
            list.push((&raw const *logs).cast_mut().cast());
        }
        own.kernelParams = list.as_mut_ptr();
        // SAFETY: guaranteed by the caller. The driver copies the arguments.
        unsafe {
            sys::cuGraphExecKernelNodeSetParams_v2(
                graph.cast(),
                std::ptr::with_exposed_provenance_mut::<c_void>(self.handle).cast(),
                &raw const own,
            ) as u32
        }
    }
}

pub(crate) fn shape(parameters: &NodeParameters) -> LaunchShape {
    let grid = [parameters.gridDimX, parameters.gridDimY, parameters.gridDimZ];
    let block = [parameters.blockDimX, parameters.blockDimY, parameters.blockDimZ];
    let dynamic_shared = parameters.sharedMemBytes;
    LaunchShape { dynamic_shared, ..LaunchShape::new(grid, block, Blocks::Communicating) }
}

/// Returns true if a node has the attribute and its value begins with a number that is not 0.
///
/// # Safety
/// `node` is a kernel node.
unsafe fn has_attribute(node: Handle, attribute: sys::CUlaunchAttributeID) -> bool {
    let mut value = std::mem::MaybeUninit::<sys::CUkernelNodeAttrValue>::zeroed();
    // SAFETY: guaranteed by the caller. The value is the union that the driver writes, zeroed before.
    unsafe {
        let answer = sys::cuGraphKernelNodeGetAttribute(node.cast(), attribute, value.as_mut_ptr());
        answer as u32 == SUCCESS && value.assume_init().cooperative != 0
    }
}

/// # Safety
/// Same as [`Node::new`].
unsafe fn arguments_of(kernel: &Kernel, parameters: &NodeParameters) -> Option<Vec<u8>> {
    let bytes = kernel.parameters.last().map_or(0, |last| last.offset + last.size);
    if parameters.kernelParams.is_null() {
        if kernel.parameters.is_empty() {
            return Some(Vec::new());
        }
        // SAFETY: guaranteed by the caller.
        let found = unsafe { crate::hooks::buffer_of(parameters.extra) }?;
        return (found.len() >= bytes).then_some(found);
    }
    let mut found = vec![0; bytes];
    for (number, parameter) in kernel.parameters.iter().enumerate() {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let from = (*parameters.kernelParams.add(number)).cast::<u8>();
            found.as_mut_ptr().add(parameter.offset).copy_from(from, parameter.size);
        }
    }
    Some(found)
}

/// Finds the function of a node by the handle of the function, or of the library's kernel.
fn function_of(state: &State, function: Handle, kernel: Handle) -> Option<Arc<Function>> {
    let known = |handle: Handle| lock(&state.registry).function(handle as usize).cloned();
    if let Some(found) = [function, kernel].into_iter().filter(|handle| !handle.is_null()).find_map(known) {
        return Some(found);
    }
    let name = driver::function_name(function)?;
    let candidates = lock(&state.registry).kernels_of(&name);
    candidates
        .into_iter()
        .find(|(kernel, _)| driver::kernel_function(*kernel) == Some(function))
        .map(|(_, found)| found)
}
