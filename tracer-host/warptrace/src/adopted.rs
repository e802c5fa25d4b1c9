//! Arrays that a program has allocated through cudarc.

use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;

use cudarc::driver::{CudaSlice, DevicePtrMut};
use warptrace_device::{DeviceArray, Global};
use warptrace_host::Pod;

use crate::Error;
use crate::shared::Shared;

/// A [`CudaSlice`] of the program, borrowed for use by kernels: [`Device::adopt`](crate::Device::adopt). A
/// reference to it is a kernel argument, like a reference to a [`Buffer`](crate::Buffer).
pub struct AdoptedSlice<'a, T> {
    shared: Rc<Shared>,
    address: u64,
    len: usize,
    slice: PhantomData<&'a mut CudaSlice<T>>,
}

impl<T> fmt::Debug for AdoptedSlice<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AdoptedSlice({:#x}, {} elements)", self.address, self.len)
    }
}

impl<'a, T: Pod> AdoptedSlice<'a, T> {
    pub(crate) fn new(shared: &Rc<Shared>, slice: &'a mut CudaSlice<T>) -> Result<Self, Error> {
        let len = slice.len();
        let own = shared.stream().filter(|stream| stream.context().cu_ctx() == slice.context().cu_ctx());
        let Some(stream) = own else { return Err(Error::OtherContext { elements: len }) };
        // The stream waits for pending work on the array. Launches return after their end and need no event.
        let (address, uses) = slice.device_ptr_mut(stream);
        drop(uses);
        if len != 0 {
            shared.adopt(address, len as u64 * size_of::<T>() as u64);
        }
        Ok(Self { shared: Rc::clone(shared), address, len, slice: PhantomData })
    }

    /// Returns the array as an argument for kernels that declare a `Global<T>`.
    pub fn global(&self) -> Global<T> {
        Global::new(self.address, self.len as u64)
    }
}

impl<T> AdoptedSlice<'_, T> {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the array is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

// SAFETY: cudarc keeps the memory while it is borrowed; any bytes are a valid `Pod`.
unsafe impl<T: Pod> DeviceArray<T> for AdoptedSlice<'_, T> {
    fn global(&self) -> Global<T> {
        self.global()
    }
}

impl<T> Drop for AdoptedSlice<'_, T> {
    fn drop(&mut self) {
        if self.len != 0 {
            self.shared.release(self.address);
        }
    }
}
