//! Arrays in device memory.

use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;

use warptrace_device::{DeviceArray, Global};
use warptrace_host::{Allocation, DeviceError, Pod};

use crate::Error;
use crate::shared::Shared;

/// Array of `T` in device memory, freed on drop. Created by [`Device::upload`](crate::Device::upload) and
/// [`Device::zeros`](crate::Device::zeros). A reference to it is a kernel argument.
pub struct Buffer<T> {
    shared: Rc<Shared>,
    allocation: Allocation,
    len: usize,
    element: PhantomData<T>,
}

impl<T> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({:#x}, {} elements)", self.allocation.address, self.len)
    }
}

impl<T: Pod> Buffer<T> {
    /// Allocates memory for `len` elements without initializing it.
    pub(crate) fn reserve(shared: &Rc<Shared>, len: usize) -> Result<Self, Error> {
        let bytes = len.checked_mul(size_of::<T>()).ok_or_else(|| DeviceError::OutOfMemory {
            bytes: u64::MAX,
            reason: format!("{len} elements of {} bytes are more than there can be", size_of::<T>()),
        })?;
        let allocation = shared.allocate(bytes as u64)?;
        Ok(Self { shared: Rc::clone(shared), allocation, len, element: PhantomData })
    }

    pub(crate) fn clear(&self) -> Result<(), Error> {
        let Allocation { address, .. } = self.allocation;
        Ok(self.shared.with(|device| device.fill(address, self.bytes(), 0))?)
    }

    fn bytes(&self) -> u64 {
        self.len as u64 * size_of::<T>() as u64
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the array is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies the array to the host. Fails if the copy fails.
    pub fn download(&self) -> Result<Vec<T>, Error> {
        let mut values = vec![T::zeroed(); self.len];
        let bytes = bytemuck::cast_slice_mut(&mut values);
        self.shared.with(|device| device.read(self.allocation.address, bytes))?;
        Ok(values)
    }

    /// Overwrites the start of the array with `values`. Fails if there are too many, or the copy fails.
    pub fn write(&self, values: &[T]) -> Result<(), Error> {
        let address = self.allocation.address;
        if values.len() > self.len {
            return Err(DeviceError::OutOfBounds { address, bytes: size_of_val(values) as u64 }.into());
        }
        Ok(self.shared.with(|device| device.write(address, bytemuck::cast_slice(values)))?)
    }

    /// Returns the array as an argument for kernels that declare a `Global<T>`. It does not own the memory.
    pub fn global(&self) -> Global<T> {
        Global::new(self.allocation.address, self.len as u64)
    }
}

// SAFETY: the memory was written or zeroed before the buffer was returned; any bytes are a valid `Pod`.
unsafe impl<T: Pod> DeviceArray<T> for Buffer<T> {
    fn global(&self) -> Global<T> {
        self.global()
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        self.shared.free(self.allocation);
    }
}
