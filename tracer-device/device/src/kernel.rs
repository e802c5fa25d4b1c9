//! Kernels as the host sees them.

#[cfg(not(target_arch = "nvptx64"))]
pub use host::{ArgumentMemory, KernelArg, KernelCall, SafeCall};

#[cfg(not(target_arch = "nvptx64"))]
mod host {
    use crate::{Global, KernelModule, Pod};

    /// A type that can be a kernel's argument.
    ///
    /// # Safety
    /// `to_bytes` gives the bytes that the same type has as a parameter of the compiled kernel.
    #[diagnostic::on_unimplemented(
        message = "`{Self}` cannot be a kernel's argument",
        label = "not a number of a fixed size, and no array",
        note = "arguments are copied to the device: numbers of a fixed size (`u32` or `u64` for `usize`, `u32` for `bool`), \
                `&[T]`, `DisjointSlice<T>`, `AtomicSlice<T>` and `Global<T>`"
    )]
    pub unsafe trait KernelArg: Copy + Send + Sync + 'static {
        /// The argument as the device reads it: little-endian, C layout.
        fn to_bytes(&self) -> Vec<u8>;

        /// Whether it names memory.
        const IS_MEMORY: bool = false;
    }

    macro_rules! plain {
        ($($type:ty)*) => {$(
            // SAFETY: fixed-size numbers have the same layout on both sides.
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

    /// Memory of the device that an argument names.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ArgumentMemory {
        /// Number of the argument, from 0.
        pub argument: usize,
        /// Address of the first byte.
        pub address: u64,
        /// Length in bytes.
        pub bytes: u64,
        /// Whether the kernel may write it.
        pub is_written: bool,
        /// How many threads it takes for each element to have its own, where elements are threads'; else 0.
        pub threads: u64,
    }

    impl ArgumentMemory {
        /// That of an array.
        #[doc(hidden)]
        pub fn new<T: Pod>(argument: usize, array: Global<T>, is_written: bool) -> Self {
            let address = if array.is_empty() { 0 } else { array.at(0).expose_provenance() as u64 };
            let bytes = array.len().saturating_mul(size_of::<T>() as u64);
            Self { argument, address, bytes, is_written, threads: 0 }
        }

        /// As [`new`](Self::new), of an array whose elements are written by a thread each if `by_thread`,
        /// else by a block.
        #[doc(hidden)]
        pub fn owned<T: Pod>(argument: usize, array: Global<T>, by_thread: bool) -> Self {
            let threads = if by_thread { array.len() } else { 0 };
            Self { threads, ..Self::new(argument, array, true) }
        }
    }

    /// A call of a kernel whose arguments say all about the memory that it uses: slices that it reads, and
    /// arrays of which each thread writes its own element. Who launches it checks that the memory is there,
    /// and that what is written overlaps nothing else; then nothing that safe kernels do is undefined.
    ///
    /// It borrows the arrays for `'a`.
    #[derive(Debug)]
    #[must_use = "a call does nothing until it is launched"]
    pub struct SafeCall<'a> {
        call: KernelCall,
        memory: Vec<ArgumentMemory>,
        arrays: core::marker::PhantomData<&'a ()>,
    }

    impl SafeCall<'_> {
        /// Says so of a call.
        ///
        /// # Safety
        /// `memory` is all memory that the kernel uses, and its code is safe but for what it is promised
        /// about that.
        #[doc(hidden)]
        pub unsafe fn new(call: KernelCall, memory: Vec<ArgumentMemory>) -> Self {
            Self { call, memory, arrays: core::marker::PhantomData }
        }

        /// All memory that the kernel uses.
        pub fn memory(&self) -> &[ArgumentMemory] {
            &self.memory
        }
    }

    /// The call, without what is known of its memory.
    impl core::ops::Deref for SafeCall<'_> {
        type Target = KernelCall;

        fn deref(&self) -> &KernelCall {
            &self.call
        }
    }

    /// A kernel with its arguments, ready to be launched on either device.
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

        /// The same call of the copy that is traced at every decision, if the kernel's module has both
        /// (`#[kernels(only_marked, automatic = ...)]`).
        pub fn automatic(&self) -> Option<&Self> {
            self.automatic.as_deref()
        }

        /// The module that the kernel stands in, whose code a GPU runs; `None` for a kernel of which the
        /// device was given the code when it was opened. Kernels of two modules may have one name.
        pub fn module(&self) -> Option<&'static KernelModule> {
            self.module
        }

        /// Name of the entry point.
        pub fn name(&self) -> &'static str {
            self.name
        }

        /// Each argument's bytes, in order, as a launch on a GPU passes them.
        pub fn arguments(&self) -> &[Vec<u8>] {
            &self.arguments
        }

        /// Returns what runs one thread of the kernel, for a simulated lane.
        ///
        /// # Safety
        /// As of a launch: the arguments name memory that is valid for what the kernel does with it, for as
        /// long as it is called.
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

/// A kernel that panics stops with a trap, which the host sees as a failed launch.
#[cfg(target_arch = "nvptx64")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // SAFETY: ends the kernel.
    unsafe { core::arch::nvptx::trap() }
}
