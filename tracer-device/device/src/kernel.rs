//! Kernels and their arguments on the host.

#[cfg(not(target_arch = "nvptx64"))]
pub use host::{ArgumentMemory, KernelArg, KernelCall, SafeCall};

#[cfg(not(target_arch = "nvptx64"))]
mod host {
    use crate::{Global, KernelModule, Pod};

    /// A type that can be a kernel's argument.
    ///
    /// # Safety
    /// `to_bytes` returns the bytes that the type has as a parameter of the compiled kernel.
    #[diagnostic::on_unimplemented(
        message = "`{Self}` cannot be a kernel's argument",
        label = "not a number of a fixed size, and no array",
        note = "arguments are copied to the device: numbers of a fixed size (`u32` or `u64` for `usize`, `u32` for `bool`), \
                `&[T]`, `DisjointSlice<T>`, `AtomicSlice<T>` and `Global<T>`"
    )]
    pub unsafe trait KernelArg: Copy + Send + Sync + 'static {
        /// Returns the argument as the device reads it: little-endian, C layout.
        fn to_bytes(&self) -> Vec<u8>;

        /// Whether it refers to memory.
        const IS_MEMORY: bool = false;
    }

    macro_rules! plain {
        ($($type:ty)*) => {$(
            // SAFETY: fixed-size numbers have the same layout on host and device.
            unsafe impl KernelArg for $type {
                fn to_bytes(&self) -> Vec<u8> {
                    self.to_le_bytes().to_vec()
                }
            }
        )*};
    }
    plain!(u8 u16 u32 u64 i8 i16 i32 i64 f32 f64);

    // SAFETY: `#[repr(C)]`, two 64-bit words.
    unsafe impl<T: Pod + Send> KernelArg for Global<T> {
        const IS_MEMORY: bool = true;

        fn to_bytes(&self) -> Vec<u8> {
            let address = if self.is_empty() { 0 } else { self.at(0).expose_provenance() as u64 };
            [address.to_le_bytes(), self.len().to_le_bytes()].concat()
        }
    }

    /// Device memory that an argument refers to.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ArgumentMemory {
        /// Index of the argument, from 0.
        pub argument: usize,
        /// Address of the first byte.
        pub address: u64,
        /// Length in bytes.
        pub bytes: u64,
        /// Whether the kernel may write it.
        pub is_written: bool,
        /// Number of threads that the launch needs: one per element; 0 if elements do not belong to threads.
        pub threads: u64,
    }

    impl ArgumentMemory {
        /// Describes the memory of an array.
        #[doc(hidden)]
        pub fn new<T: Pod>(argument: usize, array: Global<T>, is_written: bool) -> Self {
            let address = if array.is_empty() { 0 } else { array.at(0).expose_provenance() as u64 };
            let bytes = array.len().saturating_mul(size_of::<T>() as u64);
            Self { argument, address, bytes, is_written, threads: 0 }
        }

        /// Describes a written array: by one thread per element if `by_thread`, otherwise by one block.
        #[doc(hidden)]
        pub fn owned<T: Pod>(argument: usize, array: Global<T>, by_thread: bool) -> Self {
            let threads = if by_thread { array.len() } else { 0 };
            Self { threads, ..Self::new(argument, array, true) }
        }
    }

    /// A call whose arguments describe all memory that the kernel uses: slices that it reads, and arrays in
    /// which each thread writes its own element. The launch checks that the memory exists and that written
    /// memory overlaps nothing else, so safe kernels have no undefined behavior. Borrows the arrays for `'a`.
    #[derive(Debug)]
    #[must_use = "a call does nothing until it is launched"]
    pub struct SafeCall<'a> {
        call: KernelCall,
        memory: Vec<ArgumentMemory>,
        arrays: core::marker::PhantomData<&'a ()>,
    }

    impl SafeCall<'_> {
        /// Wraps a call.
        ///
        /// # Safety
        /// `memory` lists all memory that the kernel uses. If that is valid, the kernel's code is safe.
        #[doc(hidden)]
        pub unsafe fn new(call: KernelCall, memory: Vec<ArgumentMemory>) -> Self {
            Self { call, memory, arrays: core::marker::PhantomData }
        }

        /// Returns all memory that the kernel uses.
        pub fn memory(&self) -> &[ArgumentMemory] {
            &self.memory
        }
    }

    impl core::ops::Deref for SafeCall<'_> {
        type Target = KernelCall;

        fn deref(&self) -> &KernelCall {
            &self.call
        }
    }

    /// A kernel with its arguments, ready for launch on either device.
    #[must_use = "a call does nothing until it is launched"]
    pub struct KernelCall {
        name: &'static str,
        module: Option<&'static KernelModule>,
        arguments: Vec<Vec<u8>>,
        thread: Box<dyn Fn() + Send + Sync>,
        automatic: Option<Box<KernelCall>>,
    }

    impl KernelCall {
        #[doc(hidden)]
        pub fn new(
            name: &'static str,
            arguments: Vec<Vec<u8>>,
            thread: impl Fn() + Send + Sync + 'static,
        ) -> Self {
            Self { name, module: None, arguments, thread: Box::new(thread), automatic: None }
        }

        #[doc(hidden)]
        pub fn of_module(mut self, module: &'static KernelModule) -> Self {
            self.module = Some(module);
            self
        }

        #[doc(hidden)]
        pub fn with_automatic(mut self, copy: Self) -> Self {
            self.automatic = Some(Box::new(copy));
            self
        }

        /// Returns the call of the copy with every decision traced (`#[kernels(automatic = ...)]`), if any.
        pub fn automatic(&self) -> Option<&Self> {
            self.automatic.as_deref()
        }

        /// Returns the module of the kernel, which contains its GPU code. `None` if the device received the
        /// code when it was opened. Kernels of different modules may have the same name.
        pub fn module(&self) -> Option<&'static KernelModule> {
            self.module
        }

        /// Returns the name of the entry point.
        pub fn name(&self) -> &'static str {
            self.name
        }

        /// Returns the bytes of each argument, in order, as passed to a GPU launch.
        pub fn arguments(&self) -> &[Vec<u8>] {
            &self.arguments
        }

        /// Returns a function that runs one thread of the kernel, for a simulated lane.
        ///
        /// # Safety
        /// As for a launch: during each call, the arguments refer to memory that is valid for its accesses.
        pub unsafe fn thread(&self) -> &(dyn Fn() + Send + Sync) {
            &*self.thread
        }
    }

    impl core::fmt::Debug for KernelCall {
        fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
            f.debug_struct("KernelCall")
                .field("name", &self.name)
                .field("arguments", &self.arguments)
                .finish()
        }
    }
}

/// Stops a panicking kernel with a trap, which the host sees as a failed launch.
#[cfg(target_arch = "nvptx64")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // SAFETY: ends the kernel.
    unsafe { core::arch::nvptx::trap() }
}
