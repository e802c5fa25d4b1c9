//! Graphs of kernels, launched in the order in which the nodes were added.

use std::collections::BTreeMap;
use std::ffi::{c_uint, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::modules::{Function, say};

type Handle = *mut c_void;

/// Launches a function. Arguments: function, grid, block, shared memory and stream, parameters, extra.
pub type Launch =
    unsafe fn(Handle, [c_uint; 3], [c_uint; 3], (c_uint, Handle), *mut Handle, *mut Handle) -> u32;

/// Version 2 of the driver's kernel node parameters.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Parameters {
    pub function: Handle,
    pub sizes: [c_uint; 7],
    pub arguments: *mut Handle,
    pub extra: *mut Handle,
    pub kernel: Handle,
    pub context: Handle,
}

/// Has copies of the arguments.
#[derive(Clone)]
pub struct Node {
    function: usize,
    sizes: [c_uint; 7],
    arguments: Vec<Vec<u8>>,
}

#[derive(Default)]
pub struct All {
    next: usize,
    graphs: BTreeMap<usize, Vec<usize>>,
    nodes: BTreeMap<usize, Node>,
    executable: BTreeMap<usize, BTreeMap<usize, Node>>,
}

static ALL: Mutex<Option<All>> = Mutex::new(None);

pub fn with<T>(with: impl FnOnce(&mut All) -> T) -> T {
    let mut all: MutexGuard<'_, Option<All>> = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    with(all.get_or_insert_with(All::default))
}

impl Node {
    /// # Safety
    /// The parameters are valid for the driver, and name a loaded function.
    pub unsafe fn new(parameters: &Parameters) -> Self {
        // SAFETY: guaranteed by the caller.
        let arguments = unsafe {
            let handle = if parameters.function.is_null() { parameters.kernel } else { parameters.function };
            let function = &*handle.cast::<Function>();
            let sizes = function.parameters.iter().enumerate();
            sizes
                .map(|(number, &(size, _))| {
                    std::slice::from_raw_parts((*parameters.arguments.add(number)).cast::<u8>(), size)
                        .to_vec()
                })
                .collect()
        };
        let handle = if parameters.function.is_null() { parameters.kernel } else { parameters.function };
        Self { function: handle as usize, sizes: parameters.sizes, arguments }
    }

    fn addresses(&self) -> Vec<Handle> {
        self.arguments.iter().map(|bytes| bytes.as_ptr().cast_mut().cast()).collect()
    }

    /// # Safety
    /// The arguments name memory that the kernel may use.
    pub unsafe fn launch(&self, launch: Launch) -> u32 {
        let [gx, gy, gz, bx, by, bz, shared] = self.sizes;
        let mut list = self.addresses();
        let function = self.function as Handle;
        // SAFETY: guaranteed by the caller.
        unsafe {
            launch(function, [gx, gy, gz], [bx, by, bz], (shared, null_mut()), list.as_mut_ptr(), null_mut())
        }
    }
}

impl All {
    fn handle(&mut self) -> usize {
        self.next += 16;
        0x9000 + self.next
    }

    pub fn create(&mut self) -> Handle {
        let handle = self.handle();
        self.graphs.insert(handle, Vec::new());
        handle as Handle
    }

    pub fn add(&mut self, graph: Handle, node: Node) -> Option<Handle> {
        let handle = self.handle();
        self.graphs.get_mut(&(graph as usize))?.push(handle);
        self.nodes.insert(handle, node);
        Some(handle as Handle)
    }

    pub fn nodes(&self, graph: Handle) -> Option<&[usize]> {
        self.graphs.get(&(graph as usize)).map(Vec::as_slice)
    }

    /// Leaks the list of addresses.
    pub fn parameters(&self, node: Handle) -> Option<Parameters> {
        let node = self.nodes.get(&(node as usize))?;
        let arguments = Box::leak(node.addresses().into_boxed_slice()).as_mut_ptr();
        let (kernel, context) = (null_mut(), null_mut());
        let function = node.function as Handle;
        Some(Parameters { function, sizes: node.sizes, arguments, extra: null_mut(), kernel, context })
    }

    pub fn instantiate(&mut self, graph: Handle) -> Option<Handle> {
        let nodes = self.graphs.get(&(graph as usize))?.clone();
        let nodes = nodes.into_iter().map(|handle| (handle, self.nodes[&handle].clone())).collect();
        let handle = self.handle();
        self.executable.insert(handle, nodes);
        Some(handle as Handle)
    }

    /// The node's graph must exist.
    pub fn set(&mut self, exec: Handle, node: Handle, to: Node) -> Option<()> {
        self.nodes.get(&(node as usize))?;
        *self.executable.get_mut(&(exec as usize))?.get_mut(&(node as usize))? = to;
        Some(())
    }

    pub fn executable(&self, exec: Handle) -> Option<Vec<Node>> {
        Some(self.executable.get(&(exec as usize))?.values().cloned().collect())
    }

    pub fn destroy(&mut self, graph: Handle) -> Option<()> {
        for node in self.graphs.remove(&(graph as usize))? {
            self.nodes.remove(&node);
        }
        say("graph destroyed");
        Some(())
    }

    pub fn destroy_executable(&mut self, exec: Handle) -> Option<()> {
        self.executable.remove(&(exec as usize)).map(drop)
    }
}
