//! Memory of kernels.

/// Global memory: regions declared by a test, at addresses of its choice.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    regions: Vec<(u64, Vec<u8>)>,
}

impl Memory {
    /// Makes memory without regions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares `bytes` at `address`. Adjacent regions are separate: no access may cross their ends. Panics
    /// if the region overlaps another one or exceeds the address space.
    pub fn declare(&mut self, address: u64, bytes: Vec<u8>) {
        let end = address.checked_add(bytes.len() as u64).expect("a region ends within the address space");
        let free =
            self.regions.iter().all(|(base, other)| end <= *base || *base + other.len() as u64 <= address);
        assert!(free, "regions of memory do not overlap");
        self.regions.push((address, bytes));
    }

    /// Returns the bytes of the region declared at `address`.
    #[must_use]
    pub fn region(&self, address: u64) -> Option<&[u8]> {
        self.regions.iter().find(|(base, _)| *base == address).map(|(_, bytes)| bytes.as_slice())
    }

    /// Like [`region`](Self::region), but mutable.
    #[must_use]
    pub fn region_mut(&mut self, address: u64) -> Option<&mut [u8]> {
        self.regions.iter_mut().find(|(base, _)| *base == address).map(|(_, bytes)| bytes.as_mut_slice())
    }

    pub(super) fn slice(&mut self, address: u64, length: u64) -> Option<&mut [u8]> {
        let end = address.checked_add(length)?;
        let (base, bytes) = self
            .regions
            .iter_mut()
            .find(|(base, bytes)| *base <= address && end <= *base + bytes.len() as u64)?;
        let start = usize::try_from(address - *base).ok()?;
        bytes.get_mut(start..start + usize::try_from(length).ok()?)
    }
}

/// Memory from address 0 on that tracks the written bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    bytes: Vec<u8>,
    written: Vec<bool>,
}

impl Scratch {
    pub(super) fn new(length: usize) -> Self {
        Self { bytes: vec![0; length], written: vec![false; length] }
    }

    pub(super) const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns bytes; `Err(true)` if some were not written, `Err(false)` if they are out of bounds.
    pub(super) fn read(&self, address: u64, length: u64) -> Result<&[u8], bool> {
        let range = self.range(address, length).ok_or(false)?;
        if self.written[range.clone()].iter().all(|written| *written) {
            Ok(&self.bytes[range])
        } else {
            Err(true)
        }
    }

    /// Writes bytes; `None` if they are out of bounds.
    pub(super) fn write(&mut self, address: u64, bytes: &[u8]) -> Option<()> {
        let range = self.range(address, bytes.len() as u64)?;
        self.bytes[range.clone()].copy_from_slice(bytes);
        self.written[range].fill(true);
        Some(())
    }

    pub(super) fn copy(&mut self, to: usize, other: &Self, from: usize, length: usize) -> Option<()> {
        let bytes = other.bytes.get(from..from.checked_add(length)?)?;
        self.bytes.get_mut(to..to.checked_add(length)?)?.copy_from_slice(bytes);
        self.written[to..to + length].copy_from_slice(&other.written[from..from + length]);
        Some(())
    }

    fn range(&self, address: u64, length: u64) -> Option<std::ops::Range<usize>> {
        let end = address.checked_add(length).filter(|end| *end <= self.bytes.len() as u64)?;
        Some(usize::try_from(address).ok()?..usize::try_from(end).ok()?)
    }
}
